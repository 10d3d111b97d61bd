/*
 * How long the calls of functions took, as histograms: a line for each doubling of the duration.
 */
#include <stdint.h>
#include <string.h>

#include "ctl/base/field.h"
#include "ctl/base/place.h"
#include "ctl/base/say.h"
#include "ctl/show/list.h"
#include "ctl/show/show_private.h"
#include "proto/base.h"

#define DEFAULT_LIMIT 10u
#define MAX_LINES     64u /* of a histogram: the decoder has 48 */
#define BEFORE_BAR    38u /* columns */

struct histogram {
	struct json_object *counts;
	double first_ns;
	uint64_t n, most;
};

/* False: FUNCTION has none. */
static bool take(struct json_object *function, struct histogram *ret)
{
	*ret = (struct histogram){.counts = field_get(function, "durations.histogram.counts")};
	if (!field_double(function, "durations.histogram.firstNSec", &ret->first_ns))
		return false;
	for (size_t i = 0; i < field_count(ret->counts, "") && i < MAX_LINES; i++) {
		uint64_t count = 0;

		field_u64(field_at(ret->counts, "", i), "", &count);
		ret->n += count;
		ret->most = MAX_OF(ret->most, count);
	}
	return ret->n > 0;
}

/* Times below a microsecond may be fractions of nanoseconds. */
static void put_bound(FILE *out, double ns)
{
	if (ns < 100)
		fprintf(out, "%9.1f ns", ns);
	else
		fprintf(out, "%12s", figure_nsec((uint64_t)ns).text);
}

static void put_line(FILE *out, double from_ns, uint64_t count, uint64_t most, size_t columns)
{
	const size_t bar =
		count == 0 ? 0 : (size_t)((double)count / (double)most * (double)columns);

	put_bound(out, from_ns);
	put_bound(out, 2 * from_ns);
	fprintf(out, " %12s", figure_count(count).text);
	if (count > 0)
		fputc(' ', out);
	for (size_t i = 0; i < bar; i++)
		fputc('#', out);
	/* The least bar is seen, too. */
	if (count > 0 && bar == 0)
		fputc('.', out);
	fputc('\n', out);
}

static void put_histogram(FILE *out, struct json_object *function, const struct show_style *style)
{
	const size_t columns = MAX_OF(style->columns, 80u) - BEFORE_BAR;
	struct histogram h;
	uint64_t ended = 0;

	if (!take(function, &h))
		return;
	name_puts(out, field_text(function, "name"), style->columns - 40);
	fprintf(out, ": %s calls ended", figure_field_count(function, "durations.ended").text);
	if (field_u64(function, "durations.ended", &ended) && ended > h.n)
		fprintf(out, ", %s of them in no measurable time", figure_count(ended - h.n).text);
	fprintf(out, "\n%12s%12s %12s\n", "FROM", "TO", "CALLS");
	for (size_t i = 0; i < field_count(h.counts, "") && i < MAX_LINES; i++) {
		uint64_t count = 0;

		field_u64(field_at(h.counts, "", i), "", &count);
		put_line(out, h.first_ns, count, h.most, columns);
		h.first_ns *= 2;
	}
	fputc('\n', out);
}

void show_histograms(FILE *out, struct json_object *report, const struct show_select *select,
		     const struct show_style *style)
{
	const struct show_list *list = show_list_find("functions");
	const uint64_t limit = select->limit > 0 ? select->limit : DEFAULT_LIMIT;
	uint64_t shown = 0, more = 0;

	for (size_t i = 0; i < field_count(report, "functions"); i++) {
		struct json_object *function = field_at(report, "functions", i);
		struct histogram h;

		if (list_row_fits(list, report, function, select) != LIST_YES ||
		    !take(function, &h))
			continue;
		if (shown < limit) {
			put_histogram(out, function, style);
			shown++;
		} else {
			more++;
		}
	}
	if (shown == 0)
		fputs("no function of the selection has calls that took measurable time\n", out);
	if (more > 0)
		fprintf(out, "%s more functions; --limit shows more, --function chooses\n",
			figure_count(more).text);
}
