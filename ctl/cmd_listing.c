/*
 * ptsnapctl branches, insns: taken branches or executed instructions of a snapshot, one a line.
 */
#include "ctl/verb.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "proto/base.h"

#include "ctl/base/field.h"
#include "ctl/base/progress.h"
#include "ctl/base/say.h"
#include "ctl/calls/calls.h"
#include "ctl/calls/slice.h"
#include "ctl/listing/listing.h"
#include "ctl/show/pager.h"

#define MAX_LAST 1000000u
#define DONE	 (-1)

struct request {
	struct settings *settings;
	struct calls_source source;
	struct slice slice;
	struct listing_printer printer;
	uint64_t last, limit; /* 0: all */
	struct pager pager;
	bool no_pager;
};

/* --- The command line --- */

enum {
	OPTION_LAST = OPTION_OWN,
	OPTION_LIMIT,
	OPTION_NO_PAGER,
	OPTION_SYNTAX,
	OPTION_SOURCE,				       /* the first of SOURCE_OPTIONS */
	OPTION_SLICE = OPTION_SOURCE + SOURCE_OPTIONS, /* the first of SLICE_OPTIONS */
};

/* The last one is of instructions only. */
static const struct option OPTIONS[] = {
	{"last", required_argument, NULL, OPTION_LAST},
	{"limit", required_argument, NULL, OPTION_LIMIT},
	{"no-pager", no_argument, NULL, OPTION_NO_PAGER},
	{"syntax", required_argument, NULL, OPTION_SYNTAX},
};

static int take_syntax(struct request *q, const char *name)
{
	static const char *const syntaxes[] = {"att", "intel", NULL};
	int i = option_choice("--syntax", name, syntaxes);

	if (i == 1)
		q->source.show |= WORKER_SHOW_INTEL;
	return i < 0 ? EXIT_CODE_USAGE : 0;
}

static int take(struct request *q, int option)
{
	switch (option) {
	case OPTION_LAST: return option_count("--last", optarg, MAX_LAST, &q->last);
	case OPTION_LIMIT: return option_count("--limit", optarg, UINT64_MAX, &q->limit);
	case OPTION_NO_PAGER: q->no_pager = true; return 0;
	case OPTION_SYNTAX: return take_syntax(q, optarg);
	}
	if (option < OPTION_SLICE)
		return source_option_take(&q->source, (size_t)(option - OPTION_SOURCE), optarg);
	return slice_option_take(&q->slice, (size_t)(option - OPTION_SLICE), optarg);
}

static int parse(struct request *q, int argc, char **argv)
{
	struct option own[ARRAY_SIZE(OPTIONS) + SOURCE_OPTIONS + SLICE_OPTIONS + 1] = {{0}};
	size_t n = q->printer.insns ? ARRAY_SIZE(OPTIONS) : ARRAY_SIZE(OPTIONS) - 1;
	int option, r;

	memcpy(own, OPTIONS, n * sizeof(*own));
	source_option_table(own + n, OPTION_SOURCE);
	slice_option_table(own + n + SOURCE_OPTIONS, OPTION_SLICE);
	while ((option = option_next(q->settings, argc, argv, own, "", true)) != OPTION_END) {
		r = option == OPTION_USAGE ? EXIT_CODE_USAGE : take(q, option);
		if (r != 0)
			return r;
	}
	if (q->settings->help || q->settings->version)
		return 0;
	if (q->last > 0 && q->limit > 0)
		return say_error(EXIT_CODE_USAGE,
				 "either --last (the last lines) or --limit (the first ones)");
	q->source.operand = option_operand(
		argc, argv, "an ID of `ptsnapctl list', latest, a bundle's file or a perf.data");
	return q->source.operand ? 0 : EXIT_CODE_USAGE;
}

/* --- Reading --- */

/* The pager begins with the first line: until then, Ctrl-C is ours, and the progress is shown. */
static void begin_lines(struct request *q)
{
	if (!q->printer.terminal)
		return;
	progress_end();
	if (!q->no_pager && !json_wanted(q->settings))
		pager_begin(&q->pager);
}

static int print_line(void *userdata, const struct listing_line *line)
{
	struct request *q = userdata;

	if (q->printer.n == 0)
		begin_lines(q);
	listing_print(&q->printer, line);
	if (ferror(stdout))
		return DONE;
	return q->limit > 0 && q->printer.n == q->limit ? DONE : 0;
}

static int say_result(const struct request *q, int r)
{
	switch (-r) {
	case EINVAL:
		return say_error(EXIT_CODE_USAGE, "%s: nothing lies between --from and --to",
				 q->source.operand);
	case ENOMEM: return say_error(EXIT_CODE_FAILURE, "out of memory");
	case EBADMSG:
		return say_error(EXIT_CODE_FAILURE,
				 "%s: ptsnap-decode wrote an invalid stream; is it the "
				 "ptsnap-decode of this version?",
				 q->source.operand);
	default: return r; /* an exit code, after a message */
	}
}

static void remark(const struct request *q, const struct listing_told *told)
{
	if (q->settings->quiet)
		return;
	if (told->lines == 0)
		say("no %s; without --function, --from and other selections there may be some",
		    q->printer.insns ? "instructions" : "branches");
	if (told->gaps > 0)
		say("the trace has %s; `ptsnapctl gaps' says why",
		    figure_things(told->gaps, "gap").text);
	if (told->recording > 0)
		say("%s the recording lacks something that has no place in a trace; "
		    "`ptsnapctl gaps' says what",
		    figure_things(told->recording, "time").text);
}

static int read_listing(struct request *q, struct listing *l)
{
	enum worker_view view = q->printer.insns ? WORKER_VIEW_INSNS : WORKER_VIEW_BRANCHES;
	int r = calls_read_lines(&q->source, view, listing_take, l);

	if (r == 0 || r == DONE)
		r = listing_finish(l, r == DONE);
	return r == DONE ? 0 : r;
}

static int run(struct request *q)
{
	CLEANUP(listing_freep) struct listing *l = NULL;
	int r = listing_new(&q->slice, q->last, print_line, q, &l);

	if (r < 0)
		return say_result(q, r);
	q->source.span = slice_decode_span(&q->slice);
	q->printer.listing = l;
	q->printer.style = show_style_of_stdout();
	q->printer.terminal = isatty(STDOUT_FILENO);
	q->printer.lines = q->source.lines;
	r = read_listing(q, l);
	if (r == 0)
		listing_print_end(&q->printer);
	pager_end(&q->pager);
	if (r == 0)
		remark(q, listing_told(l));
	return r == 0 ? 0 : say_result(q, r);
}

int cmd_listing(struct settings *s, int argc, char **argv)
{
	struct request q = {
		.settings = s,
		.source = {.settings = s, .show = WORKER_SHOW_STREAM},
		.printer = {.settings = s, .insns = strcmp(argv[0], "insns") == 0},
	};
	int r = parse(&q, argc, argv);

	return r != 0 || s->help || s->version ? r : run(&q);
}
