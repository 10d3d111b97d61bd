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
		.until_ns = MANIFEST_ABSENT,
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
	if (g->n >= GAPS_MAX && g->counts[gap->kind] > GAPS_OF_KIND)
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

/* The windows of the report, perf ns: what the recording says of other times is counted apart. */
struct windows {
	struct gaps *g;
	const struct replay *r;
	const uint64_t *end_ns; /* of the decoded parts, by index; NULL: all was decoded */
	/* By the number of the CPU; a CPU that has no trace has the window of all traces. 0 and
	 * UINT64_MAX: unknown. */
	struct window {
		uint64_t begin, end;
	} cpus[MANIFEST_MAX_CPUS], all;
	/* By the number of the CPU: the end of the last time without a trace before its trace
	 * begins, if the ring was new then and has all that was traced since. UINT64_MAX: none. */
	uint64_t opened[MANIFEST_MAX_CPUS];
};

/* The least number of zero bytes in front of a trace that no packets leave (PAD is one zero byte):
 * the ring has not been filled yet. */
#define EMPTY_BYTES 16u

/* When the trace of CPU ends; a CPU that did not answer the stop may have gone on. */
static uint64_t end_of_trace(const struct manifest_cpu *cpu)
{
	return cpu->stop_ns == MANIFEST_ABSENT || cpu->stop_timeout ? UINT64_MAX : cpu->stop_ns;
}

/* When the decoded part of the trace of CPU number I ends. */
static uint64_t end_of(const struct windows *w, size_t i)
{
	const uint64_t end = end_of_trace(&w->r->manifest->cpus[i]);

	/* MANIFEST_ABSENT is the greatest number. */
	return w->end_ns ? MIN_OF(end, w->end_ns[i]) : end;
}

static void windows_init(struct windows *w, struct gaps *g, const struct replay *r,
			 const uint64_t *begin_ns, const uint64_t *end_ns)
{
	const struct manifest *m = r->manifest;

	*w = (struct windows){.g = g, .r = r, .end_ns = end_ns, .all = {UINT64_MAX, 0}};
	for (size_t i = 0; i < m->n_cpus; i++) {
		if (begin_ns[i] == MANIFEST_ABSENT)
			continue;
		w->all.begin = MIN_OF(w->all.begin, begin_ns[i]);
		w->all.end = MAX_OF(w->all.end, end_of(w, i));
	}
	/* Nothing was traced, or nothing has a time. */
	if (w->all.end == 0)
		w->all = (struct window){0, UINT64_MAX};
	for (size_t i = 0; i < MANIFEST_MAX_CPUS; i++)
		w->cpus[i] = w->all;
	for (size_t i = 0; i < m->n_cpus; i++) {
		const struct manifest_cpu *cpu = &m->cpus[i];
		struct window own = {begin_ns[i], end_of(w, i)};

		if (cpu->cpu == MANIFEST_ANY)
			continue;
		/* Without a trace the sideband is the report, as far back as it was asked for. */
		if (own.begin == MANIFEST_ABSENT)
			own.begin = m->last_ns < own.end && own.end != UINT64_MAX
					    ? own.end - m->last_ns
					    : 0;
		w->cpus[cpu->cpu] = own;
	}
}

static bool is_dark_note(const struct manifest_note *note)
{
	return note->cpu < MANIFEST_MAX_CPUS && note->until_ns != MANIFEST_ABSENT &&
	       fault_is_dark(fault_by_name(note->kind));
}

/* PARTIAL: the windows begin where decoding began, and not where the rings do. */
static void find_new_rings(struct windows *w, bool partial)
{
	static const uint8_t empty[EMPTY_BYTES];
	const struct manifest *m = w->r->manifest;

	for (size_t i = 0; i < MANIFEST_MAX_CPUS; i++)
		w->opened[i] = UINT64_MAX;
	for (size_t i = 0; i < m->n_cpus && !partial; i++) {
		size_t size;
		const uint8_t *bytes = bundle_cpu(w->r->bundle, i, &size);

		if (m->cpus[i].cpu != MANIFEST_ANY && size > EMPTY_BYTES &&
		    memcmp(bytes, empty, EMPTY_BYTES) == 0)
			w->opened[m->cpus[i].cpu] = 0;
	}
	for (size_t i = 0; i < m->n_notes; i++) {
		const struct manifest_note *note = &m->notes[i];

		/* Every recording starts; that is no reason to name. */
		if (is_dark_note(note) && fault_by_name(note->kind) != FAULT_PT_STARTING &&
		    w->opened[note->cpu] != UINT64_MAX &&
		    note->until_ns <= w->cpus[note->cpu].begin)
			w->opened[note->cpu] = MAX_OF(w->opened[note->cpu], note->until_ns);
	}
}

static const struct window *windows_of(const struct windows *w, uint32_t cpu)
{
	return cpu < MANIFEST_MAX_CPUS ? &w->cpus[cpu] : &w->all;
}

/* The window for a time without a trace. The CPU's own trace begins behind that time if its ring
 * was lost with it: the time counts as far back as other traces or the request reach, and where it
 * is the reason why the trace begins. */
static struct window dark_window(const struct windows *w, const struct manifest_note *note)
{
	const struct manifest *m = w->r->manifest;
	struct window window = *windows_of(w, note->cpu);
	uint64_t end = window.end != UINT64_MAX ? window.end : m->perf_ns;

	window.begin = window.begin == 0 ? w->all.begin : MIN_OF(window.begin, w->all.begin);
	if (m->last_ns != MANIFEST_ABSENT && end != MANIFEST_ABSENT)
		window.begin = MIN_OF(window.begin, end - MIN_OF(end, m->last_ns));
	else if (note->until_ns == w->opened[note->cpu])
		window.begin = MIN_OF(window.begin, note->since_ns);
	return window;
}

/* Adds GAP, cut to WINDOW, which is GAP's own time where that is known: from time_ns until
 * until_ns. A gap that lies outside is only counted. */
static int add_within(struct windows *w, const struct window *window, const struct gap *gap,
		      const char *why)
{
	struct gap cut = *gap;
	uint64_t until = gap->until_ns != MANIFEST_ABSENT ? gap->until_ns : UINT64_MAX;

	if (until < window->begin ||
	    (gap->time_ns != MANIFEST_ABSENT && gap->time_ns > window->end)) {
		w->g->outside[gap->kind]++;
		return 0;
	}
	if (gap->time_ns != MANIFEST_ABSENT)
		cut.time_ns = MAX_OF(gap->time_ns, window->begin);
	if (until != UINT64_MAX)
		cut.until_ns = MIN_OF(until, window->end);
	return gaps_add(w->g, &cut, why);
}

/* The kernel tells the flags when the trace is stopped next: TIME. */
static int add_aux(struct windows *w, uint32_t cpu, uint64_t time, uint64_t flags)
{
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(aux_faults) && r == 0; i++) {
		struct gap gap = gaps_blank(aux_faults[i].kind);

		if (!(flags & aux_faults[i].flag))
			continue;
		gap.cpu = cpu;
		gap.time_ns = gap.until_ns = time;
		r = add_within(w, windows_of(w, cpu), &gap, NULL);
	}
	return r;
}

/* Lost records of a CPU's switches concern that CPU; lost records of mappings concern all. */
static int add_loss(struct windows *w, const struct timeline_loss *loss)
{
	const struct window *own = windows_of(w, loss->cpu);
	const struct window window = {MIN_OF(own->begin, w->all.begin),
				      MAX_OF(own->end, w->all.end)};
	struct gap gap = gaps_blank(FAULT_SIDEBAND_LOST);
	char why[96];

	gap.cpu = loss->cpu;
	gap.time_ns = loss->since != 0 ? loss->since : loss->time;
	gap.until_ns = loss->time;
	gap.count = loss->lost;
	snprintf(why, sizeof(why), "image uncertain since %" PRIu64 " ns on CPU %u", loss->since,
		 loss->cpu);
	return add_within(w, &window, &gap, why);
}

static int add_losses(struct windows *w)
{
	const struct timeline_loss *loss;
	int r = 0;

	for (size_t i = 0; r == 0 && (loss = timeline_loss(w->r->timeline, i)); i++)
		r = loss->lost > 0 ? add_loss(w, loss)
				   : add_aux(w, loss->cpu, loss->time, loss->aux_flags);
	return r;
}

/* Flags of AUX records that are no longer in the log; add_losses() adds the others. */
static int add_old_flags(struct windows *w, const struct manifest_cpu *cpu)
{
	const uint64_t times[] = {cpu->truncated_ns, cpu->partial_ns, cpu->collision_ns};
	const struct timeline_loss *loss;
	uint64_t logged = 0;
	int r = 0;

	_Static_assert(ARRAY_SIZE(times) == ARRAY_SIZE(aux_faults), "a time for each flag");
	for (size_t i = 0; cpu->aux_flags != 0 && (loss = timeline_loss(w->r->timeline, i)); i++)
		if (loss->cpu == cpu->cpu)
			logged |= loss->aux_flags;
	for (size_t i = 0; i < ARRAY_SIZE(times) && r == 0; i++) {
		uint64_t time = times[i] != MANIFEST_ABSENT ? times[i] : cpu->stop_ns;

		if (cpu->aux_flags & ~logged & aux_faults[i].flag)
			r = add_aux(w, cpu->cpu, time, aux_faults[i].flag);
	}
	return r;
}

static int add_cpu(struct windows *w, size_t i, uint64_t begin_ns)
{
	const struct manifest_cpu *cpu = &w->r->manifest->cpus[i];
	uint64_t horizon = w->r->manifest->horizon_ns;
	struct gap gap = gaps_blank(FAULT_STOP_TIMEOUT);
	int r = 0;

	gap.cpu = cpu->cpu;
	gap.time_ns = cpu->stop_ns;
	if (cpu->stop_timeout)
		r = add_within(w, windows_of(w, cpu->cpu), &gap, NULL);
	if (r == 0)
		r = add_old_flags(w, cpu);
	if (r == 0 && horizon != MANIFEST_ABSENT && begin_ns != MANIFEST_ABSENT &&
	    begin_ns < horizon) {
		gap = gaps_blank(FAULT_IMAGE_UNCERTAIN);
		gap.cpu = cpu->cpu;
		gap.time_ns = begin_ns;
		gap.until_ns = MIN_OF(horizon, end_of(w, i));
		r = gaps_add(w->g, &gap, NULL);
	}
	return r;
}

/* A newer recorder may write notes of a kind that this decoder does not know. */
static int add_note(struct windows *w, const struct manifest_note *note)
{
	enum fault kind = fault_by_name(note->kind);
	struct gap gap = gaps_blank(kind == FAULT_NONE ? FAULT_UNSUPPORTED : kind);
	const struct window window =
		is_dark_note(note) ? dark_window(w, note) : *windows_of(w, note->cpu);
	char text[512];

	gap.cpu = note->cpu == MANIFEST_ANY ? GAPS_NO_CPU : note->cpu;
	gap.time_ns = note->since_ns;
	gap.until_ns = note->until_ns;
	gap.count = note->count;
	if (kind != FAULT_NONE)
		return add_within(w, &window, &gap, note->why);
	snprintf(text, sizeof(text), "note \"%s\": %s", note->kind, note->why ? note->why : "");
	return add_within(w, &window, &gap, text);
}

/* What ran outside of a filter is not in the trace, whatever the coverage of its bytes is. Filters
 * for privilege levels and tasks are no gap: a report says what it is about. */
static int add_filters(struct gaps *g, const struct manifest *m)
{
	const unsigned int filters = manifest_filters(m);
	const struct gap gap = gaps_blank(FAULT_FILTERED);
	char text[512];

	if (!(filters & (MANIFEST_ONLY_ADDRESSES | MANIFEST_ONLY_CR3 | MANIFEST_ONLY_BETWEEN)))
		return 0;
	snprintf(text, sizeof(text), "only a part of what ran is in the trace:%s%s%s%s%.300s",
		 filters & MANIFEST_ONLY_CR3 ? " one address space (CR3)" : "",
		 filters & MANIFEST_ONLY_BETWEEN ? " while other events did not pause it" : "",
		 filters & MANIFEST_ONLY_ADDRESSES ? " some addresses" : "",
		 m->address_filter ? ", " : "", m->address_filter ? m->address_filter : "");
	return gaps_add(g, &gap, text);
}

int gaps_add_recording(struct gaps *g, const struct replay *r, const uint64_t *begin_ns,
		       const uint64_t *end_ns, bool partial)
{
	const struct manifest *m = r->manifest;
	struct gap bad = gaps_blank(FAULT_SIDEBAND_BAD), empty = gaps_blank(FAULT_EMPTY);
	const struct gap less = gaps_blank(
		manifest_contents(m) == MANIFEST_TARGETS ? FAULT_NO_TNT : FAULT_NO_BRANCHES);
	CLEANUP_FREE struct windows *w = malloc(sizeof(*w));
	int result = 0;

	if (!w)
		return -ENOMEM;
	windows_init(w, g, r, begin_ns, end_ns);
	find_new_rings(w, partial);
	if (manifest_contents(m) != MANIFEST_BRANCHES)
		result = gaps_add(g, &less, NULL);
	if (result == 0)
		result = add_filters(g, m);
	bad.count = r->bad_records;
	if (r->bad_records > 0 && result == 0)
		result = gaps_add(g, &bad, NULL);
	for (size_t i = 0; i < m->n_notes && result == 0; i++)
		result = add_note(w, &m->notes[i]);
	for (size_t i = 0; i < m->n_cpus && result == 0; i++)
		result = add_cpu(w, i, begin_ns[i]);
	if (result == 0)
		result = add_losses(w);
	if (result == 0 && m->n_cpus == 0)
		result = gaps_add(g, &empty, "no CPU was recorded");
	return result;
}

static int by_since(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

int gaps_dark_ns(const struct manifest *m, uint32_t cpu, uint64_t begin, uint64_t end,
		 uint64_t *ret)
{
	CLEANUP_FREE uint64_t(*spans)[2] = calloc(m->n_notes + 1, sizeof(*spans));
	uint64_t reached = begin;
	size_t n = 0;

	*ret = 0;
	if (!spans)
		return -ENOMEM;
	for (size_t i = 0; i < m->n_notes; i++) {
		const struct manifest_note *note = &m->notes[i];

		if (!is_dark_note(note) || note->cpu != cpu || note->since_ns == MANIFEST_ABSENT)
			continue;
		spans[n][0] = note->since_ns;
		spans[n++][1] = note->until_ns;
	}
	/* Times that overlap count once. */
	qsort(spans, n, sizeof(*spans), by_since);
	for (size_t i = 0; i < n; i++) {
		uint64_t since = MAX_OF(spans[i][0], reached), until = MIN_OF(spans[i][1], end);

		if (until <= since)
			continue;
		*ret += until - since;
		reached = until;
	}
	return 0;
}
