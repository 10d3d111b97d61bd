/*
 * ptsnapctl info: one page about a stored snapshot, a saved report, a bundle or a perf.data.
 */
#include "ctl/verb.h"

#include "proto/base.h"

#include "ctl/base/say.h"
#include "ctl/baseline.h"
#include "ctl/show/show.h"

enum { OPTION_NO_PAGER = OPTION_OWN, OPTION_BASELINE, OPTION_SLICE };

struct request {
	struct settings *settings;
	struct slice slice;
	const char *operand, *baseline; /* baseline: NULL: none */
	bool no_pager;
};

static int take(struct request *q, int option)
{
	switch (option) {
	case OPTION_USAGE: return EXIT_CODE_USAGE;
	case OPTION_BASELINE: q->baseline = optarg; return 0;
	case OPTION_NO_PAGER: q->no_pager = true; return 0;
	default: return slice_option_take(&q->slice, (size_t)(option - OPTION_SLICE), optarg);
	}
}

static int parse(struct request *q, int argc, char **argv)
{
	struct option own[2 + SLICE_OPTIONS + 1] = {
		{"baseline", required_argument, NULL, OPTION_BASELINE},
		{"no-pager", no_argument, NULL, OPTION_NO_PAGER},
	};
	int option, r;

	slice_option_table(own + 2, OPTION_SLICE);
	while ((option = option_next(q->settings, argc, argv, own, "", true)) != OPTION_END) {
		r = take(q, option);
		if (r != 0)
			return r;
	}
	if (q->baseline && slice_is_given(&q->slice))
		return say_error(EXIT_CODE_USAGE,
				 "--baseline compares whole snapshots; leave out --from, --to, "
				 "--cpu, --pid, --tid, --comm, --function and --image");
	q->operand = option_operand(argc, argv, "an ID of `ptsnapctl list', latest, or a file");
	return q->operand ? 0 : EXIT_CODE_USAGE;
}

int cmd_info(struct settings *s, int argc, char **argv)
{
	struct request q = {.settings = s};
	struct report_wanted wanted = {0};
	struct show_select select;
	CLEANUP_CLOSE int fd = -EBADF;
	int r = parse(&q, argc, argv);

	if (r != 0 || s->help || s->version)
		return r;
	wanted.operand = q.operand;
	wanted.slice = slice_decode_span(&q.slice);
	select = select_of(&q.slice);
	r = report_open(s, &wanted, &fd);
	if (r != 0)
		return r;
	return q.baseline ? baseline_deliver(s, fd, q.baseline, false, !q.no_pager)
			  : deliver_info(s, fd, &select, !q.no_pager);
}
