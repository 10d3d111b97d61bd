/*
 * ptsnapctl: parses the common options, finds the verb in a table, and runs it.
 */
#include <errno.h>
#include <fcntl.h>
#include <langinfo.h>
#include <locale.h>
#include <stdio.h>
#include <string.h>

#include "proto/base.h"
#include "proto/standard.h"

#include "ctl/base/nearest.h"
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
	"      --json[=pretty|short|off]  print JSON or text on standard output\n"
	"  -j, --json                   --json=pretty on a terminal, else --json=short\n"
	"      --timeout=TIME           give up after TIME (500ms, 30s, 5min; 0: never)\n"
	"  -q, --quiet                  print no remarks; status prints nothing\n"
	"  -h, --help                   show this help, or the help of the verb\n"
	"      --version                show the version\n"
	"\n"
	"SIZE: 4096, 0x1000, 512K, 8M, 1G. TIME: 500us, 50ms, 2s, 1min, 1h.\n"
	"Exit status: 0 success, 1 failure, 2 wrong usage, 3 no such report, 4 permission denied,\n"
	"5 recorder not reachable, 6 not tracing, 7 busy, 8 more errors than --max-errors,\n"
	"124 timeout. See ptsnapctl(1).\n";

#define VERB_MAX 15 /* bytes of a name */

struct verb {
	char name[VERB_MAX + 1];
	verb_fn run;
	const char *help; /* synopsis and options */
};

static int cmd_help(struct settings *s, int argc, char **argv);
static int cmd_version(struct settings *s, int argc, char **argv);

static const struct verb VERBS[] = {
	{"snapshot", cmd_snapshot,
	 "  snapshot [--reason=TEXT] [--last=SIZE|TIME] [--wait|--no-wait] [--no-decode]\n"
	 "           [--deadline=TIME] [--trigger=NAME] [--unit=UNIT] [--label=KEY=VALUE]\n"
	 "           [--from-monitor-env] [--baseline=ID|latest|FILE] [-o FILE]\n"
	 "        Take a snapshot, wait for its report, and print the page of info (with\n"
	 "        --json, the report).\n"
	 "        -o writes the report to FILE, as JSON. --last keeps only the newest SIZE of\n"
	 "        each CPU, or the newest TIME. --deadline decodes as much of the newest part as\n"
	 "        can be done in TIME. --no-wait and --no-decode print the ID of the snapshot.\n"
	 "        --trigger takes the settings of a trigger (ptsnap-triggers(5)). --unit names\n"
	 "        the unit that failed. list shows each --label. --from-monitor-env takes unit,\n"
	 "        reason and labels from $MONITOR_UNIT and so on, for a unit in OnFailure=.\n"
	 "        --baseline ends the page with what differs from another snapshot, as for info;\n"
	 "        latest is the newest one before this one.\n"},
	{"list", cmd_list,
	 "  list [--limit=N] [--before=ID] [--no-pager]\n"
	 "        List the stored snapshots, oldest first: all, the newest N, or those older than\n"
	 "        ID.\n"},
	{"fetch", cmd_fetch,
	 "  fetch ID|latest [--format=report|bundle] [--no-pager] [-o FILE|-]\n"
	 "        Get a stored report or bundle. Without -o, print a summary of the report on a\n"
	 "        terminal (--json=off: always), and the report itself elsewhere.\n"},
	{"info", cmd_info,
	 "  info [--baseline=ID|latest|FILE] [--from=TIME] [--to=TIME] [--cpu=N] [--pid=N]\n"
	 "       [--tid=N] [--comm=GLOB] [--function=GLOB] [--image=GLOB] [--no-pager]\n"
	 "       [ID|latest|FILE]\n"
	 "        Show what happened, on one page: what stands out, and where each thread was at\n"
	 "        the trigger. FILE is a saved report, a bundle or a perf.data. --baseline ends the\n"
	 "        page with what differs from another snapshot, such as one of a normal minute (see\n"
	 "        diff); with --json, an object of report and difference is printed.\n"
	 "        --from and --to decode that part again: 20ms is from the begin of the trace, -20ms\n"
	 "        before the trigger. The other options select threads and what stands out.\n"},
	{"diff", cmd_diff,
	 "  diff [--limit=N] [--no-pager] A B\n"
	 "        Show on one page what differs in B from A, by more than counting noise: functions,\n"
	 "        durations of calls, threads, gaps. A and B are IDs, latest, or files as for info.\n"
	 "        --limit is the number of rows of each table (8; with --json, all).\n"},
	{"functions", cmd_tables,
	 "  functions [--from=TIME] [--to=TIME] [--cpu=N] [--pid=N] [--tid=N] [--comm=GLOB]\n"
	 "            [--function=GLOB] [--image=GLOB] [--histogram] [--limit=N] [--no-pager]\n"
	 "            [ID|latest|FILE]\n"
	 "        Show the functions of a report, those with most own instructions first:\n"
	 "        instructions, calls, and how long calls took. FILE is as for info. --from to\n"
	 "        --comm decode again, and count only what ran then, there, and in such threads.\n"
	 "        --histogram shows how long their calls took, a line for each doubling.\n"},
	{"threads", cmd_tables,
	 "  threads [--from=TIME] [--to=TIME] [--cpu=N] [--pid=N] [--tid=N] [--comm=GLOB]\n"
	 "          [--function=GLOB] [--image=GLOB] [--limit=N] [--no-pager] [ID|latest|FILE]\n"
	 "        Show the threads of a report: what each was doing at the trigger, and where.\n"
	 "        --function shows threads with such a function in their call stacks.\n"},
	{"processes", cmd_tables,
	 "  processes [--from=TIME] [--to=TIME] [--cpu=N] [--pid=N] [--tid=N] [--comm=GLOB]\n"
	 "            [--image=GLOB] [--limit=N] [--no-pager] [ID|latest|FILE]\n"
	 "        Show the processes of a report: with --cpu, --tid and --comm, those that have\n"
	 "        such a thread.\n"},
	{"images", cmd_tables,
	 "  images [--from=TIME] [--to=TIME] [--cpu=N] [--pid=N] [--tid=N] [--comm=GLOB]\n"
	 "         [--image=GLOB] [--limit=N] [--no-pager] [ID|latest|FILE]\n"
	 "        Show the executable files of a report, and why code of a file is missing.\n"},
	{"gaps", cmd_tables,
	 "  gaps [--from=TIME] [--to=TIME] [--cpu=N] [--limit=N] [--no-pager] [ID|latest|FILE]\n"
	 "        Show what the report does not know, where, and why.\n"},
	{"turns", cmd_tables,
	 "  turns [--from=TIME] [--to=TIME] [--cpu=N] [--pid=N] [--tid=N] [--comm=GLOB]\n"
	 "        [--limit=N] [--no-pager] [ID|latest|FILE]\n"
	 "        Show which thread had which CPU when. --limit shows the last N turns.\n"},
	{"timeline", cmd_timeline,
	 "  timeline [--picture] [--from=TIME] [--to=TIME] [--cpu=N] [--pid=N] [--tid=N]\n"
	 "           [--comm=GLOB] [--last=N|--limit=N] [--no-pager] [ID|latest|FILE]\n"
	 "        Show in the order of time what happened on all CPUs: which thread ran when and\n"
	 "        for how long, gaps, changes of frequency, PTWRITE, interrupts, the trigger.\n"
	 "        --picture draws a row for each CPU, with a letter for each thread. FILE is as\n"
	 "        for info.\n"},
	{"pin", cmd_pin,
	 "  pin ID...|latest\n"
	 "        Keep stored snapshots until they are unpinned, even if room gets short.\n"},
	{"unpin", cmd_unpin,
	 "  unpin ID...\n"
	 "        Let the recorder delete stored snapshots again to make room.\n"},
	{"delete", cmd_delete,
	 "  delete ID...\n"
	 "        Delete stored snapshots and their files.\n"},
	{"status", cmd_status,
	 "  status [--attrs]\n"
	 "        Show what the recorder is doing. --attrs shows only how it traces: preset,\n"
	 "        terms, and the perf_event_attrs in use.\n"},
	{"monitor", cmd_monitor,
	 "  monitor\n"
	 "        Follow the recorder's log: snapshots, losses, degradations.\n"},
	{"check", cmd_check,
	 "  check [--ptsnapd=PATH]\n"
	 "        Say why tracing is not possible here, or is worse than it could be, and what\n"
	 "        to do, one line each. Without a recorder, run `ptsnapd --check'.\n"
	 "  check --trace [--source=auto|intel_pt|emulated] [--for=TIME] [--walk=PATH]\n"
	 "           [--worker=PATH] [--ptsnapd=PATH]\n"
	 "        Trace a program with known branches, decode the trace, compare, and print one\n"
	 "        page that can be pasted into a bug report.\n"},
	{"yield", cmd_yield,
	 "  yield [--for=TIME|--end]\n"
	 "        Free Intel PT for another program. --end gives it back to the recorder.\n"},
	{"trigger", cmd_trigger,
	 "  trigger [list]\n"
	 "        List the triggers: what fires them, their state, snapshots, and last events.\n"
	 "  trigger add NAME [--pressure=cpu|memory|io] [--pressure-stall=TIME]\n"
	 "          [--pressure-window=TIME] [--kernel-log=hung-task|soft-lockup|hard-lockup|\n"
	 "          rcu-stall|machine-check|oops|oom-kill] [--kernel-log-match=GLOB]\n"
	 "          [--path-appears=PATH] [--fifo=PATH] [--metric-file=PATH] [--metric=SERIES]\n"
	 "          [--metric-above=N] [--metric-below=N]\n"
	 "          [--on=control|unit|pressure|kernel-log|path|fifo|metric] [--units=GLOB]\n"
	 "          [--watch=yes|no] [--burst=N] [--interval=TIME] [--min-fill=TIME] [--count=N]\n"
	 "          [--events=N] [--events-within=TIME] [--expire-after=TIME]\n"
	 "          [--last-bytes=SIZE] [--last-time=TIME] [--decode=yes|no] [--deadline=TIME]\n"
	 "          [--reason=TEXT] [--label=KEY=VALUE] [--enabled=yes|no]\n"
	 "        Add a trigger until the recorder ends. Options are the settings of\n"
	 "        ptsnap-triggers(5): --pressure-stall=100ms is PressureStall=100ms.\n"
	 "  trigger remove NAME...\n"
	 "        Remove triggers that `trigger add' added.\n"
	 "  trigger test NAME\n"
	 "        Make the event that the trigger waits for, where that is harmless, and print\n"
	 "        the ID of the snapshot.\n"},
	{"reload", cmd_reload,
	 "  reload\n"
	 "        Make the recorder read its configuration and triggers again (like SIGHUP), and\n"
	 "        print what is wrong in them, or needs a restart.\n"},
	{"decode", cmd_decode,
	 "  decode [--view=report|summary|packets|branches|insns|events|calls] [--hash]\n"
	 "         [-o OUT]\n"
	 "         [--deadline=TIME] [--threads=N] [--memory=SIZE] [--skim=psb|tip]\n"
	 "         [--repeat=N] [--max-errors=N] [--only-uid=UID] [--lines] [--symbols=DIR]...\n"
	 "         [--no-installed-symbols] [--debuginfod] [--no-names] [--worker=PATH]\n"
	 "         [--no-pager] [--sysroot=DIR]\n"
	 "         ID|latest|BUNDLE|PERF.DATA\n"
	 "  decode ... --raw-pt=FILE --raw-image=FILE[:OFFSET:LENGTH]@VADDR ...\n"
	 "         [--cpu=FAMILY/MODEL[/STEPPING]] [--mtc-freq=N] [--nom-freq=N]\n"
	 "         [--cpuid-0x15=EAX,EBX] [--pt-config=N] [--pevent:primary=FILE ...]\n"
	 "        Decode a stored snapshot, or, without a recorder, a bundle, a perf.data, or the\n"
	 "        bytes of one trace with the files that were mapped. Prints a summary of the\n"
	 "        report on a terminal (--json=off: always), and JSON elsewhere.\n"
	 "        --sysroot        look for the files that a perf.data names below DIR\n"
	 "        --hash           add ipHash to --view=summary\n"
	 "        --view=packets   takes the options of libipt's ptdump; --gap=N shows the\n"
	 "                         packets before gap N of the report\n"
	 "        --view=insns     with --ptxed, takes the options of libipt's ptxed\n"
	 "        --deadline       decode as much of the newest part as can be done in TIME,\n"
	 "                         and the last part of each thread\n"
	 "        --skim           use only what the packets say, without code\n"
	 "        --repeat         decode N times, to measure speed\n"
	 "        --only-uid       show only what certainly belongs to this user\n"
	 "        --lines          add source lines and inlined functions, from DWARF\n"
	 "        --symbols        look for symbols and DWARF in files below DIR, by build ID or\n"
	 "                         path (up to 8 times)\n"
	 "        --no-installed-symbols  do not look in /usr/lib/debug, which comes last\n"
	 "        --debuginfod     ask the servers of $DEBUGINFOD_URLS as well\n"
	 "        --no-names       skip symbol tables; use this if one of them crashes the\n"
	 "                         decoder\n"},
	{"view", cmd_view,
	 "  view [--limit=N] [--no-suspects] [--from=TIME] [--to=TIME] [--cpu=N] [--pid=N]\n"
	 "       [--tid=N] [--comm=GLOB] [--function=GLOB] [--image=GLOB] [--symbols=DIR]...\n"
	 "       [--debuginfod] [--no-names] [--lines] [--worker=PATH] [--sysroot=DIR]\n"
	 "       [-o PAGE.html]\n"
	 "       [ID|latest|FILE]\n"
	 "        Write the calls of a snapshot as a page for a browser, in one file: the\n"
	 "        timeline of CPUs and threads, call stacks, flame graph, functions, search,\n"
	 "        and links to what stands out, for which a second decode makes the report\n"
	 "        (--no-suspects: leave it out).\n"
	 "        FILE is a bundle, a perf.data, or a saved call stream. --limit is the number of\n"
	 "        calls in the page (8000000). --from and so on choose a part, as for export.\n"
	 "        Without -o, the page is ptsnap-NAME.html, or goes to a pipe.\n"},
	{"calls", cmd_calls,
	 "  calls [--from=TIME] [--to=TIME] [--cpu=N] [--pid=PID] [--thread=TID] [--comm=GLOB]\n"
	 "        [--function=GLOB] [--image=GLOB] [--longer-than=TIME] [--depth=N]\n"
	 "        [--last=N|--limit=N] [--lines] [--no-pager] [--symbols=DIR]... [--debuginfod]\n"
	 "        [--no-names] [--sysroot=DIR] [--worker=PATH] [ID|latest|BUNDLE|PERF.DATA]\n"
	 "        Show calls, one a line, indented: when each began, how long it took and how\n"
	 "        much of that on a CPU, and how it ended if not by a return. --from=-20ms is\n"
	 "        20 ms before the trigger, --from=20ms 20 ms behind the begin of the trace.\n"
	 "        --function shows calls of these functions and what they call, --depth=1 only\n"
	 "        the outermost calls shown. --last shows the last N, --limit the first N.\n"
	 "        --lines also shows functions that the compiler inlined (from DWARF), where\n"
	 "        calls were made in them; how long they took is not known.\n"},
	{"branches", cmd_listing,
	 "  branches [--from=TIME] [--to=TIME] [--cpu=N] [--pid=N] [--tid=N] [--comm=GLOB]\n"
	 "           [--function=GLOB] [--image=GLOB] [--last=N|--limit=N] [--lines]\n"
	 "           [--no-pager] [--symbols=DIR]... [--debuginfod] [--no-names]\n"
	 "           [--sysroot=DIR] [--worker=PATH] [ID|latest|BUNDLE|PERF.DATA]\n"
	 "        Show taken branches, one a line: when, which CPU and thread, which kind, from\n"
	 "        where and to where; and gaps in their places. --function and --image show\n"
	 "        branches from or to such code. --last shows the last N, --limit the first N.\n"},
	{"insns", cmd_listing,
	 "  insns [--syntax=att|intel] [--from=TIME] [--to=TIME] [--cpu=N] [--pid=N] [--tid=N]\n"
	 "        [--comm=GLOB] [--function=GLOB] [--image=GLOB] [--last=N|--limit=N] [--lines]\n"
	 "        [--no-pager] [--symbols=DIR]... [--debuginfod] [--no-names] [--sysroot=DIR]\n"
	 "        [--worker=PATH] [ID|latest|BUNDLE|PERF.DATA]\n"
	 "        Show executed instructions, one a line, in AT&T syntax (--syntax=intel:\n"
	 "        Intel's), with address, bytes and function; with --lines also the source line.\n"},
	{"export", cmd_export,
	 "  export [--format=perf.data] [--images=DIR] [-o FILE] [ID|latest|BUNDLE]\n"
	 "        Write a bundle as a perf.data, for `perf script --itrace=b' and `perf\n"
	 "        report'. --images also writes the mapped files below DIR, for perf's option\n"
	 "        --symfs, so that another host can read the perf.data.\n"
	 "  export --format=speedscope|perfetto|pprof|collapsed|callgrind\n"
	 "         --format=sql|csv|csv-turns|csv-gaps|csv-marks|brstack\n"
	 "         [--weight=cpu|wall|instructions] [--symbols=DIR]... [--debuginfod]\n"
	 "         [--no-names] [--lines] [--worker=PATH] [--sysroot=DIR] [--from=TIME]\n"
	 "         [--to=TIME]\n"
	 "         [--cpu=N] [--pid=N] [--tid=N] [--comm=GLOB] [--function=GLOB] [--image=GLOB]\n"
	 "         [-o FILE] [ID|latest|BUNDLE|PERF.DATA]\n"
	 "        Decode, and write the calls of all threads: for speedscope.app, for\n"
	 "        ui.perfetto.dev, for go tool pprof, as stacks for flamegraph.pl (--weight), for\n"
	 "        kcachegrind, as tables for sqlite3 or a spreadsheet; or the branches as `perf\n"
	 "        script -F ip,brstack' prints them. FILE.pftrace and so on need no --format.\n"
	 "        --from, --to     of this span: 20ms from the begin, -20ms before the trigger\n"
	 "        --function       of these functions, with all that they call; --image: of the\n"
	 "                         functions of these files\n"},
	{"help", cmd_help, "  help [VERB]\n"},
	{"version", cmd_version, "  version\n"},
};

/* The list of all verbs as text. */
#define VERBS_TEXT (ARRAY_SIZE(VERBS) * (VERB_MAX + sizeof(", ")))

static const struct option NO_OPTIONS[] = {{NULL, 0, NULL, 0}};

/* "snapshot, list, ...". */
static void list_verbs(char *text, size_t size)
{
	size_t used = 0;

	for (size_t i = 0; i < ARRAY_SIZE(VERBS) && used < size; i++)
		used += (size_t)snprintf(text + used, size - used, "%s%s", i ? ", " : "",
					 VERBS[i].name);
}

static const struct verb *find_verb(const char *name)
{
	char valid[VERBS_TEXT] = "", hint[NEAREST_MAX + 32];
	struct nearest nearest;

	nearest_init(&nearest, name);
	for (size_t i = 0; i < ARRAY_SIZE(VERBS); i++) {
		if (strcmp(VERBS[i].name, name) == 0)
			return &VERBS[i];
		nearest_try(&nearest, VERBS[i].name);
	}
	list_verbs(valid, sizeof(valid));
	say("unknown verb %s%s; valid verbs: %s", name,
	    nearest_text(&nearest, "", hint, sizeof(hint)), valid);
	return NULL;
}

static int say_missing(void)
{
	char valid[VERBS_TEXT] = "";

	list_verbs(valid, sizeof(valid));
	return say_error(EXIT_CODE_USAGE, "a verb is missing; valid verbs: %s", valid);
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
		return say_missing();
	return run_verb(&s, argc - optind, argv + optind);
}

int main(int argc, char **argv)
{
	int r;

	if (!standard_fill())
		_exit(EXIT_CODE_FAILURE);
	setlocale(LC_ALL, "");
	text_escape_all(strcmp(nl_langinfo(CODESET), "UTF-8") != 0);
	r = run(argc, argv);
	/* Output that was not written is a failure. */
	if (fflush(stdout) == EOF || ferror(stdout)) {
		say("standard output: %s", strerror(errno));
		return r ? r : EXIT_CODE_FAILURE;
	}
	return r;
}
