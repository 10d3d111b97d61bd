/*
 * Gaps that the trace itself does not show: the recorder's notes, the kernel's LOST and AUX
 * records, sideband that cannot be read or does not reach back far enough. Called by decode.c after
 * the replay.
 */
#include <inttypes.h>
#include <stdio.h>

#include "decoder/worker/count/gaps.h"
#include "decoder/worker/replay/replay.h"
#include "proto/base.h"

/* PERF_AUX_FLAG_*, include/uapi/linux/perf_event.h. OVERWRITE is how this recorder works. */
static const struct {
	uint64_t flag;
	enum fault kind;
} aux_faults[] = {
	{PERF_AUX_FLAG_TRUNCATED, FAULT_AUX_TRUNCATED},
	{PERF_AUX_FLAG_PARTIAL, FAULT_AUX_PARTIAL},
	{PERF_AUX_FLAG_COLLISION, FAULT_AUX_COLLISION},
};

static int add_aux(struct gaps *g, uint32_t cpu, uint64_t time, uint64_t flags)
{
	size_t i;
	int r = 0;

	for (i = 0; i < ARRAY_SIZE(aux_faults) && r == 0; i++) {
		struct gap gap = gaps_blank(aux_faults[i].kind);

		if (!(flags & aux_faults[i].flag))
			continue;
		gap.cpu = cpu;
		gap.time_ns = time;
		r = gaps_add(g, &gap, NULL);
	}
	return r;
}

static int add_loss(struct gaps *g, const struct timeline_loss *loss)
{
	struct gap gap = gaps_blank(FAULT_SIDEBAND_LOST);
	char why[96];

	if (loss->lost == 0)
		return add_aux(g, loss->cpu, loss->time, loss->aux_flags);
	gap.cpu = loss->cpu;
	gap.time_ns = loss->time;
	gap.count = loss->lost;
	snprintf(why, sizeof(why), "image uncertain since %" PRIu64 " ns on CPU %u", loss->since,
		 loss->cpu);
	return gaps_add(g, &gap, why);
}

static int add_losses(struct gaps *g, const struct replay *r)
{
	const struct timeline_loss *loss;
	size_t i;
	int result = 0;

	for (i = 0; result == 0 && (loss = timeline_loss(r->timeline, i)) != NULL; i++)
		result = add_loss(g, loss);
	return result;
}

/* The flags that AUX records of CPU in the log have told already. */
static uint64_t told_flags(const struct replay *r, uint32_t cpu)
{
	const struct timeline_loss *loss;
	uint64_t flags = 0;
	size_t i;

	for (i = 0; (loss = timeline_loss(r->timeline, i)) != NULL; i++)
		if (loss->cpu == cpu)
			flags |= loss->aux_flags;
	return flags;
}

static int add_cpu(struct gaps *g, const struct replay *r, const struct manifest_cpu *cpu,
		   uint64_t begin_ns)
{
	uint64_t horizon = r->manifest->horizon_ns;
	struct gap gap = gaps_blank(FAULT_STOP_TIMEOUT);
	int result = 0;

	gap.cpu = cpu->cpu;
	gap.time_ns = cpu->stop_ns;
	if (cpu->stop_timeout)
		result = gaps_add(g, &gap, NULL);
	if (result == 0 && cpu->aux_flags != 0)
		result = add_aux(g, cpu->cpu, cpu->stop_ns,
				 cpu->aux_flags & ~told_flags(r, cpu->cpu));
	if (result == 0 && horizon != MANIFEST_ABSENT && begin_ns != MANIFEST_ABSENT &&
	    begin_ns < horizon) {
		gap = gaps_blank(FAULT_IMAGE_UNCERTAIN);
		gap.cpu = cpu->cpu;
		gap.time_ns = begin_ns;
		result = gaps_add(g, &gap, NULL);
	}
	return result;
}

/* A note of a newer recorder may have a kind that is not known here. */
static int add_note(struct gaps *g, const struct manifest_note *note)
{
	enum fault kind = fault_by_name(note->kind);
	struct gap gap = gaps_blank(kind == FAULT_NONE ? FAULT_UNSUPPORTED : kind);
	char text[512];

	gap.count = note->count;
	if (kind != FAULT_NONE)
		return gaps_add(g, &gap, note->why);
	snprintf(text, sizeof(text), "note \"%s\": %s", note->kind, note->why ? note->why : "");
	return gaps_add(g, &gap, text);
}

static int add_bad_records(struct gaps *g, const struct replay *r)
{
	struct gap gap = gaps_blank(FAULT_SIDEBAND_BAD);

	gap.count = r->bad_records;
	return r->bad_records > 0 ? gaps_add(g, &gap, NULL) : 0;
}

int gaps_add_recording(struct gaps *g, const struct replay *r, const uint64_t *begin_ns)
{
	const struct manifest *m = r->manifest;
	struct gap empty = gaps_blank(FAULT_EMPTY);
	size_t i;
	int result = add_bad_records(g, r);

	for (i = 0; i < m->n_notes && result == 0; i++)
		result = add_note(g, &m->notes[i]);
	for (i = 0; i < m->n_cpus && result == 0; i++)
		result = add_cpu(g, r, &m->cpus[i], begin_ns[i]);
	if (result == 0)
		result = add_losses(g, r);
	if (result == 0 && m->n_cpus == 0)
		result = gaps_add(g, &empty, "no CPU was recorded");
	return result;
}
