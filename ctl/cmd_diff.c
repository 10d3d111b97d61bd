/*
 * ptsnapctl diff: what differs between two snapshots, by more than counting noise.
 */
#include "ctl/baseline.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "proto/base.h"

#include "ctl/base/field.h"
#include "ctl/base/say.h"
#include "ctl/diff/diff.h"
#include "ctl/show/show.h"

#define PAGE_ROWS 8u

struct request {
	struct settings *settings;
	uint64_t limit; /* 0: not given */
	bool no_pager;
};

static int parse(struct request *q, int argc, char **argv)
{
	enum { OPTION_NO_PAGER = OPTION_OWN, OPTION_LIMIT };
	static const struct option own[] = {
		{"limit", required_argument, NULL, OPTION_LIMIT},
		{"no-pager", no_argument, NULL, OPTION_NO_PAGER},
		{NULL, 0, NULL, 0},
	};
	int option;

	while ((option = option_next(q->settings, argc, argv, own, "", true)) != OPTION_END) {
		if (option == OPTION_USAGE)
			return EXIT_CODE_USAGE;
		if (option == OPTION_NO_PAGER)
			q->no_pager = true;
		else if (option_count("--limit", optarg, UINT64_MAX, &q->limit) != 0)
			return EXIT_CODE_USAGE;
	}
	if (!q->settings->help && !q->settings->version && argc - optind != 2)
		return say_error(EXIT_CODE_USAGE, "diff takes two operands, each an ID of "
						  "`ptsnapctl list', latest, or a file");
	return 0;
}

static int compare(const struct request *q, struct json_object *a, struct json_object *b)
{
	const uint64_t all = json_wanted(q->settings) ? UINT64_MAX : PAGE_ROWS;
	struct json_object *diff = NULL;
	int r = diff_reports(a, b, (size_t)(q->limit > 0 ? q->limit : all), &diff);

	if (r < 0)
		return say_error(EXIT_CODE_FAILURE, "cannot compare: %s", strerror(-r));
	r = deliver_diff(q->settings, diff, !q->no_pager);
	json_object_put(diff);
	return r;
}

int cmd_diff(struct settings *s, int argc, char **argv)
{
	static const char *const lists[] = {"functions", "threads", "turns", NULL};
	struct request q = {.settings = s};
	struct json_object *a = NULL, *b = NULL;
	const char *first, *second;
	int r = parse(&q, argc, argv);

	if (r != 0 || s->help || s->version)
		return r;
	/* A decode parses options, too. */
	first = argv[optind];
	second = argv[optind + 1];
	r = baseline_read(s, first, lists, &a);
	if (r == 0)
		r = baseline_read(s, second, lists, &b);
	if (r == 0)
		r = compare(&q, a, b);
	json_object_put(a);
	json_object_put(b);
	return r;
}
