/*
 * The summary: one object for scripts and tests.
 */
#include <inttypes.h>
#include <stdio.h>

#include "decoder/worker/count/tally.h"
#include "decoder/worker/replay/replay.h"
#include "decoder/worker/report/report.h"
#include "proto/base.h"
#include "proto/json.h"

static void write_hash(struct json_writer *w, uint64_t hash)
{
	char text[17];

	snprintf(text, sizeof(text), "%016" PRIx64, hash);
	json_string(w, "ipHash", text);
}

static void write_cpu(struct json_writer *w, const struct decode *d, size_t i)
{
	const struct manifest_cpu *cpu = &d->replay->manifest->cpus[i];
	uint64_t stop = cpu->stop_ns == MANIFEST_ABSENT
				? MANIFEST_ABSENT
				: tscmap_tsc(&d->replay->clock, cpu->stop_ns);

	json_begin_object(w, NULL);
	report_id(w, "cpu", cpu->cpu);
	if (cpu->tid != MANIFEST_ANY)
		report_id(w, "tid", cpu->tid);
	report_tsc(w, "tscFirst", d->cpus[i].stats.tsc_first);
	report_tsc(w, "tscStop", stop == MANIFEST_ABSENT ? 0 : stop);
	json_u64(w, "instructions", d->cpus[i].stats.instructions);
	json_u64(w, "psbs", d->cpus[i].stats.psbs);
	json_end_object(w);
}

/* How long each replay took, in seconds, with all digits that the clock can have. */
static void write_passes(struct json_writer *w, const struct decode *d)
{
	json_begin_array(w, "passes");
	for (size_t i = 0; i < d->n_passes; i++)
		json_fixed(w, NULL, (double)d->passes[i].cpu / 1e9, 9);
	json_end_array(w);
	json_begin_array(w, "passesElapsed");
	for (size_t i = 0; i < d->n_passes; i++)
		json_fixed(w, NULL, (double)d->passes[i].wall / 1e9, 9);
	json_end_array(w);
}

int report_summary(struct decode *d, const struct decode_options *options, int fd)
{
	const struct flow_stats total = decode_total(d);
	const size_t n_cpus = d->replay->manifest->n_cpus;
	uint64_t head = MIN_OF(d->gaps.head_bytes, total.bytes);
	uint64_t hash = HASH_BASIS;
	CLEANUP(json_writer_freep) struct json_writer *w = NULL;
	int r = json_writer_new_fd(fd, 0, options->pretty, &w);

	if (r < 0)
		return r;
	/* Several CPUs are decoded at the same time: their hash is that of their own hashes. */
	for (size_t i = 0; i < n_cpus; i++)
		hash = n_cpus == 1 ? d->cpus[i].hash : hash_u64(hash, d->cpus[i].hash);
	json_begin_object(w, NULL);
	json_u64(w, "instructions", total.instructions);
	if (d->replay->kernel)
		json_u64(w, "kernelInstructions", total.kernel_instructions);
	json_u64(w, "branches", total.branches);
	json_u64(w, "bytes", total.bytes);
	json_u64(w, "bytesDecoded", total.bytes_decoded);
	json_u64(w, "headBytes", head);
	json_u64(w, "gaps", d->gaps.total);
	json_begin_object(w, "errors");
	for (int i = FAULT_NONE + 1; i < FAULT_N_; i++)
		if (d->gaps.counts[i] > 0)
			json_u64(w, fault_name((enum fault)i), d->gaps.counts[i]);
	json_end_object(w);
	json_u64(w, "psbs", total.psbs);
	json_u64(w, "packets", total.packets);
	report_tsc(w, "tscFirst", total.tsc_first);
	report_tsc(w, "tscLast", total.tsc_last);
	json_u64(w, "returns", total.returns);
	json_u64(w, "compressedReturns", total.compressed_returns);
	report_return_stack(w, &total, options);
	report_percent_decoded(w, "coveragePercent", d,
			       decode_percent(total.bytes_decoded, total.bytes - head));
	report_exact(w, &total);
	if (options->hash)
		write_hash(w, hash);
	json_begin_array(w, "cpus");
	for (size_t i = 0; i < n_cpus; i++)
		write_cpu(w, d, i);
	json_end_array(w);
	if (options->hash) {
		tally_sort(&d->tally);
		json_begin_array(w, "threads");
		for (size_t i = 0; i < d->tally.n_threads; i++) {
			const struct tally_counters *counters = d->tally.threads[i];

			if (counters->insns == 0)
				continue;
			json_begin_object(w, NULL);
			report_ids(w, counters->thread, counters->thread);
			json_u64(w, "instructions", counters->insns);
			write_hash(w, counters->hash);
			json_end_object(w);
		}
		json_end_array(w);
	}
	if (d->n_passes > 0)
		write_passes(w, d);
	if (d->window.limited) {
		json_boolean(w, "complete", d->window.complete);
		json_u64(w, "traceBytes", d->window.bytes);
	}
	json_end_object(w);
	return json_writer_finish(w);
}
