/*
 * ptsnapctl timeline: the events of a report in the order of time, or a picture of its CPUs.
 */
#include "ctl/verb.h"

#include <string.h>
#include <unistd.h>

#include "ctl/base/say.h"
#include "ctl/calls/slice.h"
#include "ctl/show/show.h"
#include "proto/base.h"

enum {
	OPTION_LAST = OPTION_OWN,
	OPTION_LIMIT,
	OPTION_NO_PAGER,
	OPTION_PICTURE,
	OPTION_SLICE, /* the first of SLICE_OPTIONS */
};

static const struct option OPTIONS[] = {
	{"last", required_argument, NULL, OPTION_LAST},
	{"limit", required_argument, NULL, OPTION_LIMIT},
	{"no-pager", no_argument, NULL, OPTION_NO_PAGER},
	{"picture", no_argument, NULL, OPTION_PICTURE},
};

struct request {
	struct settings *settings;
	struct slice slice;
	uint64_t last, limit; /* 0: all */
	bool no_pager, picture;
	const char *operand;
};

static int take(struct request *q, int option)
{
	switch (option) {
	case OPTION_USAGE: return EXIT_CODE_USAGE;
	case OPTION_LAST: return option_count("--last", optarg, UINT64_MAX, &q->last);
	case OPTION_LIMIT: return option_count("--limit", optarg, UINT64_MAX, &q->limit);
	case OPTION_NO_PAGER: q->no_pager = true; return 0;
	case OPTION_PICTURE: q->picture = true; return 0;
	default: return slice_option_take(&q->slice, (size_t)(option - OPTION_SLICE), optarg);
	}
}

static int parse(struct request *q, int argc, char **argv)
{
	struct option own[ARRAY_SIZE(OPTIONS) + SLICE_OPTIONS + 1] = {{0}};
	int option, r;

	memcpy(own, OPTIONS, sizeof(OPTIONS));
	slice_option_table(own + ARRAY_SIZE(OPTIONS), OPTION_SLICE);
	/* Events have no functions and images; these two are the last ones. */
	memset(own + ARRAY_SIZE(own) - 3, 0, 2 * sizeof(*own));
	while ((option = option_next(q->settings, argc, argv, own, "", true)) != OPTION_END) {
		r = take(q, option);
		if (r != 0)
			return r;
	}
	if (q->last > 0 && q->limit > 0)
		return say_error(EXIT_CODE_USAGE,
				 "either --last (the last lines) or --limit (the first ones)");
	q->operand = option_operand(argc, argv, "an ID of `ptsnapctl list', latest, or a file");
	return q->operand ? 0 : EXIT_CODE_USAGE;
}

static struct show_time time_of(const struct slice_time *t)
{
	return (struct show_time){t->given, t->before_trigger, t->ns};
}

int cmd_timeline(struct settings *s, int argc, char **argv)
{
	static const char *const lists[] = {"turns", "gaps",	   "frequencies", "ptwrites",
					    "power", "interrupts", "aborts",	  NULL};
	struct request q = {.settings = s};
	CLEANUP_CLOSE int fd = -EBADF;
	struct show_select select;
	int r = parse(&q, argc, argv);

	if (r != 0 || s->help || s->version)
		return r;
	select = select_of(&q.slice);
	select.from = time_of(&q.slice.from);
	select.to = time_of(&q.slice.to);
	select.limit = q.limit;
	select.last = q.last;
	r = report_open(s, &(struct report_wanted){.operand = q.operand, .lists = lists}, &fd);
	return r != 0 ? r : deliver_timeline(s, fd, &select, q.picture, !q.no_pager);
}
