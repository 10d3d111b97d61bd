/*
 * CPUs, coverage, totals and gaps: how much of the window is in the report.
 */
#include "decoder/worker/report/report_parts.h"
#include "proto/base.h"

uint64_t report_begin_ns(const struct decode *d, size_t cpu)
{
	uint64_t tsc = d->cpus[cpu].stats.tsc_first;

	return tsc == 0 ? MANIFEST_ABSENT : tscmap_ns(&d->replay->clock, tsc);
}

/* A trace ends when its event was stopped, however long it had been quiet before; where nobody
 * answered the stop, with its last time. */
uint64_t report_end_ns(const struct decode *d, size_t cpu)
{
	const struct manifest_cpu *m = &d->replay->manifest->cpus[cpu];
	uint64_t tsc = MAX_OF(d->cpus[cpu].stats.tsc_last, d->tally.cpus[cpu].last_tsc);

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

/* Of the window, less what passed within gaps. */
static uint64_t decoded_ns(const struct decode *d, size_t cpu)
{
	uint64_t got = got_ns(d, cpu);
	uint64_t lost = tscmap_span(&d->replay->clock, d->tally.cpus[cpu].lost_ticks);

	if (got == MANIFEST_ABSENT || lost == MANIFEST_ABSENT)
		return MANIFEST_ABSENT;
	return got - MIN_OF(got, lost);
}

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

static void write_end(const struct report *r, struct json_writer *w, size_t i)
{
	uint64_t ns = report_end_ns(r->d, i), tsc = MANIFEST_ABSENT;

	if (ns != MANIFEST_ABSENT)
		tsc = tscmap_tsc(&r->d->replay->clock, ns);
	if (tsc == MANIFEST_ABSENT)
		tsc = r->d->cpus[i].stats.tsc_last;
	write_instant(r, w, "end", tsc, ns);
}

static uint64_t decodable(const struct decode_cpu *cpu)
{
	return cpu->stats.bytes - MIN_OF(cpu->stats.bytes, cpu->head_bytes);
}

static void write_cpu_result(const struct report *r, struct json_writer *w, size_t i)
{
	const struct decode_cpu *cpu = &r->d->cpus[i];

	json_u64(w, "psbs", cpu->stats.psbs);
	json_u64(w, "packets", cpu->stats.packets);
	json_u64(w, "instructions", cpu->stats.instructions);
	json_u64(w, "branches", cpu->stats.branches);
	json_u64(w, "bytesDecoded", cpu->stats.bytes_decoded);
	report_percent(w, "coveragePercent",
		       decode_percent(cpu->stats.bytes_decoded, decodable(cpu)));
}

/* When a CPU was known to have stopped, of a freeze whose order is known. */
static uint64_t frozen_ns(const struct manifest_cpu *cpu)
{
	return cpu->stop_order == MANIFEST_ABSENT || cpu->stop_timeout ? MANIFEST_ABSENT
								       : cpu->stop_ns;
}

/* After the first one. */
static uint64_t skew_ns(const struct manifest *m, const struct manifest_cpu *cpu)
{
	uint64_t first = MANIFEST_ABSENT, stop = frozen_ns(cpu);
	size_t i;

	for (i = 0; i < m->n_cpus && stop != MANIFEST_ABSENT; i++)
		first = MIN_OF(first, frozen_ns(&m->cpus[i]));
	return stop == MANIFEST_ABSENT ? stop : stop - first;
}

static uint64_t bytes_per_sec(const struct manifest_cpu *cpu)
{
	if (cpu->copy_ns == MANIFEST_ABSENT || cpu->copy_ns == 0 || cpu->bytes == 0)
		return MANIFEST_ABSENT;
	/* A bundle's bytes are fewer than 2^37. */
	return (uint64_t)((unsigned __int128)cpu->bytes * 1000000000u / cpu->copy_ns);
}

static void write_freeze(const struct report *r, struct json_writer *w,
			 const struct manifest_cpu *cpu)
{
	report_u64(w, "stopOrder", cpu->stop_order);
	report_u64(w, "skewNSec", skew_ns(r->m, cpu));
	report_u64(w, "darkNSec", cpu->dark_ns);
	report_u64(w, "copyNSec", cpu->copy_ns);
	report_u64(w, "copyBytesPerSec", bytes_per_sec(cpu));
}

void report_cpu(const struct report *r, struct json_writer *w, size_t i)
{
	const struct manifest_cpu *cpu = &r->m->cpus[i];

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
	write_instant(r, w, "begin", r->d->cpus[i].stats.tsc_first, report_begin_ns(r->d, i));
	write_end(r, w, i);
	write_freeze(r, w, cpu);
	write_cpu_result(r, w, i);
	report_u64(w, "lostRecords", cpu->lost_records);
	report_cpu_frequency(r, w, i);
	json_end_object(w);
}

/* The sum over CPUs; MANIFEST_ABSENT where no CPU has it. */
static uint64_t sum(const struct decode *d, uint64_t (*of)(const struct decode *, size_t))
{
	uint64_t total = MANIFEST_ABSENT;
	size_t i;

	for (i = 0; i < d->replay->manifest->n_cpus; i++) {
		uint64_t v = of(d, i);

		if (v != MANIFEST_ABSENT)
			total = (total == MANIFEST_ABSENT ? 0 : total) + v;
	}
	return total;
}

static uint64_t decodable_of(const struct decode *d, size_t cpu)
{
	return decodable(&d->cpus[cpu]);
}

/* How much there is of the others is not told. */
static void write_no_coverage(struct json_writer *w)
{
	json_begin_object(w, "coverage");
	json_null(w, "percent");
	json_u64(w, "bytes", 0);
	json_u64(w, "bytesDecoded", 0);
	json_null(w, "nsec");
	json_null(w, "nsecDecoded");
	json_end_object(w);
}

void report_coverage(const struct report *r, struct json_writer *w)
{
	uint64_t bytes = sum(r->d, decodable_of);
	uint64_t decoded = decode_total(r->d).bytes_decoded;

	if (report_is_limited(r)) {
		write_no_coverage(w);
		return;
	}
	bytes = bytes == MANIFEST_ABSENT ? 0 : bytes;
	json_begin_object(w, "coverage");
	report_percent(w, "percent", decode_percent(decoded, bytes));
	json_u64(w, "bytes", bytes);
	json_u64(w, "bytesDecoded", decoded);
	report_u64(w, "nsec", sum(r->d, got_ns));
	report_u64(w, "nsecDecoded", sum(r->d, decoded_ns));
	json_end_object(w);
}

static struct flow_stats total_of(const struct report *r)
{
	struct flow_stats sum = {0};
	size_t i;

	if (!report_is_limited(r))
		return decode_total(r->d);
	for (i = 0; i < r->lists[REPORT_THREADS].total; i++) {
		sum.instructions += r->threads[i].insns;
		sum.branches += r->threads[i].branches;
	}
	return sum;
}

void report_totals(const struct report *r, struct json_writer *w)
{
	const struct flow_stats total = total_of(r);
	int i;

	json_begin_object(w, "totals");
	json_u64(w, "instructions", total.instructions);
	if (r->d->replay->kernel != NULL)
		json_u64(w, "kernelInstructions", total.kernel_instructions);
	json_u64(w, "branches", total.branches);
	json_u64(w, "gaps", r->d->gaps.total);
	json_end_object(w);
	json_begin_object(w, "gapCounts");
	for (i = FAULT_NONE + 1; i < FAULT_N_; i++)
		if (r->d->gaps.counts[i] > 0)
			json_u64(w, fault_name((enum fault)i), r->d->gaps.counts[i]);
	json_end_object(w);
}

void report_gap(const struct report *r, struct json_writer *w, size_t i)
{
	const struct gap *gap = &r->d->gaps.list[i];

	json_begin_object(w, NULL);
	json_u64(w, "n", i + 1);
	json_string(w, "kind", fault_name(gap->kind));
	report_u64(w, "cpu", gap->cpu == GAPS_NO_CPU ? MANIFEST_ABSENT : gap->cpu);
	report_at(r, w, "atNSec", gap->time_ns);
	report_hex(w, "tsc", gap->tsc);
	report_u64(w, "offset", report_is_limited(r) ? MANIFEST_ABSENT : gap->offset);
	report_u64(w, "bytes", gap->bytes);
	report_hex(w, "address", gap->address);
	json_u64(w, "count", gap->count);
	report_string_cut(w, "why", gap->why != NULL ? gap->why : fault_why(gap->kind),
			  REPORT_MAX_STRING);
	json_end_object(w);
}
