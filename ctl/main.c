/*
 * ptsnapctl: common options, then a verb. The verbs' own options are theirs (cmd_VERB.c).
 */
#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <stdio.h>
#include <string.h>

#include "proto/base.h"

#include "ctl/base/option.h"
#include "ctl/base/say.h"
#include "ctl/verb.h"

static const char HELP_HEAD[] =
	"ptsnapctl [OPTION...] VERB [OPTION...]\n"
	"\n"
	"Takes, fetches and decodes snapshots of a ptsnapd flight recorder.\n"
	"\n"
	"Verbs:\n";

static const char HELP_TAIL[] =
	"\n"
	"Options of all verbs:\n"
	"      --socket=PATH            the recorder's socket (/run/ptsnap/io.ptsnap.recorder)\n"
	"      --json=pretty|short|off  JSON or text on standard output\n"
	"  -j                           --json=pretty on a terminal, else short\n"
	"      --timeout=TIME           give up after TIME (500ms, 30s, 5min; 0: never)\n"
	"  -q, --quiet                  no remarks; status prints nothing\n"
	"  -h, --help                   this text, or that of the verb before it\n"
	"      --version\n"
	"\n"
	"SIZE: 4096, 0x1000, 512K, 8M, 1G. TIME: 500us, 50ms, 2s, 1min, 1h.\n"
	"Exit status: 0 done, 1 failure, 2 usage, 3 no such report, 4 permission denied,\n"
	"5 recorder not reachable, 6 not tracing, 7 busy, 8 more errors than --max-errors,\n"
	"124 timeout. See ptsnapctl(1).\n";

struct verb {
	const char *name;
	verb_fn run;
	const char *help; /* synopsis and options */
};

static int cmd_help(struct settings *s, int argc, char **argv);
static int cmd_version(struct settings *s, int argc, char **argv);

static const struct verb VERBS[] = {
	{"snapshot", cmd_snapshot,
	 "  snapshot [--reason=TEXT] [--last=SIZE|TIME] [--wait|--no-wait] [--no-decode]\n"
	 "           [--deadline=TIME] [--trigger=NAME] [--unit=UNIT] [--label=KEY=VALUE]\n"
	 "           [--from-monitor-env] [-o FILE]\n"
	 "        Take a snapshot, wait for its report and print a summary (--json: the\n"
	 "        report). -o writes the report as JSON. --last: only the newest SIZE a CPU,\n"
	 "        or TIME. --deadline: decode the newest part that can be done in TIME.\n"
	 "        --no-wait and --no-decode print the snapshot's ID. --trigger: as that trigger\n"
	 "        of ptsnap-triggers(5) says; --unit: for the unit that has failed; --label is\n"
	 "        shown by list. --from-monitor-env: for OnFailure=, all that by $MONITOR_UNIT, ...\n"},
	{"list", cmd_list,
	 "  list\n"
	 "        The stored snapshots, oldest first.\n"},
	{"fetch", cmd_fetch,
	 "  fetch ID|latest [--format=report|bundle] [-o FILE|-]\n"
	 "        A stored report or bundle. Without -o: a report is summarised on a\n"
	 "        terminal (--json=off: everywhere), else copied to standard output.\n"},
	{"pin", cmd_pin,
	 "  pin ID...|latest\n"
	 "        Have the recorder keep stored snapshots, whatever comes, until they are unpinned.\n"},
	{"unpin", cmd_unpin,
	 "  unpin ID...\n"
	 "        They may be forgotten again to make room, and deleted.\n"},
	{"delete", cmd_delete,
	 "  delete ID...\n"
	 "        Have the recorder forget stored snapshots, with their files.\n"},
	{"status", cmd_status,
	 "  status [--attrs]\n"
	 "        What the recorder is doing. --attrs: only how it traces: preset, terms, the\n"
	 "        perf_event_attrs that were really used.\n"},
	{"monitor", cmd_monitor,
	 "  monitor\n"
	 "        What the recorder logs, line by line: snapshots, losses, degradations.\n"},
	{"check", cmd_check,
	 "  check [--ptsnapd=PATH]\n"
	 "        Why tracing is not possible here, or worse than it could be, a line each with\n"
	 "        what mends it. Without a recorder: what `ptsnapd --check' finds.\n"
	 "  check --trace [--source=auto|intel_pt|emulated] [--for=TIME] [--walk=PATH]\n"
	 "           [--worker=PATH] [--ptsnapd=PATH]\n"
	 "        Trace a program of known branches, decode, compare: a page to paste.\n"},
	{"yield", cmd_yield,
	 "  yield [--for=TIME|--end]\n"
	 "        Hand Intel PT back so that another program can use it; --end takes it again.\n"},
	{"reload", cmd_reload,
	 "  reload\n"
	 "        Have the recorder read its configuration and triggers again (as SIGHUP does),\n"
	 "        and print what is wrong in them, or needs a restart.\n"},
	{"decode", cmd_decode,
	 "  decode [--view=report|summary|packets|branches|insns|events] [--hash] [-o OUT]\n"
	 "         [--deadline=TIME] [--threads=N] [--skim=psb|tip] [--repeat=N]\n"
	 "         [--max-errors=N] [--only-uid=UID] [--lines] [--symbols=DIR]...\n"
	 "         [--debuginfod] [--no-names] [--worker=PATH] [--sysroot=DIR]\n"
	 "         BUNDLE|PERF.DATA\n"
	 "  decode ... --raw-pt=FILE --raw-image=FILE[:OFFSET:LENGTH]@VADDR ...\n"
	 "         [--cpu=FAMILY/MODEL[/STEPPING]] [--mtc-freq=N] [--nom-freq=N]\n"
	 "         [--cpuid-0x15=EAX,EBX] [--pevent:primary=FILE ...]\n"
	 "        Decode without a recorder: a bundle, a file of perf record (with the files\n"
	 "        it names below DIR), or the bytes of one trace and of the files mapped. A\n"
	 "        report is summarised on a terminal (--json=off: everywhere), else JSON.\n"
	 "        --hash adds ipHash to --view=summary. --view=packets takes the options of\n"
	 "        libipt's ptdump, and --gap=N for what is before gap N of the report;\n"
	 "        --view=insns --ptxed those of ptxed. --deadline: the newest part, as much as\n"
	 "        can be decoded in TIME, and the last of each thread. --skim: only what the\n"
	 "        packets say, without code. --repeat measures: it decodes N times.\n"
	 "        --only-uid: only what is certainly that user's, and nothing of others.\n"
	 "        --lines: with source lines and inlined functions, by DWARF. --symbols: names\n"
	 "        and DWARF also of files below DIR, by build id or path (up to 8 of them).\n"
	 "        --debuginfod: also of those that the servers of $DEBUGINFOD_URLS have.\n"
	 "        --no-names: without symbol tables, for programs at whose it fails.\n"},
	{"export", cmd_export,
	 "  export [--format=perf.data] [--images=DIR] [-o FILE] ID|latest|BUNDLE\n"
	 "        A stored bundle, or a bundle's file, as a perf.data for `perf script\n"
	 "        --itrace=b' and `perf report'. --images: with the mapped files below DIR,\n"
	 "        for perf's --symfs, so that it can be read on another host.\n"},
	{"help", cmd_help, "  help [VERB]\n"},
	{"version", cmd_version, "  version\n"},
};

static const struct option NO_OPTIONS[] = {{NULL, 0, NULL, 0}};

static const struct verb *find_verb(const char *name)
{
	char valid[160] = "";
	size_t used = 0;

	for (size_t i = 0; i < ARRAY_SIZE(VERBS); i++) {
		if (strcmp(VERBS[i].name, name) == 0)
			return &VERBS[i];
		used += (size_t)snprintf(valid + used, sizeof(valid) - used, "%s%s", i ? ", " : "",
					 VERBS[i].name);
	}
	say("unknown verb %s; valid verbs: %s", name, valid);
	return NULL;
}

static int print_help(const struct verb *only)
{
	if (!only)
		fputs(HELP_HEAD, stdout);
	for (size_t i = 0; i < ARRAY_SIZE(VERBS); i++)
		if (!only || only == &VERBS[i])
			fputs(VERBS[i].help, stdout);
	fputs(HELP_TAIL, stdout);
	return EXIT_CODE_OK;
}

static int print_version(void)
{
	puts("ptsnapctl " PTSNAP_VERSION);
	return EXIT_CODE_OK;
}

static int cmd_help(struct settings *s, int argc, char **argv)
{
	const struct verb *verb = NULL;

	if (option_next(s, argc, argv, NO_OPTIONS, "", true) != OPTION_END)
		return EXIT_CODE_USAGE;
	if (optind < argc) {
		verb = find_verb(argv[optind]);
		if (!verb)
			return EXIT_CODE_USAGE;
	}
	if (optind + 1 < argc)
		return say_error(EXIT_CODE_USAGE, "help takes one verb, not %s too",
				 argv[optind + 1]);
	return print_help(verb);
}

static int cmd_version(struct settings *s, int argc, char **argv)
{
	if (option_next(s, argc, argv, NO_OPTIONS, "", true) != OPTION_END)
		return EXIT_CODE_USAGE;
	if (optind < argc)
		return say_error(EXIT_CODE_USAGE, "version takes no operand: %s", argv[optind]);
	return print_version();
}

static int run_verb(struct settings *s, int argc, char **argv)
{
	const struct verb *verb = find_verb(argv[0]);
	int r;

	if (!verb)
		return EXIT_CODE_USAGE;
	optind = 0; /* getopt(3): starts over with a new argv */
	r = verb->run(s, argc, argv);
	if (r != 0)
		return r;
	if (s->help && verb->run != cmd_help)
		return print_help(verb);
	if (s->version && verb->run != cmd_version)
		return print_version();
	return 0;
}

static int run(int argc, char **argv)
{
	struct settings s;

	settings_init(&s);
	if (option_next(&s, argc, argv, NO_OPTIONS, "", false) != OPTION_END)
		return EXIT_CODE_USAGE;
	if (s.help)
		return print_help(NULL);
	if (s.version)
		return print_version();
	if (optind == argc)
		return say_error(
			EXIT_CODE_USAGE,
			"a verb is missing: snapshot, list, fetch, pin, unpin, delete, status, monitor, check, yield, reload, decode, "
			"export, help or version");
	return run_verb(&s, argc - optind, argv + optind);
}

/* What we open must not get the number of a standard file that the caller closed: messages would
 * go into it, or data be written to nobody. Standard output stays one that cannot be written to. */
static void fill_standard_files(void)
{
	for (int fd = 0; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0 &&
		    open("/dev/null", fd == STDERR_FILENO ? O_WRONLY : O_RDONLY) < 0)
			_exit(EXIT_CODE_FAILURE);
}

int main(int argc, char **argv)
{
	int r;

	fill_standard_files();
	setlocale(LC_ALL, "");
	r = run(argc, argv);
	/* Data that did not arrive is a failure, whatever else went well. */
	if (fflush(stdout) == EOF || ferror(stdout)) {
		say("standard output: %s", strerror(errno));
		return r ? r : EXIT_CODE_FAILURE;
	}
	return r;
}
