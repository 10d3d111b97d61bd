/*
 * Reads the report of a baseline, compares, and shows both.
 */
#include "ctl/baseline.h"

#include <errno.h>
#include <string.h>

#include "proto/base.h"

#include "ctl/base/field.h"
#include "ctl/base/say.h"
#include "ctl/diff/diff.h"
#include "ctl/show/show.h"

#define PAGE_ROWS 5u

static int check_code(struct json_object *report, const char *which)
{
	if (!field_text(report, "skim"))
		return 0;
	return say_error(EXIT_CODE_FAILURE,
			 "%s: the trace shows no code, so there is nothing to compare", which);
}

int baseline_read(struct settings *s, const char *operand, const char *const *lists,
		  struct json_object **ret)
{
	const struct report_wanted wanted = {.operand = operand, .lists = lists};
	CLEANUP_CLOSE int fd = -EBADF;
	struct json_object *report;
	int r = report_open(s, &wanted, &fd);

	if (r != 0)
		return r;
	report = deliver_read(fd);
	r = report ? check_code(report, operand) : EXIT_CODE_FAILURE;
	if (r == 0)
		*ret = report;
	else
		json_object_put(report);
	return r;
}

static int compare(struct settings *s, struct json_object *report, const char *operand,
		   struct json_object **ret)
{
	struct json_object *baseline = NULL;
	int r = check_code(report, "this snapshot");

	if (r == 0)
		r = baseline_read(s, operand, NULL, &baseline);
	if (r != 0)
		return r;
	r = diff_reports(baseline, report, json_wanted(s) ? SIZE_MAX : PAGE_ROWS, ret);
	json_object_put(baseline);
	return r < 0 ? say_error(EXIT_CODE_FAILURE, "cannot compare: %s", strerror(-r)) : 0;
}

int baseline_deliver(struct settings *s, int fd, const char *operand, bool anyway, bool pager)
{
	struct json_object *report = deliver_read(fd), *difference = NULL, *both;
	int r, shown;

	if (!report)
		return EXIT_CODE_FAILURE;
	r = compare(s, report, operand, &difference);
	if (r != 0 && !anyway) {
		json_object_put(report);
		return r;
	}
	both = json_object_new_object();
	json_object_object_add(both, "report", report);
	json_object_object_add(both, "difference", difference);
	shown = deliver_compared(s, both, pager);
	json_object_put(both);
	return r != 0 ? r : shown;
}
