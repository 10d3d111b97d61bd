/*
 * ptsnapctl functions, threads, processes, images, gaps, turns: one list of a report, of which the
 * options select rows. ctl/show says which lists there are, and which selections they know.
 */
#include "ctl/verb.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "ctl/base/say.h"
#include "ctl/calls/slice.h"
#include "ctl/show/show.h"
#include "proto/base.h"

enum { OPTION_NO_PAGER = OPTION_OWN, OPTION_LIMIT, OPTION_HISTOGRAM, OPTION_SLICE };

struct table_request {
	struct settings *settings;
	const struct show_list *list;
	struct slice slice;
	uint64_t limit;
	const char *operand;
	bool no_pager, histogram;
};

static bool list_knows(const struct show_list *list, const char *option)
{
	for (const char *const *o = show_list_options(list); *o; o++)
		if (strcmp(*o, option) == 0)
			return true;
	return false;
}

/* Writes the options of LIST to TO, and a zero entry. */
static void options_of(const struct show_list *list, struct option to[static SLICE_OPTIONS + 4])
{
	struct option slice[SLICE_OPTIONS];
	size_t n = 0;

	to[n++] = (struct option){"no-pager", no_argument, NULL, OPTION_NO_PAGER};
	to[n++] = (struct option){"limit", required_argument, NULL, OPTION_LIMIT};
	if (list == show_list_find("functions"))
		to[n++] = (struct option){"histogram", no_argument, NULL, OPTION_HISTOGRAM};
	slice_option_table(slice, OPTION_SLICE);
	for (size_t i = 0; i < SLICE_OPTIONS; i++)
		if (list_knows(list, slice[i].name))
			to[n++] = slice[i];
	to[n] = (struct option){0};
}

static int take(struct table_request *q, int option)
{
	switch (option) {
	case OPTION_USAGE: return EXIT_CODE_USAGE;
	case OPTION_NO_PAGER: q->no_pager = true; return 0;
	case OPTION_HISTOGRAM: q->histogram = true; return 0;
	case OPTION_LIMIT: return option_count("--limit", optarg, UINT64_MAX, &q->limit);
	default: return slice_option_take(&q->slice, (size_t)(option - OPTION_SLICE), optarg);
	}
}

static int parse(struct table_request *q, int argc, char **argv)
{
	struct option own[SLICE_OPTIONS + 4];
	int option, r;

	options_of(q->list, own);
	while ((option = option_next(q->settings, argc, argv, own, "", true)) != OPTION_END) {
		r = take(q, option);
		if (r != 0)
			return r;
	}
	q->operand = option_operand(argc, argv, "an ID of `ptsnapctl list', latest, or a file");
	return q->operand ? 0 : EXIT_CODE_USAGE;
}

int cmd_tables(struct settings *s, int argc, char **argv)
{
	struct table_request q = {.settings = s, .list = show_list_find(argv[0])};
	struct report_wanted wanted = {.lists = (const char *const[]){argv[0], NULL}};
	CLEANUP_CLOSE int fd = -EBADF;
	struct show_select select;
	int r;

	assert(q.list); /* main.c calls this function for names of lists only */
	r = parse(&q, argc, argv);
	if (r != 0 || s->help || s->version)
		return r;
	wanted.operand = q.operand;
	select = select_of(&q.slice);
	select.limit = q.limit;
	select.histogram = q.histogram;
	/* Counters of functions and images are of all threads, unless the decoder selects. */
	if (show_list_is_counted(q.list)) {
		r = slice_decode_all(&q.slice, &wanted.slice);
		select.has_cpu = select.has_pid = select.has_tid = false;
		select.comm = NULL;
	} else {
		wanted.slice = slice_decode_span(&q.slice);
	}
	if (r == 0)
		r = report_open(s, &wanted, &fd);
	return r != 0 ? r : deliver_list(s, fd, q.list, &select, !q.no_pager);
}
