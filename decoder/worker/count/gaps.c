/*
 * The list of what is missing, and the gaps that only the recording shows.
 */
#include "decoder/worker/count/decoded.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decoder/worker/replay/replay.h"
#include "proto/base.h"

void gaps_init(struct gaps *g)
{
	*g = (struct gaps){0};
}

void gaps_done(struct gaps *g)
{
	for (size_t i = 0; i < g->n; i++)
		free(g->list[i].why);
	free(g->list);
	*g = (struct gaps){0};
}

struct gap gaps_blank(enum fault kind)
{
	return (struct gap){
		.kind = kind,
		.cpu = GAPS_NO_CPU,
		.trace = SIZE_MAX,
		.time_ns = MANIFEST_ABSENT,
		.tsc = MANIFEST_ABSENT,
		.offset = MANIFEST_ABSENT,
		.bytes = MANIFEST_ABSENT,
		.address = MANIFEST_ABSENT,
		.count = 1,
	};
}

int gaps_add(struct gaps *g, const struct gap *gap, const char *why)
{
	assert(gap->kind < FAULT_N_);
	g->counts[gap->kind]++;
	g->total++;
	if (g->n >= GAPS_MAX)
		return 0;
	if (ARRAY_RESERVE(g->list, g->capacity, g->n + 1) < 0)
		return -ENOMEM;
	g->list[g->n] = *gap;
	g->list[g->n].why = why ? strdup(why) : NULL;
	if (why && !g->list[g->n].why)
		return -ENOMEM;
	g->n++;
	return 0;
}

static struct gap from_flow(const struct replay *r, uint32_t cpu, const struct flow_gap *from)
{
	struct gap gap = gaps_blank(from->fault);

	if (from->fault <= FAULT_NONE || from->fault >= FAULT_N_)
		gap.kind = FAULT_UNSUPPORTED;
	gap.cpu = cpu;
	if (from->tsc_lo != 0) {
		gap.tsc = from->tsc_lo;
		gap.time_ns = tscmap_ns(&r->clock, from->tsc_lo);
	}
	gap.offset = from->offset;
	gap.bytes = from->bytes;
	if (from->address != 0)
		gap.address = from->address;
	return gap;
}

int gaps_add_flow(struct gaps *g, const struct replay *r, uint32_t cpu, const struct flow_gap *from)
{
	struct gap gap = from_flow(r, cpu, from);
	char why[160];

	if (from->fault == FAULT_HEAD) {
		g->head_bytes += from->bytes;
		return 0;
	}
	if (from->stays == 0)
		return gaps_add(g, &gap, NULL);
	snprintf(why, sizeof(why), "%s; %" PRIu64 " more packets lead to such code",
		 fault_why(gap.kind), from->stays);
	return gaps_add(g, &gap, why);
}

/* Writes "it is uncertain which thread ran: PID/TID, PID/TID or others". False: one of the threads
 * may not be named. */
static bool write_candidates(const struct replay *r, const struct replay_candidates *c, char *to,
			     size_t room)
{
	const size_t named = MIN_OF(c->n, (size_t)REPLAY_NAMED);
	size_t n = (size_t)snprintf(to, room, "%s: ", fault_why(FAULT_THREAD_UNCERTAIN));

	for (size_t i = 0; i < named && n < room; i++) {
		const struct timeline_thread *t = c->list[i];
		const char *before = i == 0 ? "" : i + 1 == c->n ? " or " : ", ";

		if (permit_thread(r->permit, t, MANIFEST_ABSENT) != PERMIT_YES)
			return false;
		n += (size_t)snprintf(to + n, room - n, "%s%" PRIu32 "/%" PRIu32, before, t->pid,
				      t->tid);
	}
	if (c->n > named && n < room)
		snprintf(to + n, room - n, " or %zu others", c->n - named);
	return true;
}

int gaps_name(struct gaps *g, size_t first, const struct replay *r,
	      const struct replay_candidates *candidates)
{
	char why[320];

	if (!candidates || candidates->n == 0 || !write_candidates(r, candidates, why, sizeof(why)))
		return 0;
	for (size_t i = first; i < g->n; i++) {
		if (g->list[i].kind != FAULT_THREAD_UNCERTAIN || g->list[i].why)
			continue;
		g->list[i].why = strdup(why);
		if (!g->list[i].why)
			return -ENOMEM;
	}
	return 0;
}

int gaps_add_unowned(struct gaps *g, const struct replay *r, uint32_t cpu,
		     const struct flow_gap *from, uint64_t insns)
{
	struct gap gap = from_flow(r, cpu, from);

	gap.bytes = MANIFEST_ABSENT;
	gap.count = insns;
	return gaps_add(g, &gap, NULL);
}

/* --- The recording --- */

/* PERF_AUX_FLAG_*, include/uapi/linux/perf_event.h. OVERWRITE is no fault: the recorder works that
 * way. */
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
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(aux_faults) && r == 0; i++) {
		struct gap gap = gaps_blank(aux_faults[i].kind);

		if (!(flags & aux_faults[i].flag))
			continue;
		gap.cpu = cpu;
		gap.time_ns = time;
		r = gaps_add(g, &gap, NULL);
	}
	return r;
}

static int add_losses(struct gaps *g, const struct replay *r)
{
	const struct timeline_loss *loss;
	int result = 0;

	for (size_t i = 0; result == 0 && (loss = timeline_loss(r->timeline, i)); i++) {
		struct gap gap = gaps_blank(FAULT_SIDEBAND_LOST);
		char why[96];

		if (loss->lost == 0) {
			result = add_aux(g, loss->cpu, loss->time, loss->aux_flags);
			continue;
		}
		gap.cpu = loss->cpu;
		gap.time_ns = loss->time;
		gap.count = loss->lost;
		snprintf(why, sizeof(why), "image uncertain since %" PRIu64 " ns on CPU %u",
			 loss->since, loss->cpu);
		result = gaps_add(g, &gap, why);
	}
	return result;
}

static int add_cpu(struct gaps *g, const struct replay *r, const struct manifest_cpu *cpu,
		   uint64_t begin_ns)
{
	uint64_t horizon = r->manifest->horizon_ns, logged = 0;
	struct gap gap = gaps_blank(FAULT_STOP_TIMEOUT);
	const struct timeline_loss *loss;
	int result = 0;

	gap.cpu = cpu->cpu;
	gap.time_ns = cpu->stop_ns;
	if (cpu->stop_timeout)
		result = gaps_add(g, &gap, NULL);
	/* Flags of the CPU's AUX records in the log are added by add_losses(). */
	for (size_t i = 0; cpu->aux_flags != 0 && (loss = timeline_loss(r->timeline, i)); i++)
		if (loss->cpu == cpu->cpu)
			logged |= loss->aux_flags;
	if (result == 0 && cpu->aux_flags != 0)
		result = add_aux(g, cpu->cpu, cpu->stop_ns, cpu->aux_flags & ~logged);
	if (result == 0 && horizon != MANIFEST_ABSENT && begin_ns != MANIFEST_ABSENT &&
	    begin_ns < horizon) {
		gap = gaps_blank(FAULT_IMAGE_UNCERTAIN);
		gap.cpu = cpu->cpu;
		gap.time_ns = begin_ns;
		result = gaps_add(g, &gap, NULL);
	}
	return result;
}

/* A newer recorder may write notes of a kind that this decoder does not know. */
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

int gaps_add_recording(struct gaps *g, const struct replay *r, const uint64_t *begin_ns)
{
	const struct manifest *m = r->manifest;
	struct gap bad = gaps_blank(FAULT_SIDEBAND_BAD), empty = gaps_blank(FAULT_EMPTY);
	const struct gap less = gaps_blank(
		manifest_contents(m) == MANIFEST_TARGETS ? FAULT_NO_TNT : FAULT_NO_BRANCHES);
	int result = 0;

	if (manifest_contents(m) != MANIFEST_BRANCHES)
		result = gaps_add(g, &less, NULL);
	bad.count = r->bad_records;
	if (r->bad_records > 0 && result == 0)
		result = gaps_add(g, &bad, NULL);
	for (size_t i = 0; i < m->n_notes && result == 0; i++)
		result = add_note(g, &m->notes[i]);
	for (size_t i = 0; i < m->n_cpus && result == 0; i++)
		result = add_cpu(g, r, &m->cpus[i], begin_ns[i]);
	if (result == 0)
		result = add_losses(g, r);
	if (result == 0 && m->n_cpus == 0)
		result = gaps_add(g, &empty, "no CPU was recorded");
	return result;
}
