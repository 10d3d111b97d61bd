/*
 * Parses the options of `ptsnapctl decode', and checks which of them go together.
 */
#include "ctl/decode/decode_option.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "proto/base.h"
#include "proto/report.h"

#include "ctl/base/file.h"
#include "ctl/base/say.h"
#include "ctl/base/size.h"

/* --- The options that choose how lines look: name, bits, and the views that take the option --- */

/* A set of views, and ptxed's form of the view of instructions. */
enum target {
	PACKETS = 1,  /* --view=packets */
	PTXED = 2,    /* --view=insns --ptxed */
	INSNS = 4,    /* --view=insns */
	BRANCHES = 8, /* --view=branches */
};

#define SB_FORMS (WORKER_SHOW_SB_COMPACT | WORKER_SHOW_SB_VERBOSE)

/* clang-format off */
static const struct show_option {
	const char *name;
	uint64_t sets, clears; /* bits of WORKER_SHOW_* */
	unsigned int targets;
} SHOW_TABLE[] = {
	{"no-pad", WORKER_SHOW_NO_PAD, 0, PACKETS},
	{"no-timing", WORKER_SHOW_NO_TIMING, 0, PACKETS},
	{"no-cyc", WORKER_SHOW_NO_CYC, 0, PACKETS},
	{"no-offset", WORKER_SHOW_NO_OFFSET, 0, PACKETS},
	{"no-sync", WORKER_SHOW_NO_SYNC, 0, PACKETS},
	{"raw", WORKER_SHOW_RAW, 0, PACKETS},
	{"lastip", WORKER_SHOW_LASTIP, 0, PACKETS},
	{"exec-mode", WORKER_SHOW_EXEC_MODE, 0, PACKETS},
	{"time", WORKER_SHOW_TIME, 0, PACKETS | BRANCHES},
	{"places", WORKER_SHOW_TIME | WORKER_SHOW_PLACES, 0, BRANCHES},
	{"time-delta", WORKER_SHOW_TIME_DELTA, 0, PACKETS},
	{"tcal", WORKER_SHOW_TCAL, 0, PACKETS},
	{"no-tcal", WORKER_SHOW_NO_TCAL, 0, PACKETS},
	{"no-wall-clock", WORKER_SHOW_NO_WALL_CLOCK, 0, PACKETS},
	{"keep-tcal-on-ovf", WORKER_SHOW_KEEP_TCAL, 0, PACKETS},
	{"block:keep-tcal-on-ovf", WORKER_SHOW_KEEP_TCAL, 0, PTXED},
	{"insn:keep-tcal-on-ovf", WORKER_SHOW_KEEP_TCAL, 0, PTXED},
	{"sb", WORKER_SHOW_SB_COMPACT, SB_FORMS, PACKETS | PTXED},
	{"sb:compact", WORKER_SHOW_SB_COMPACT, SB_FORMS, PACKETS | PTXED},
	{"sb:verbose", WORKER_SHOW_SB_VERBOSE, SB_FORMS, PACKETS | PTXED},
	{"sb:filename", WORKER_SHOW_SB_FILENAME, 0, PACKETS | PTXED},
	{"sb:offset", WORKER_SHOW_SB_OFFSET, 0, PACKETS | PTXED},
	{"sb:time", WORKER_SHOW_SB_TIME, 0, PACKETS | PTXED},
	{"sb:switch", WORKER_SHOW_SB_SWITCH, 0, PTXED},
	{"sb:warn", WORKER_SHOW_SB_WARN, 0, PACKETS | PTXED},
	{"ptxed", WORKER_SHOW_PTXED, 0, INSNS},
	{"event:time", WORKER_SHOW_EVENT_TIME, 0, PTXED},
	{"event:ip", WORKER_SHOW_EVENT_IP, 0, PTXED},
	{"event:tick", WORKER_SHOW_EVENT_TICK, 0, PTXED},
	{"event:iflags", WORKER_SHOW_EVENT_IFLAGS, 0, PTXED},
	{"resync-on-error", WORKER_SHOW_RESYNC_ON_ERROR, 0, PTXED},
	{"stat", WORKER_SHOW_STAT, 0, PTXED},
	{"stat:insn", WORKER_SHOW_STAT | WORKER_SHOW_STAT_INSN, 0, PTXED},
	{"stat:blocks", WORKER_SHOW_STAT | WORKER_SHOW_STAT_BLOCKS, 0, PTXED},
	{"insn-decoder", WORKER_SHOW_INSN_DECODER, 0, PTXED},
	{"block-decoder", 0, WORKER_SHOW_INSN_DECODER, PTXED},
	{"block:show-blocks", WORKER_SHOW_BLOCKS, 0, PTXED},
	{"block:end-on-call", WORKER_SHOW_END_ON_CALL, 0, PTXED},
	{"block:end-on-jump", WORKER_SHOW_END_ON_JUMP, 0, PTXED},
};
/* clang-format on */

_Static_assert(ARRAY_SIZE(SHOW_TABLE) <= SHOW_OPTIONS_MAX, "SHOW_OPTIONS_MAX is too small");

size_t show_option_table(struct option to[static SHOW_OPTIONS_MAX], int first)
{
	for (size_t i = 0; i < ARRAY_SIZE(SHOW_TABLE); i++)
		to[i] = (struct option){SHOW_TABLE[i].name, no_argument, NULL, first + (int)i};
	return ARRAY_SIZE(SHOW_TABLE);
}

void show_option_take(struct show_options *s, size_t index)
{
	assert(index < ARRAY_SIZE(SHOW_TABLE));
	s->given |= UINT64_C(1) << index;
	s->show &= ~SHOW_TABLE[index].clears;
	s->show |= SHOW_TABLE[index].sets;
}

static const char *target_text(unsigned int targets)
{
	switch (targets) {
	case PACKETS: return "--view=packets";
	case PTXED: return "--view=insns --ptxed";
	case INSNS: return "--view=insns";
	case PACKETS | BRANCHES: return "--view=packets or --view=branches";
	default: return "--view=packets or --view=insns --ptxed";
	}
}

bool show_option_check(const struct show_options *s, enum worker_view view)
{
	unsigned int targets = view == WORKER_VIEW_PACKETS    ? PACKETS
			       : view == WORKER_VIEW_BRANCHES ? BRANCHES
			       : view != WORKER_VIEW_INSNS    ? 0
			       : s->show & WORKER_SHOW_PTXED  ? INSNS | PTXED
							      : INSNS;

	for (size_t i = 0; i < ARRAY_SIZE(SHOW_TABLE); i++) {
		if (!(s->given >> i & 1) || (SHOW_TABLE[i].targets & targets))
			continue;
		say("--%s needs %s", SHOW_TABLE[i].name, target_text(SHOW_TABLE[i].targets));
		return false;
	}
	if ((s->show & WORKER_SHOW_TIME) && (s->show & WORKER_SHOW_TCAL)) {
		say("--time and --tcal exclude each other");
		return false;
	}
	return true;
}

/* --- The command line --- */

/* libipt's mtc_freq is MTCFreq of IA32_RTIT_CTL: four bits. */
#define MAX_MTC_FREQ 15
/* libipt's nom_freq is the maximum non-turbo ratio of MSR_PLATFORM_INFO: eight bits. */
#define MAX_NOM_FREQ 255
#define NUMBER_VALID "a number, decimal or 0x"

enum {
	OWN_VIEW = OPTION_OWN,
	OWN_HASH,
	OWN_SYSROOT,
	OWN_WORKER,
	OWN_MAX_ERRORS,
	OWN_RAW_PT,
	OWN_RAW_IMAGE,
	OWN_CPU,
	OWN_MTC_FREQ,
	OWN_NOM_FREQ,
	OWN_PT_CONFIG,
	OWN_CPUID_0X15,
	OWN_CPUID_0X15_EAX,
	OWN_CPUID_0X15_EBX,
	OWN_GAP,
	OWN_RETSTACK,
	OWN_REPEAT,
	OWN_THREADS,
	OWN_MEMORY,
	OWN_DEADLINE,
	OWN_REPORT_SIZE,
	OWN_SKIM,
	OWN_ONLY_UID,
	OWN_LINES,
	OWN_NO_NAMES,
	OWN_SYMBOLS,
	OWN_NOT_INSTALLED,
	OWN_DEBUGINFOD,
	OWN_NO_PAGER,
	OWN_SHOW,
	OWN_PEVENT = OWN_SHOW + SHOW_OPTIONS_MAX,
	OWN_END = OWN_PEVENT + PEVENT_OPTIONS_MAX,
};

static const struct option OWN[] = {
	{"view", required_argument, NULL, OWN_VIEW},
	{"hash", no_argument, NULL, OWN_HASH},
	{"sysroot", required_argument, NULL, OWN_SYSROOT},
	{"output", required_argument, NULL, 'o'},
	{"worker", required_argument, NULL, OWN_WORKER},
	{"max-errors", required_argument, NULL, OWN_MAX_ERRORS},
	{"raw-pt", required_argument, NULL, OWN_RAW_PT},
	{"raw-image", required_argument, NULL, OWN_RAW_IMAGE},
	{"cpu", required_argument, NULL, OWN_CPU},
	{"mtc-freq", required_argument, NULL, OWN_MTC_FREQ},
	{"nom-freq", required_argument, NULL, OWN_NOM_FREQ},
	{"pt-config", required_argument, NULL, OWN_PT_CONFIG},
	{"cpuid-0x15", required_argument, NULL, OWN_CPUID_0X15},
	{"cpuid-0x15.eax", required_argument, NULL, OWN_CPUID_0X15_EAX},
	{"cpuid-0x15.ebx", required_argument, NULL, OWN_CPUID_0X15_EBX},
	{"gap", required_argument, NULL, OWN_GAP},
	{"retstack", required_argument, NULL, OWN_RETSTACK},
	{"repeat", required_argument, NULL, OWN_REPEAT},
	{"threads", required_argument, NULL, OWN_THREADS},
	{"memory", required_argument, NULL, OWN_MEMORY},
	{"deadline", required_argument, NULL, OWN_DEADLINE},
	{"report-size", required_argument, NULL, OWN_REPORT_SIZE},
	{"skim", required_argument, NULL, OWN_SKIM},
	{"only-uid", required_argument, NULL, OWN_ONLY_UID},
	{"lines", no_argument, NULL, OWN_LINES},
	{"no-names", no_argument, NULL, OWN_NO_NAMES},
	{"symbols", required_argument, NULL, OWN_SYMBOLS},
	{"no-installed-symbols", no_argument, NULL, OWN_NOT_INSTALLED},
	{"debuginfod", no_argument, NULL, OWN_DEBUGINFOD},
	{"no-pager", no_argument, NULL, OWN_NO_PAGER},
};

#define N_OPTIONS (ARRAY_SIZE(OWN) + SHOW_OPTIONS_MAX + PEVENT_OPTIONS_MAX + 1)

void decode_request_init(struct decode_request *q, struct settings *s)
{
	*q = (struct decode_request){.settings = s, .max_errors = UINT64_MAX};
	q->options.report_limit = REPORT_DECODE_LIMIT;
	q->options.memory_limit = worker_memory();
	raw_init(&q->raw);
}

void decode_request_done(struct decode_request *q)
{
	raw_done(&q->raw);
}

static bool take_number(const char *option, uint32_t min, uint32_t max, uint32_t *ret)
{
	uint64_t value = 0;

	if (!option_good(size_parse_number(optarg, &value), option, optarg,
			 "a number, decimal or 0x"))
		return false;
	if (value < min || value > max) {
		say("%s=%s: give a number from %u to %u", option, optarg, min, max);
		return false;
	}
	*ret = (uint32_t)value;
	return true;
}

/* The least report says little; a larger one could not be read (json-c). */
#define LEAST_REPORT (64u << 10)

static bool take_report_size(struct decode_request *q)
{
	uint64_t value = 0;

	if (!option_good(size_parse_bytes(optarg, &value), "--report-size", optarg, SIZE_VALID))
		return false;
	if (value < LEAST_REPORT || value > REPORT_LIST_LIMIT) {
		say("--report-size=%s: give a size from 64K to 16M", optarg);
		return false;
	}
	q->has_report_size = true;
	q->options.report_limit = value;
	return true;
}

static bool take_memory(uint64_t *ret)
{
	uint64_t value = 0;

	if (!option_good(size_parse_bytes(optarg, &value), "--memory", optarg, SIZE_VALID))
		return false;
	if (value < WORKER_MEMORY_MIN) {
		say("--memory=%s: give a size of 64M or more", optarg);
		return false;
	}
	*ret = value;
	return true;
}

/* Takes an option for raw files. */
static bool take_raw(struct raw *raw, int option)
{
	switch (option) {
	case OWN_RAW_PT: raw->pt_path = optarg; return true;
	case OWN_RAW_IMAGE:
		return option_good(raw_add_image(raw, optarg), "--raw-image", optarg,
				   RAW_IMAGE_VALID);
	case OWN_CPU: return option_good(raw_set_cpu(raw, optarg), "--cpu", optarg, RAW_CPU_VALID);
	case OWN_MTC_FREQ: return take_number("--mtc-freq", 0, MAX_MTC_FREQ, &raw->mtc_period);
	case OWN_NOM_FREQ:
		return take_number("--nom-freq", 0, MAX_NOM_FREQ, &raw->max_nonturbo_ratio);
	case OWN_PT_CONFIG:
		return option_good(size_parse_number(optarg, &raw->pt_config), "--pt-config",
				   optarg, NUMBER_VALID);
	case OWN_CPUID_0X15:
		return option_good(raw_set_cpuid_0x15(raw, optarg), "--cpuid-0x15", optarg,
				   RAW_CPUID_VALID);
	case OWN_CPUID_0X15_EAX:
		return take_number("--cpuid-0x15.eax", 0, UINT32_MAX, &raw->tsc_art_den);
	case OWN_CPUID_0X15_EBX:
		return take_number("--cpuid-0x15.ebx", 0, UINT32_MAX, &raw->tsc_art_num);
	default: return pevent_option_take(&raw->pevents, (size_t)(option - OWN_PEVENT), optarg);
	}
}

/* Takes an option that says what is decoded, and how. */
static bool take_how(struct decode_options *o, int option)
{
	static const char *const views[] = {"report", "summary", "packets", "branches",
					    "insns",  "events",	 "calls",   NULL};
	static const char *const retstacks[] = {"auto", "sdm", "libipt", NULL};
	static const char *const skims[] = {"psb", "tip", NULL};
	uint64_t usec = 0;
	int i, r;

	switch (option) {
	case OWN_VIEW:
		i = option_choice("--view", optarg, views);
		if (i >= 0)
			o->view = (uint32_t)i;
		return i >= 0;
	case OWN_HASH: o->hash = true; return true;
	case OWN_GAP:
		if (!option_good(size_parse_number(optarg, &o->gap), "--gap", optarg, NUMBER_VALID))
			return false;
		if (o->gap == 0)
			say("--gap=%s: a report counts its gaps from 1", optarg);
		return o->gap != 0;
	case OWN_RETSTACK:
		i = option_choice("--retstack", optarg, retstacks);
		if (i >= 0)
			o->retstack = (uint32_t)i;
		return i >= 0;
	case OWN_REPEAT: return take_number("--repeat", 1, WORKER_MAX_REPEAT, &o->repeat);
	case OWN_THREADS: return take_number("--threads", 0, WORKER_MAX_THREADS, &o->threads);
	case OWN_MEMORY: return take_memory(&o->memory_limit);
	case OWN_DEADLINE:
		r = size_parse_time(optarg, &usec);
		if (r == 0 && __builtin_mul_overflow(usec, UINT64_C(1000), &o->deadline_ns))
			r = -ERANGE;
		o->has_deadline = true;
		return option_good(r, "--deadline", optarg, TIME_VALID);
	case OWN_SKIM:
		i = option_choice("--skim", optarg, skims);
		if (i >= 0)
			o->skim = i == 0 ? WORKER_SKIM_PSB : WORKER_SKIM_TIP;
		return i >= 0;
	case OWN_ONLY_UID:
		o->has_only_uid = true;
		return take_number("--only-uid", 0, UINT32_MAX - 1, &o->only_uid);
	case OWN_LINES: o->lines = true; return true;
	case OWN_NO_NAMES: o->no_symbols = true; return true;
	default: return false;
	}
}

static bool take(struct decode_request *q, int option, bool *ret_raw)
{
	switch (option) {
	case OWN_SYSROOT: q->sysroot = optarg; return true;
	case OWN_REPORT_SIZE: return take_report_size(q);
	case 'o': q->output = optarg; return true;
	case OWN_WORKER: q->worker = optarg; return true;
	case OWN_MAX_ERRORS:
		return option_good(size_parse_number(optarg, &q->max_errors), "--max-errors",
				   optarg, NUMBER_VALID);
	case OWN_SYMBOLS:
		if (q->n_symbols == ARRAY_SIZE(q->symbols)) {
			say("--symbols=%s: give up to %zu directories", optarg,
			    ARRAY_SIZE(q->symbols));
			return false;
		}
		q->symbols[q->n_symbols++] = optarg;
		return true;
	case OWN_NOT_INSTALLED: q->not_installed = true; return true;
	case OWN_DEBUGINFOD: q->debuginfod = true; return true;
	case OWN_NO_PAGER: q->no_pager = true; return true;
	default: break;
	}
	if (option >= OWN_SHOW && option < OWN_PEVENT) {
		show_option_take(&q->show, (size_t)(option - OWN_SHOW));
		return true;
	}
	if ((option < OWN_RAW_PT || option > OWN_CPUID_0X15_EBX) && option < OWN_PEVENT)
		return take_how(&q->options, option);
	*ret_raw = true;
	return take_raw(&q->raw, option);
}

#define SIDEBAND                                                                     \
	(WORKER_SHOW_SB_COMPACT | WORKER_SHOW_SB_VERBOSE | WORKER_SHOW_SB_FILENAME | \
	 WORKER_SHOW_SB_OFFSET | WORKER_SHOW_SB_TIME | WORKER_SHOW_SB_SWITCH |       \
	 WORKER_SHOW_SB_WARN)

/* Checks the directory of an option: with a misspelt name no file would be found. */
static bool is_directory(const char *option, const char *path)
{
	struct stat st;

	if (!path)
		return true;
	if (stat(path, &st) < 0)
		say("%s=%s: %m", option, path);
	else if (!S_ISDIR(st.st_mode))
		say("%s=%s: not a directory", option, path);
	else
		return true;
	return false;
}

/* Checks options about names. Names are in reports and in skims; lines are only in reports. */
static int check_names(const struct decode_request *q)
{
	const bool skims = q->options.skim != WORKER_SKIM_NONE;
	const char *urls = getenv("DEBUGINFOD_URLS");

	if (q->options.lines && (!decode_has_names(&q->options) || skims))
		return say_error(EXIT_CODE_USAGE,
				 "--lines goes with --view=report and --view=calls, not with other "
				 "views nor with --skim");
	if ((q->n_symbols > 0 || q->debuginfod) && !decode_has_names(&q->options))
		return say_error(EXIT_CODE_USAGE,
				 "%s goes with --view=report, --view=calls and --skim: other views "
				 "have no names",
				 q->n_symbols > 0 ? "--symbols" : "--debuginfod");
	if (q->options.no_symbols && (q->options.lines || q->n_symbols > 0 || q->debuginfod))
		return say_error(EXIT_CODE_USAGE,
				 "either --no-names, or --lines, --symbols and --debuginfod");
	if (q->options.no_symbols && !decode_has_names(&q->options))
		return say_error(EXIT_CODE_USAGE,
				 "--no-names goes with --view=report, --view=calls "
				 "and --skim: other views have no names");
	if (q->debuginfod && (!urls || !*urls))
		return say_error(EXIT_CODE_USAGE,
				 "--debuginfod needs the names of servers in the environment "
				 "variable DEBUGINFOD_URLS, which is not set");
	for (size_t i = 0; i < q->n_symbols; i++)
		if (!is_directory("--symbols", q->symbols[i]))
			return EXIT_CODE_FAILURE;
	return 0;
}

/* Checks options about how much is decoded, and how. */
static int check_effort(const struct decode_request *q)
{
	const bool sums =
		q->options.view == WORKER_VIEW_REPORT || q->options.view == WORKER_VIEW_SUMMARY;

	if (q->options.repeat != 0 && q->options.view != WORKER_VIEW_SUMMARY)
		return say_error(EXIT_CODE_USAGE, "--repeat goes with --view=summary");
	if (q->has_report_size && q->options.view != WORKER_VIEW_REPORT)
		return say_error(EXIT_CODE_USAGE, "--report-size goes with --view=report");
	if (q->options.has_deadline && !sums)
		return say_error(EXIT_CODE_USAGE,
				 "--deadline goes with --view=report and --view=summary");
	if (q->options.has_only_uid &&
	    (q->options.view != WORKER_VIEW_REPORT || q->options.has_deadline ||
	     q->options.skim != WORKER_SKIM_NONE))
		return say_error(EXIT_CODE_USAGE, "--only-uid goes with --view=report, and with "
						  "neither --deadline nor --skim");
	if (q->options.repeat != 0 && q->options.has_deadline)
		return say_error(EXIT_CODE_USAGE, "either --repeat or --deadline");
	if (q->options.threads != 0 && q->options.view == WORKER_VIEW_PACKETS)
		return say_error(EXIT_CODE_USAGE,
				 "--threads: --view=packets has no work for threads");
	if (q->options.skim == WORKER_SKIM_NONE)
		return 0;
	if (!sums && q->options.view != WORKER_VIEW_BRANCHES)
		return say_error(EXIT_CODE_USAGE, "--skim goes with --view=report, "
						  "--view=summary and --view=branches");
	if (q->options.repeat != 0 || q->options.has_deadline || q->options.hash ||
	    q->options.threads != 0 || q->max_errors != UINT64_MAX || q->options.retstack != 0)
		return say_error(EXIT_CODE_USAGE,
				 "--skim walks no code: there is nothing for --repeat, --deadline, "
				 "--hash, --threads, --max-errors and --retstack");
	return 0;
}

static int check_form(struct decode_request *q, int operands, bool raw)
{
	int r;

	if (raw && !q->raw.pt_path)
		return say_error(EXIT_CODE_USAGE,
				 "--raw-image, --cpu, --mtc-freq, --nom-freq, --cpuid-0x15 and "
				 "--pevent need --raw-pt=FILE; a bundle has all of these");
	if (raw && operands > 0)
		return say_error(EXIT_CODE_USAGE,
				 "decode takes a BUNDLE or an ID, or --raw-pt=FILE, not both");
	if (raw && q->sysroot)
		return say_error(EXIT_CODE_USAGE, "--sysroot goes with a perf.data");
	if (!raw && operands != 1)
		return say_error(EXIT_CODE_USAGE,
				 "decode takes one BUNDLE (of `ptsnapctl fetch "
				 "--format=bundle'), a perf.data, an ID of `ptsnapctl list', "
				 "latest, or --raw-pt=FILE with --raw-image=" RAW_IMAGE_VALID);
	if (!raw && !*q->bundle)
		return say_error(EXIT_CODE_USAGE, "the operand is empty; give an ID of `ptsnapctl "
						  "list', latest, or a file");
	if (!is_directory("--sysroot", q->sysroot) ||
	    !is_directory("--pevent:sysroot", q->raw.pevents.sysroot))
		return EXIT_CODE_FAILURE;
	if (q->options.hash && q->options.view != WORKER_VIEW_SUMMARY)
		return say_error(EXIT_CODE_USAGE, "--hash goes with --view=summary");
	if (q->settings->json != JSON_UNSET && q->options.view > WORKER_VIEW_SUMMARY)
		return say_error(EXIT_CODE_USAGE,
				 "--json goes with --view=report and --view=summary");
	if (q->options.gap != 0 && q->options.view != WORKER_VIEW_PACKETS)
		return say_error(EXIT_CODE_USAGE, "--gap goes with --view=packets");
	if (!raw && (q->show.show & SIDEBAND))
		return say_error(EXIT_CODE_USAGE, "--sb is about the records of --pevent, which "
						  "goes with --raw-pt=FILE");
	if (!show_option_check(&q->show, q->options.view))
		return EXIT_CODE_USAGE;
	r = check_names(q);
	return r != 0 ? r : check_effort(q);
}

int decode_request_parse(struct decode_request *q, int argc, char **argv)
{
	struct option options[N_OPTIONS];
	struct decode_options *o = &q->options;
	size_t n = ARRAY_SIZE(OWN);
	bool raw = false;
	int option;

	memcpy(options, OWN, sizeof(OWN));
	n += show_option_table(options + n, OWN_SHOW);
	n += pevent_option_table(options + n, OWN_PEVENT);
	options[n] = (struct option){NULL, 0, NULL, 0};
	while ((option = option_next(q->settings, argc, argv, options, "o:", true)) != OPTION_END)
		if (!take(q, option, &raw))
			return EXIT_CODE_USAGE;
	if (q->settings->help || q->settings->version)
		return 0;
	q->bundle = raw ? NULL : argv[optind];
	o->pretty = q->settings->json == JSON_PRETTY;
	o->show = q->show.show;
	/* ptxed's --quiet is not only about messages. */
	if (q->settings->quiet && (o->show & WORKER_SHOW_PTXED))
		o->show |= WORKER_SHOW_QUIET;
	o->kernel_start = q->raw.pevents.kernel_start;
	o->debug = q->n_symbols > 0 || q->debuginfod ||
		   (!q->not_installed && !o->no_symbols && decode_has_names(o));
	return check_form(q, argc - optind, raw);
}
