/*
 * The lines of the summary about events that are not branches. The number of events comes from
 * eventCounts, which is never cut. The newest event is the last element of the event's list.
 */
#include "ctl/show/show_private.h"

#include <stdbool.h>
#include <string.h>

#include "ctl/base/field.h"
#include "ctl/base/place.h"
#include "ctl/base/say.h"
#include "proto/base.h"

#define MAX_ERRATA 8

static uint64_t count_of(struct json_object *r, const char *kind)
{
	uint64_t n = 0;

	field_u64(field_get(r, "eventCounts"), kind, &n);
	return n;
}

static const char *plural(uint64_t n)
{
	return n == 1 ? "" : "s";
}

static struct json_object *last_of(struct json_object *r, const char *list)
{
	size_t n = field_count(r, list);

	return n > 0 ? field_at(r, list, n - 1) : NULL;
}

/* " at NAME (CPU 1, thread 4711)", as far as the report says. */
static void show_event_site(FILE *out, struct json_object *r, struct json_object *event)
{
	struct json_object *place = place_at(r, event, "place");
	uint64_t cpu, tid;
	bool has_cpu = field_u64(event, "cpu", &cpu), has_tid = field_u64(event, "tid", &tid);

	if (place) {
		fputs(" at ", out);
		name_puts_place(out, place, 40);
	}
	if (!has_cpu && !has_tid)
		return;
	fputs(" (", out);
	if (has_cpu)
		fprintf(out, "CPU %ju%s", (uintmax_t)cpu, has_tid ? ", " : "");
	if (has_tid)
		fprintf(out, "thread %ju", (uintmax_t)tid);
	fputc(')', out);
}

static void show_errata(FILE *out, struct json_object *r)
{
	size_t n = field_count(r, "errata");

	if (n == 0)
		return;
	show_label(out, "Errata");
	for (size_t i = 0; i < n && i < MAX_ERRATA; i++) {
		struct json_object *name = field_at(r, "errata", i);

		fputs(i > 0 ? ", " : "", out);
		text_puts(out, field_text(name, ""), 12);
	}
	fputs(n > MAX_ERRATA ? ", ...\n" : "\n", out);
}

static void show_ptwrites(FILE *out, struct json_object *r)
{
	struct json_object *last = last_of(r, "ptwrites");
	uint64_t n = count_of(r, "ptwrite");

	if (n == 0)
		return;
	show_label(out, "PTWRITE");
	fprintf(out, "%s value%s", figure_count(n).text, plural(n));
	if (last) {
		fputs(", the last ", out);
		text_puts(out, field_text(last, "payload"), 18);
		show_event_site(out, r, last);
	}
	fputc('\n', out);
}

/* The least LOWEST and the greatest HIGHEST of all CPUs; false when a CPU with frequencies lacks
 * one. */
static bool range_of(struct json_object *r, const char *lowest, const char *highest,
		     uint64_t *ret_low, uint64_t *ret_high)
{
	size_t n = field_count(r, "cpus");

	*ret_low = UINT64_MAX;
	*ret_high = 0;
	for (size_t i = 0; i < n; i++) {
		struct json_object *f = field_get(field_at(r, "cpus", i), "frequency");
		uint64_t low, high;

		if (!f)
			continue;
		if (!field_u64(f, lowest, &low) || !field_u64(f, highest, &high))
			return false;
		*ret_low = MIN_OF(*ret_low, low);
		*ret_high = MAX_OF(*ret_high, high);
	}
	return *ret_low <= *ret_high;
}

/* In MHz or, where the report does not know the bus clock of every CPU, as core:bus ratios. */
static void show_frequencies(FILE *out, struct json_object *r)
{
	size_t n = field_count(r, "cpus");
	uint64_t low, high, changes = 0, of;
	bool mhz = range_of(r, "lowestMhz", "highestMhz", &low, &high);

	if (!mhz && !range_of(r, "lowestRatio", "highestRatio", &low, &high))
		return;
	if (low == high)
		return;
	for (size_t i = 0; i < n; i++)
		if (field_u64(field_at(r, "cpus", i), "frequency.changes", &of))
			changes += of;
	show_label(out, "Frequency");
	fprintf(out, "%s%s to %s%s, %s change%s\n", mhz ? "" : "ratio ", figure_count(low).text,
		figure_count(high).text, mhz ? " MHz" : "", figure_count(changes).text,
		plural(changes));
}

static void show_transactions(FILE *out, struct json_object *r)
{
	uint64_t begun = count_of(r, "transaction-begin");
	uint64_t committed = count_of(r, "transaction-commit");
	uint64_t aborted = count_of(r, "transaction-abort");
	struct json_object *last = last_of(r, "aborts");

	if (begun == 0 && committed == 0 && aborted == 0)
		return;
	show_label(out, "TSX");
	fprintf(out, "%s begun, %s committed, %s aborted", figure_count(begun).text,
		figure_count(committed).text, figure_count(aborted).text);
	if (last) {
		fputs(", the last", out);
		show_event_site(out, r, last);
	}
	fputc('\n', out);
}

static void show_interrupts(FILE *out, struct json_object *r)
{
	struct json_object *last = last_of(r, "interrupts");
	uint64_t vector;

	if (count_of(r, "interrupt") == 0)
		return;
	show_label(out, "Interrupt");
	fputs(figure_count(count_of(r, "interrupt")).text, out);
	if (last) {
		fputs(", the last ", out);
		text_puts(out, field_text(last, "kind"), 12);
		if (field_u64(last, "vector", &vector))
			fprintf(out, " %ju", (uintmax_t)vector);
		if (field_text(last, "cr2")) {
			fputs(" of ", out);
			text_puts(out, field_text(last, "cr2"), 18);
		}
		show_event_site(out, r, last);
	}
	fputc('\n', out);
}

static void show_power(FILE *out, struct json_object *r)
{
	uint64_t entered = count_of(r, "pwre"), woken = count_of(r, "pwrx");
	uint64_t stopped = count_of(r, "exstop"), asked = count_of(r, "mwait");
	uint64_t deepest = 0, of;

	if (entered == 0 && woken == 0 && stopped == 0 && asked == 0)
		return;
	for (size_t i = 0; i < field_count(r, "power"); i++)
		if (field_u64(field_at(r, "power", i), "deepestCoreCState", &of))
			deepest = MAX_OF(deepest, of);
	show_label(out, "Power");
	fprintf(out, "stopped %s time%s, MWAIT %s, C-state entered %s, left %s",
		figure_count(stopped).text, plural(stopped), figure_count(asked).text,
		figure_count(entered).text, figure_count(woken).text);
	if (deepest > 0)
		fprintf(out, ", deepest C%ju", (uintmax_t)deepest);
	fputc('\n', out);
}

void show_events(FILE *out, struct json_object *r)
{
	show_errata(out, r);
	show_ptwrites(out, r);
	show_frequencies(out, r);
	show_transactions(out, r);
	show_interrupts(out, r);
	show_power(out, r);
}
