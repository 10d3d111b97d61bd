/*
 * ptsnapctl info: one page about a stored snapshot, a saved report, a bundle or a perf.data.
 */
#include "ctl/verb.h"

#include "proto/base.h"

#include "ctl/base/say.h"
#include "ctl/baseline.h"
#include "ctl/show/show.h"

struct request {
	struct settings *settings;
	const char *operand, *baseline; /* baseline: NULL: none */
	bool no_pager;
};

static int parse(struct request *q, int argc, char **argv)
{
	enum { OPTION_NO_PAGER = OPTION_OWN, OPTION_BASELINE };
	static const struct option own[] = {
		{"baseline", required_argument, NULL, OPTION_BASELINE},
		{"no-pager", no_argument, NULL, OPTION_NO_PAGER},
		{NULL, 0, NULL, 0},
	};
	int option;

	while ((option = option_next(q->settings, argc, argv, own, "", true)) != OPTION_END) {
		if (option == OPTION_USAGE)
			return EXIT_CODE_USAGE;
		if (option == OPTION_BASELINE)
			q->baseline = optarg;
		else
			q->no_pager = true;
	}
	if (argc - optind > 1)
		return say_error(EXIT_CODE_USAGE, "info takes one operand: an ID of `ptsnapctl "
						  "list', latest, or a file");
	q->operand = optind < argc ? argv[optind] : "latest";
	return 0;
}

int cmd_info(struct settings *s, int argc, char **argv)
{
	struct request q = {.settings = s};
	CLEANUP_CLOSE int fd = -EBADF;
	int r = parse(&q, argc, argv);

	if (r != 0 || s->help || s->version)
		return r;
	r = report_of_operand(s, q.operand, &fd);
	if (r != 0)
		return r;
	return q.baseline ? baseline_deliver(s, fd, q.baseline, false, !q.no_pager)
			  : deliver_info(s, fd, !q.no_pager);
}
