/*
 * CPUs: their windows, coverage, totals and gaps; how much of what was asked for is in the report.
 */
#include <errno.h>
#include <stdlib.h>

#include "decoder/worker/report/report_parts.h"

#include <math.h>

#include "proto/base.h"

uint64_t report_begin_ns(const struct decode *d, size_t cpu)
{
	uint64_t tsc = d->cpus[cpu].stats.tsc_first;

	return tsc == 0 ? MANIFEST_ABSENT : tscmap_ns(&d->replay->clock, tsc);
}

/* A slice ends where decoding ended, and a trace when its event was stopped, however long no packet
 * was written before. If the CPU did not answer the stop, the trace ends with its last time. */
uint64_t report_end_ns(const struct decode *d, size_t cpu)
{
	const struct manifest_cpu *m = &d->replay->manifest->cpus[cpu];
	uint64_t tsc = MAX_OF(d->cpus[cpu].stats.tsc_last, d->tally.cpus[cpu].last_tsc);

	if (d->window.ends && d->window.ends[cpu] != MANIFEST_ABSENT)
		return d->window.ends[cpu];
	if (tsc == 0 || (m->stop_ns != MANIFEST_ABSENT && !m->stop_timeout))
		return m->stop_ns;
	return tscmap_ns(&d->replay->clock, tsc);
}

static uint64_t got_ns(const struct decode *d, size_t cpu)
{
	uint64_t begin = report_begin_ns(d, cpu), end = report_end_ns(d, cpu);

	if (begin == MANIFEST_ABSENT || end == MANIFEST_ABSENT)
		return MANIFEST_ABSENT;
	return end > begin ? end - begin : 0;
}

/* The window less the time within gaps. */
static uint64_t decoded_ns(const struct decode *d, size_t cpu)
{
	uint64_t got = got_ns(d, cpu), untraced = d->cpus[cpu].untraced_ns;
	uint64_t lost = tscmap_span(&d->replay->clock, d->tally.cpus[cpu].lost_ticks);

	if (got == MANIFEST_ABSENT || lost == MANIFEST_ABSENT)
		return MANIFEST_ABSENT;
	got -= MIN_OF(got, untraced);
	return got - MIN_OF(got, lost);
}

static uint64_t untraced_ns(const struct decode *d, size_t cpu)
{
	return got_ns(d, cpu) == MANIFEST_ABSENT ? MANIFEST_ABSENT : d->cpus[cpu].untraced_ns;
}

int report_prepare_untraced(struct report *r)
{
	int result = 0;

	for (size_t i = 0; i < r->m->n_cpus && result == 0; i++)
		if (got_ns(r->d, i) != MANIFEST_ABSENT)
			result = gaps_dark_ns(r->m, r->m->cpus[i].cpu, report_begin_ns(r->d, i),
					      report_end_ns(r->d, i), &r->d->cpus[i].untraced_ns);
	return result;
}

/* DECODED in percent of BYTES, for the share of the time NSEC that is not UNTRACED. Rounded down,
 * so that 100 means that all was traced and decoded. */
static double percent_of(uint64_t decoded, uint64_t bytes, uint64_t untraced, uint64_t nsec)
{
	double percent = decode_percent(decoded, bytes);

	if (percent < 0 || untraced == MANIFEST_ABSENT || untraced == 0)
		return percent;
	percent *= (double)(nsec - MIN_OF(nsec, untraced)) / (double)nsec;
	return MIN_OF(floor(percent * 100) / 100, 99.99);
}

/* --- Windows without a trace --- */

/* The CPU has no trace, or its trace has no clock while its records have the trigger's. */
bool report_is_untraced(const struct report *r, size_t cpu)
{
	const struct manifest_cpu *c = &r->m->cpus[cpu];

	if (c->cpu == MANIFEST_ANY || !c->state)
		return false;
	return c->bytes == 0 || (!r->d->replay->clock.known && r->m->clock_is_monotonic);
}

/* The time of the first switch record of CPU; UINT64_MAX: there is none. */
static uint64_t first_switch(const struct report *r, uint32_t cpu)
{
	const struct timeline *timeline = r->d->replay->timeline;
	const size_t n = timeline_n_turns(timeline, cpu);

	/* Only the first turn may begin before the known time. */
	for (size_t i = 0; i < n && i < 2; i++) {
		struct timeline_turn turn;

		timeline_get_turn(timeline, cpu, i, &turn);
		if (turn.since > 0)
			return turn.since;
	}
	return UINT64_MAX;
}

void report_prepare_reach(struct report *r)
{
	r->sideband_begin = r->m->horizon_ns;
	for (size_t i = 0; i < r->m->n_cpus && r->m->horizon_ns == MANIFEST_ABSENT; i++)
		r->sideband_begin = MIN_OF(r->sideband_begin, first_switch(r, r->m->cpus[i].cpu));
}

static struct report_reach of_sideband(const struct report *r, size_t cpu)
{
	const struct decode_window *window = &r->d->window;
	struct report_reach reach = {r->sideband_begin, r->m->cpus[cpu].stop_ns};

	if (reach.end == MANIFEST_ABSENT)
		reach.end = r->m->perf_ns;
	if (reach.end == MANIFEST_ABSENT)
		return (struct report_reach){0};
	if (r->m->last_ns != MANIFEST_ABSENT && r->m->last_ns <= reach.end) {
		uint64_t asked = reach.end - r->m->last_ns;

		reach.begin = reach.begin == MANIFEST_ABSENT ? asked : MAX_OF(reach.begin, asked);
	}
	if (window->from_ns != MANIFEST_ABSENT)
		reach.begin = reach.begin == MANIFEST_ABSENT ? window->from_ns
							     : MAX_OF(reach.begin, window->from_ns);
	/* MANIFEST_ABSENT is the greatest number. */
	reach.end = MIN_OF(reach.end, window->to_ns);
	return reach.begin < reach.end ? reach : (struct report_reach){0};
}

struct report_reach report_reach(const struct report *r, size_t cpu)
{
	const struct report_reach reach = {report_begin_ns(r->d, cpu), report_end_ns(r->d, cpu)};

	if (reach.begin != MANIFEST_ABSENT)
		return reach;
	return report_is_untraced(r, cpu) ? of_sideband(r, cpu) : (struct report_reach){0};
}

/* --- CPUs --- */

static void write_instant(const struct report *r, struct json_writer *w, const char *key,
			  uint64_t tsc, uint64_t ns)
{
	if (tsc == 0 || tsc == MANIFEST_ABSENT) {
		json_null(w, key);
		return;
	}
	json_begin_object(w, key);
	json_hex(w, "tsc", tsc);
	report_at(r, w, "atNSec", ns);
	json_end_object(w);
}

/* The bytes behind the first PSB. */
static uint64_t decodable(const struct decode *d, size_t cpu)
{
	const struct decode_cpu *c = &d->cpus[cpu];

	return c->stats.bytes - MIN_OF(c->stats.bytes, c->head_bytes);
}

/* When a CPU stopped, if the order of the stops is known. */
static uint64_t frozen_ns(const struct manifest_cpu *cpu)
{
	return cpu->stop_order == MANIFEST_ABSENT || cpu->stop_timeout ? MANIFEST_ABSENT
								       : cpu->stop_ns;
}

/* How much later than the first CPU this one stopped. */
static uint64_t skew_ns(const struct manifest *m, const struct manifest_cpu *cpu)
{
	uint64_t first = MANIFEST_ABSENT, stop = frozen_ns(cpu);

	for (size_t i = 0; i < m->n_cpus && stop != MANIFEST_ABSENT; i++)
		first = MIN_OF(first, frozen_ns(&m->cpus[i]));
	return stop == MANIFEST_ABSENT ? stop : stop - first;
}

void report_cpu(const struct report *r, struct json_writer *w, size_t i)
{
	const struct manifest_cpu *cpu = &r->m->cpus[i];
	const struct flow_stats *stats = &r->d->cpus[i].stats;
	uint64_t end = report_end_ns(r->d, i), tsc = MANIFEST_ABSENT, per_sec = MANIFEST_ABSENT;

	if (end != MANIFEST_ABSENT)
		tsc = tscmap_tsc(&r->d->replay->clock, end);
	if (tsc == MANIFEST_ABSENT)
		tsc = stats->tsc_last;
	/* A bundle has fewer than 2^37 bytes. */
	if (cpu->copy_ns != MANIFEST_ABSENT && cpu->copy_ns != 0 && cpu->bytes != 0)
		per_sec = (uint64_t)((unsigned __int128)cpu->bytes * 1000000000u / cpu->copy_ns);

	json_begin_object(w, NULL);
	report_id(w, "cpu", cpu->cpu);
	report_id(w, "tid", cpu->tid);
	report_string_cut(w, "state", cpu->state, REPORT_MAX_STRING);
	report_string_cut(w, "why", cpu->why, REPORT_MAX_STRING);
	report_u64(w, "ringBytes", cpu->ring_bytes == 0 ? MANIFEST_ABSENT : cpu->ring_bytes);
	report_u64(w, "askedBytes", cpu->asked_bytes);
	json_u64(w, "gotBytes", cpu->bytes);
	report_u64(w, "askedNSec", r->m->last_ns);
	report_u64(w, "gotNSec", got_ns(r->d, i));
	write_instant(r, w, "begin", stats->tsc_first, report_begin_ns(r->d, i));
	write_instant(r, w, "end", tsc, end);
	report_u64(w, "stopOrder", cpu->stop_order);
	report_u64(w, "skewNSec", skew_ns(r->m, cpu));
	report_u64(w, "darkNSec", cpu->dark_ns);
	report_u64(w, "untracedNSec", untraced_ns(r->d, i));
	report_u64(w, "copyNSec", cpu->copy_ns);
	report_u64(w, "copyBytesPerSec", per_sec);
	json_u64(w, "psbs", stats->psbs);
	json_u64(w, "packets", stats->packets);
	json_u64(w, "instructions", stats->instructions);
	json_u64(w, "branches", stats->branches);
	json_u64(w, "bytesDecoded", stats->bytes_decoded);
	report_percent_decoded(w, "coveragePercent", r->d,
			       percent_of(stats->bytes_decoded, decodable(r->d, i),
					  untraced_ns(r->d, i), got_ns(r->d, i)));
	report_percent(w, "exactPercent", decode_percent(decode_exact(stats), stats->instructions));
	report_u64(w, "lostRecords", cpu->lost_records);
	report_cpu_frequency(r, w, i);
	json_end_object(w);
}

/* The sum over all CPUs that have a value; MANIFEST_ABSENT if none has. */
static uint64_t sum(const struct decode *d, uint64_t (*of)(const struct decode *, size_t))
{
	uint64_t total = MANIFEST_ABSENT;

	for (size_t i = 0; i < d->replay->manifest->n_cpus; i++) {
		uint64_t v = of(d, i);

		if (v != MANIFEST_ABSENT)
			total = (total == MANIFEST_ABSENT ? 0 : total) + v;
	}
	return total;
}

void report_coverage(const struct report *r, struct json_writer *w)
{
	const bool limited = report_is_limited(r);
	uint64_t bytes = sum(r->d, decodable);
	const struct flow_stats total = decode_total(r->d);
	uint64_t decoded = total.bytes_decoded;

	bytes = bytes == MANIFEST_ABSENT ? 0 : bytes;
	/* A user is not told how much trace there is of other users. */
	json_begin_object(w, "coverage");
	report_percent_decoded(
		w, "percent", r->d,
		limited ? -1
			: percent_of(decoded, bytes, sum(r->d, untraced_ns), sum(r->d, got_ns)));
	json_u64(w, "bytes", limited ? 0 : bytes);
	json_u64(w, "bytesDecoded", limited ? 0 : decoded);
	report_u64(w, "nsec", limited ? MANIFEST_ABSENT : sum(r->d, got_ns));
	report_u64(w, "nsecDecoded", limited ? MANIFEST_ABSENT : sum(r->d, decoded_ns));
	report_u64(w, "nsecUntraced", limited ? MANIFEST_ABSENT : sum(r->d, untraced_ns));
	if (!limited)
		report_exact(w, &total);
	json_end_object(w);
}

void report_totals(const struct report *r, struct json_writer *w)
{
	struct flow_stats total = {0};

	if (!report_is_limited(r))
		total = decode_total(r->d);
	for (size_t i = 0; report_is_limited(r) && i < r->lists[REPORT_THREADS].total; i++) {
		total.instructions += r->threads[i].insns;
		total.branches += r->threads[i].branches;
	}
	json_begin_object(w, "totals");
	json_u64(w, "instructions", total.instructions);
	if (r->d->replay->kernel)
		json_u64(w, "kernelInstructions", total.kernel_instructions);
	json_u64(w, "branches", total.branches);
	json_u64(w, "gaps", r->d->gaps.total);
	json_end_object(w);
	if (!report_is_limited(r))
		report_return_stack(w, &total, r->options);
	json_begin_object(w, "gapCounts");
	for (int i = FAULT_NONE + 1; i < FAULT_N_; i++)
		if (r->d->gaps.counts[i] > 0)
			json_u64(w, fault_name((enum fault)i), r->d->gaps.counts[i]);
	json_end_object(w);
	json_begin_object(w, "gapCountsOutside");
	for (int i = FAULT_NONE + 1; i < FAULT_N_; i++)
		if (r->d->gaps.outside[i] > 0)
			json_u64(w, fault_name((enum fault)i), r->d->gaps.outside[i]);
	json_end_object(w);
}

void report_return_stack(struct json_writer *w, const struct flow_stats *total,
			 const struct decode_options *options)
{
	static const char *const rules[] = {[WORKER_RETSTACK_AUTO] = "auto",
					    [WORKER_RETSTACK_SDM] = "sdm",
					    [WORKER_RETSTACK_LIBIPT] = "libipt"};

	json_begin_object(w, "returnStack");
	json_string(w, "rule", rules[options->retstack]);
	json_u64(w, "every", total->returns_all);
	json_u64(w, "compressedOnly", total->returns_compressed);
	json_u64(w, "undecided", total->returns_undecided);
	json_u64(w, "undecidedBranches", total->branches_undecided);
	json_end_object(w);
}

void report_gap(const struct report *r, struct json_writer *w, size_t i)
{
	const struct gap *gap = &r->d->gaps.list[r->gaps[i]];

	json_begin_object(w, NULL);
	json_u64(w, "n", r->gaps[i] + 1u);
	json_string(w, "kind", fault_name(gap->kind));
	report_u64(w, "cpu", gap->cpu == GAPS_NO_CPU ? MANIFEST_ABSENT : gap->cpu);
	report_at(r, w, "atNSec", gap->time_ns);
	report_at(r, w, "untilNSec", gap->until_ns);
	report_hex(w, "tsc", gap->tsc);
	report_u64(w, "offset", report_is_limited(r) ? MANIFEST_ABSENT : gap->offset);
	report_u64(w, "bytes", gap->bytes);
	report_bare_place(r, w, "place", gap->address);
	json_u64(w, "count", gap->count);
	report_string_cut(w, "why", gap->why ? gap->why : fault_why(gap->kind), REPORT_MAX_STRING);
	json_end_object(w);
}

int report_prepare_gaps(struct report *r)
{
	const struct gaps *gaps = &r->d->gaps;
	size_t listed[FAULT_N_] = {0}, n = 0;
	CLEANUP_FREE bool *first = calloc(gaps->n + 1, sizeof(*first));

	r->gaps = calloc(gaps->n + 1, sizeof(*r->gaps));
	if (!first || !r->gaps)
		return -ENOMEM;
	for (size_t i = 0; i < gaps->n; i++) {
		first[i] = listed[gaps->list[i].kind]++ < GAPS_OF_KIND;
		if (first[i])
			r->gaps[n++] = (uint32_t)i;
	}
	for (size_t i = 0; i < gaps->n; i++)
		if (!first[i])
			r->gaps[n++] = (uint32_t)i;
	r->lists[REPORT_GAPS] =
		(struct report_list){.key = "gaps", .total = n, .element = report_gap};
	return 0;
}

static int by_number(const void *a, const void *b)
{
	const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

void report_sort_gaps(struct report *r)
{
	if (r->gaps)
		qsort(r->gaps, r->lists[REPORT_GAPS].kept, sizeof(*r->gaps), by_number);
}

/* --- What was decoded within a deadline --- */

/* The latest of OF over all CPUs whose trace tells something; MANIFEST_ABSENT if OF does not know
 * one of them. */
static uint64_t latest(const struct decode *d, uint64_t (*of)(const struct decode *, size_t))
{
	uint64_t ns = 0;

	for (size_t i = 0; i < d->replay->manifest->n_cpus; i++)
		if (!d->window.begins || d->window.begins[i] != MANIFEST_ABSENT)
			ns = MAX_OF(ns, of(d, i));
	return ns == 0 ? MANIFEST_ABSENT : ns;
}

static uint64_t trace_begin_ns(const struct decode *d, size_t cpu)
{
	return d->window.begins[cpu];
}

uint64_t report_all_begin_ns(const struct decode *d)
{
	return latest(d, report_begin_ns);
}

void report_decoded(const struct report *r, struct json_writer *w)
{
	const struct decode_window *window = &r->d->window;
	uint64_t last_stretches = 0, until = 0;

	/* When the last of the decoded traces ends. */
	for (size_t i = 0; i < r->m->n_cpus; i++) {
		const uint64_t end = report_end_ns(r->d, i);

		if (window->begins[i] != MANIFEST_ABSENT && end != MANIFEST_ABSENT)
			until = MAX_OF(until, end);
	}
	for (size_t i = 0; i < r->lists[REPORT_THREADS].total; i++)
		last_stretches += r->threads[i].known == REPORT_LAST_STRETCH;
	json_begin_object(w, "decoded");
	json_u64(w, "deadlineNSec", window->deadline_ns);
	json_boolean(w, "complete", window->complete);
	report_at(r, w, "sinceNSec", report_all_begin_ns(r->d));
	report_at(r, w, "traceSinceNSec", latest(r->d, trace_begin_ns));
	report_at(r, w, "untilNSec", until == 0 ? MANIFEST_ABSENT : until);
	json_u64(w, "bytes", decode_total(r->d).bytes);
	json_u64(w, "traceBytes", window->bytes);
	json_u64(w, "rounds", window->rounds);
	json_u64(w, "lastStretches", last_stretches);
	json_u64(w, "lastStretchesLeft", window->complete ? 0 : window->threads_left);
	json_end_object(w);
}
