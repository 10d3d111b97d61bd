/*
 * The decoder's side of the timeline: loads the records of a bundle, and answers by time.
 *
 * The records are sorted by time and applied to a state with history. The bytes are untrusted:
 * records that do not parse are skipped, and the memory that records may take is limited. Every
 * answer is a binary search in the history.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "proto/base.h"
#include "proto/bundle/manifest.h"
#include "sideband/timeline/timeline_private.h"

/* A fork copies the parent's mappings, so the memory is not in proportion to the records. */
#define MEMORY_LIMIT ((size_t)512 << 20)

/* --- Load --- */

/* One record that parses. */
struct entry {
	uint64_t time;
	uint64_t since; /* LOST record: the records were lost after this time; else NOT_LOST */
	size_t offset;
	bool later; /* sorts behind the others of the same time */
};

#define NOT_LOST UINT64_MAX

/* The last records of one CPU that were met. */
struct index_cpu {
	uint64_t time; /* of the last record */
	size_t loss;   /* the entry of its LOST record if that was the last one, else NO_LOSS */
};

#define NO_LOSS SIZE_MAX

struct index {
	struct entry *items;
	size_t n, capacity;
	struct index_cpu *cpus; /* TIMELINE_MAX_CPUS */
	size_t n_losses;
};

static int by_time(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	if (x->time != y->time)
		return x->time < y->time ? -1 : 1;
	if (x->later != y->later)
		return x->later ? 1 : -1;
	return x->offset < y->offset ? -1 : x->offset > y->offset;
}

/* Bounds the time of lost records by the neighbours of the LOST record from the same CPU. The PT
 * event's own records do not count, as they may have come through another ring. ENTRY, the newest
 * of X, is R's. */
static void bound_losses(struct index *x, const struct perfrecord *r, struct entry *entry)
{
	struct index_cpu *cpu = r->cpu < TIMELINE_MAX_CPUS ? &x->cpus[r->cpu] : NULL;

	if (r->type == PERF_RECORD_LOST && r->u.lost.lost > 0) {
		x->n_losses++;
		entry->since = cpu ? MIN_OF(cpu->time, r->time) : 0;
		if (cpu)
			cpu->loss = x->n - 1;
		return;
	}
	if (!cpu || r->time == 0 || r->type == PERF_RECORD_LOST || r->type == PERF_RECORD_AUX ||
	    r->type == PERF_RECORD_ITRACE_START)
		return;
	/* The time of a LOST record may be a little after that of the record behind it
	 * (kernel/events/ring_buffer.c, __perf_output_begin(), writes the LOST record when the
	 * other one already has its time). */
	if (cpu->loss != NO_LOSS) {
		struct entry *loss = &x->items[cpu->loss];

		if (r->time >= loss->since)
			loss->time = MIN_OF(loss->time, r->time);
		cpu->loss = NO_LOSS;
	}
	cpu->time = r->time;
}

/* Finds the records that parse, in order of arrival. 0, -ENOMEM. */
static int make_index(const uint8_t *bytes, size_t size, struct index *x, uint64_t *ret_bad)
{
	struct perfrecord r;
	int result;

	for (size_t at = 0; at < size; at += r.size) {
		result = perfrecord_parse(bytes + at, size - at, &r);
		*ret_bad += result < 0;
		/* Without a size the next record cannot be found. */
		if (r.size == 0)
			return 0;
		if (result < 0)
			continue;
		if (ARRAY_RESERVE(x->items, x->capacity, x->n + 1) < 0)
			return -ENOMEM;
		x->items[x->n++] = (struct entry){.time = r.time,
						  .since = NOT_LOST,
						  .offset = at,
						  .later = timeline_is_later(r.type, r.time)};
		bound_losses(x, &r, &x->items[x->n - 1]);
	}
	return 0;
}

static int apply_all(struct state *s, const uint8_t *bytes, size_t size, const struct index *x,
		     uint64_t *ret_bad)
{
	CLEANUP_FREE struct lost_span *spans = calloc(x->n_losses + 1, sizeof(*spans));
	struct perfrecord r;
	size_t n = 0;
	int result;

	if (!spans)
		return -ENOMEM;
	for (size_t i = 0; i < x->n; i++) {
		const struct entry *e = &x->items[i];

		if (e->since == NOT_LOST)
			continue;
		(void)perfrecord_parse(bytes + e->offset, size - e->offset, &r);
		spans[n++] = (struct lost_span){e->since, e->time, r.cpu};
	}
	result = certainty_prepare(s, spans, n);
	if (result < 0)
		return result;
	for (size_t i = 0; i < x->n; i++) {
		const struct entry *e = &x->items[i];

		(void)perfrecord_parse(bytes + e->offset, size - e->offset, &r);
		if (e->since != NOT_LOST) {
			r.time = e->time;
			result = state_apply_lost(s, &r, e->since);
		} else {
			result = state_apply(s, &r);
		}
		if (result == -ENOMEM && !s->pool.exceeded)
			return -ENOMEM;
		*ret_bad += result < 0;
	}
	return 0;
}

static int load(struct timeline *t, const void *records, size_t size, uint64_t *ret_bad)
{
	struct index x = {.cpus = calloc(TIMELINE_MAX_CPUS, sizeof(*x.cpus))};
	bool sorted = true;
	int r = x.cpus ? 0 : -ENOMEM;

	for (size_t i = 0; i < TIMELINE_MAX_CPUS && !r; i++)
		x.cpus[i].loss = NO_LOSS;
	if (!r)
		r = make_index(records, size, &x, ret_bad);
	for (size_t i = 1; i < x.n && sorted; i++)
		sorted = by_time(&x.items[i - 1], &x.items[i]) < 0;
	if (!sorted)
		qsort(x.items, x.n, sizeof(*x.items), by_time);
	if (!r)
		r = apply_all(&t->state, records, size, &x, ret_bad);
	free(x.items);
	free(x.cpus);
	/* If one thread started tracing on a CPU and nothing was ever switched there, the thread
	 * has had the CPU from the beginning. */
	for (size_t i = 0; i < t->state.n_cpus; i++) {
		const struct cpu *cpu = &t->state.cpus[i];
		struct turn *first = cpu->turns.items;

		if (first && !first->uncertain && cpu->n_switches == 0 && cpu->n_starts == 1)
			first->time = 0;
	}
	certainty_finish(&t->state);
	return r;
}

int timeline_load(const void *records, size_t size, struct timeline **ret, uint64_t *ret_bad)
{
	CLEANUP(timeline_freep) struct timeline *t = calloc(1, sizeof(*t));
	uint64_t bad = 0;

	if (!t)
		return -ENOMEM;
	t->horizon = MANIFEST_ABSENT;
	state_init(&t->state, true, MEMORY_LIMIT);
	if (load(t, records, size, &bad) < 0)
		return -ENOMEM;
	*ret_bad = bad;
	*ret = TAKE_PTR(t);
	return 0;
}

/* --- Answers --- */

_Static_assert(offsetof(struct era, begin) == 0 && offsetof(struct name, begin) == 0 &&
		       offsetof(struct turn, time) == 0 && offsetof(struct baseline, time) == 0,
	       "every kind of version begins with its time");

/* The number of versions that begin at TIME or before. */
static size_t count_until(const struct versions *v, size_t size, uint64_t time)
{
	const uint8_t *items = v->items;

	return FIRST_WHERE(i, v->n, *(const uint64_t *)(const void *)(items + i * size) > time);
}

static const struct versions *turns_of(const struct timeline *t, uint32_t cpu)
{
	static const struct versions none;

	return cpu < t->state.n_cpus ? &t->state.cpus[cpu].turns : &none;
}

size_t timeline_n_turns(const struct timeline *t, uint32_t cpu)
{
	assert(t->state.history);
	return turns_of(t, cpu)->n;
}

void timeline_get_turn(const struct timeline *t, uint32_t cpu, size_t index,
		       struct timeline_turn *ret)
{
	const struct versions *v = turns_of(t, cpu);
	const struct turn *turns = v->items;
	size_t next = index < v->n ? index + 1 : 0;

	*ret = (struct timeline_turn){.until = next < v->n ? turns[next].time : SPACE_NOW};
	if (index >= v->n)
		return;
	ret->since = turns[index].time;
	ret->thread = turns[index].thread;
	ret->uncertain = turns[index].uncertain;
	ret->preempted = turns[index].preempted;
}

bool timeline_space_uncertain(const struct timeline *t, uint32_t pid, uint64_t time)
{
	const struct process *p = state_find_process(&t->state, pid);
	const struct lost_span *spans = t->state.lost_spans.items;
	const struct baseline *baselines;
	/* An unknown process is in doubt from the first loss on. */
	uint64_t doubt = t->state.lost_spans.n ? spans[0].since : SPACE_NOW;
	size_t n;

	assert(t->state.history);
	if (p) {
		baselines = p->certainty->baselines.items;
		n = count_until(&p->certainty->baselines, sizeof(*baselines), time);
		doubt = baselines[n - 1].doubt; /* the first baseline begins at 0 */
	}
	return doubt != SPACE_NOW && time >= doubt;
}

const struct space *timeline_space(const struct timeline *t, uint32_t pid, uint64_t time)
{
	const struct process *p = state_find_process(&t->state, pid);
	const struct era *eras = p ? p->eras.items : NULL;
	size_t n = p ? count_until(&p->eras, sizeof(*eras), time) : 0;

	return n ? eras[n - 1].space : NULL;
}

const char *timeline_comm(const struct timeline *t, uint32_t tid, uint64_t time)
{
	const struct task *task = state_find_task(&t->state, tid);
	const struct name *names = task ? task->names.items : NULL;
	size_t n = task ? count_until(&task->names, sizeof(*names), time) : 0;

	assert(t->state.history);
	return n && names[n - 1].known ? names[n - 1].comm : NULL;
}

const struct timeline_thread *timeline_last_thread(const struct timeline *t, uint32_t tid)
{
	const struct task *task = state_find_task(&t->state, tid);

	assert(t->state.history);
	return task && task->lives.n ? state_life(task) : NULL;
}

size_t timeline_n_threads(const struct timeline *t)
{
	assert(t->state.history);
	return t->state.threads.n;
}

const struct timeline_thread *timeline_thread(const struct timeline *t, size_t index)
{
	struct timeline_thread *const *threads = t->state.threads.items;

	return index < t->state.threads.n ? threads[index] : NULL;
}

const struct timeline_loss *timeline_loss(const struct timeline *t, size_t index)
{
	const struct timeline_loss *losses = t->state.losses.items;

	return index < t->state.losses.n ? &losses[index] : NULL;
}
