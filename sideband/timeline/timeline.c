/*
 * The recorder's side of the timeline: records enter the log, the oldest are folded into the base.
 *
 * Runs for every record, so nothing here allocates once the pools are warm.
 */
#include "sideband/timeline/timeline.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base.h"
#include "proto/bundle/manifest.h"
#include "sideband/timeline/timeline_private.h"

#define LOG_MIN	   64u
#define WITHIN_MIN (1u << 20)
/* The most that records of different CPUs may be out of order, ns. */
#define REACH 1000000000u
/* The most calls of state_make_room() for one record; each forgets a sixteenth of the processes. */
#define TRIES 4u
/* A full log is folded by this share of its size at once: the records lie one behind the other and
 * are fetched into the cache together. */
#define FOLD_SHARE 256u

int timeline_new(uint64_t log_bytes, uint64_t base_bytes, struct timeline **ret)
{
	struct timeline *t;

	if (log_bytes < LOG_MIN || (log_bytes & (log_bytes - 1)))
		return -EINVAL;
	t = calloc(1, sizeof(*t));
	if (!t)
		return -ENOMEM;
	t->horizon = MANIFEST_ABSENT;
	state_init(&t->state, false, base_bytes);
	if (log_init(&t->log, log_bytes) < 0 || pending_init(&t->pending, log_bytes) < 0) {
		timeline_free(t);
		return -ENOMEM;
	}
	*ret = t;
	return 0;
}

int timeline_new_within(uint64_t max_bytes, struct timeline **ret)
{
	uint64_t log_bytes = WITHIN_MIN / 4, others;

	if (max_bytes < WITHIN_MIN)
		return -EINVAL;
	while (log_bytes <= max_bytes / 8)
		log_bytes *= 2;
	others = log_bytes + pending_most(log_bytes) + LOG_SCRATCH_SIZE + sizeof(struct timeline);
	return timeline_new(log_bytes, max_bytes - others, ret);
}

void timeline_free(struct timeline *t)
{
	if (!t)
		return;
	pending_done(&t->pending);
	log_done(&t->log);
	state_done(&t->state);
	free(t);
}

void timeline_freep(struct timeline **t)
{
	timeline_free(*t);
}

static void absorb(struct timeline *t, const struct perfrecord *r)
{
	int result = state_apply(&t->state, r);

	for (unsigned i = 0; result == -ENOMEM && i < TRIES && state_make_room(&t->state); i++)
		result = state_apply(&t->state, r);
	t->dropped += result < 0;
}

void timeline_apply_deferred(struct timeline *t)
{
	for (size_t cpu = 0; cpu < t->state.n_cpus; cpu++) {
		const struct perfrecord_switch *s;
		struct perfrecord r;

		while ((s = turns_next_deferred(&t->state.cpus[cpu]))) {
			perfrecord_from_switch(s, &r);
			absorb(t, &r);
		}
	}
}

static void absorb_bytes(struct timeline *t, const void *bytes, size_t size)
{
	struct perfrecord r;

	if (perfrecord_parse(bytes, size, &r) == 0)
		absorb(t, &r);
}

static void absorb_first_pending(struct timeline *t)
{
	const struct pending_record *first = pending_first(&t->pending);

	absorb_bytes(t, first->bytes, first->size);
	pending_drop_first(&t->pending);
}

/* Applies a record at once if it concerns its own CPU alone. Other records must wait until no CPU
 * can bring an older one. */
static void absorb_in_order(struct timeline *t, const struct record_head *head, const void *bytes)
{
	struct cpu *c;

	switch (head->type) {
	case PERF_RECORD_FORK:
	case PERF_RECORD_EXIT:
	case PERF_RECORD_COMM:
	case PERF_RECORD_MMAP2:
		while (!pending_add(&t->pending, head, bytes)) {
			if (!pending_first(&t->pending)) {
				absorb_bytes(t, bytes, head->size);
				return;
			}
			absorb_first_pending(t);
		}
		return;
	case PERF_RECORD_SWITCH:
	case PERF_RECORD_SWITCH_CPU_WIDE:
		c = state_cpu(&t->state, head->cpu);
		if (c)
			turns_apply_deferred(&t->state, c);
		absorb_bytes(t, bytes, head->size);
		return;
	case PERF_RECORD_ITRACE_START:
	case PERF_RECORD_LOST: absorb_bytes(t, bytes, head->size); return;
	default: return; /* changes nothing in a state without history */
	}
}

/* Applies the pending records that nothing older can precede any more. */
static void advance_horizon(struct timeline *t, uint64_t time)
{
	const struct pending_record *first;

	if (time > 0 && (t->horizon == MANIFEST_ABSENT || time > t->horizon))
		t->horizon = time;
	while ((first = pending_first(&t->pending))) {
		bool due = t->horizon != MANIFEST_ABSENT && t->horizon > first->time &&
			   t->horizon - first->time >= REACH;

		if (first->time > 0 && !due)
			return;
		absorb_first_pending(t);
	}
}

/* Reads the record's header and its trailer (perfrecord.h). Every record in the log was parsed when
 * it came, so it has both. */
static struct record_head read_head(const uint8_t *bytes, size_t size)
{
	struct {
		uint32_t pid, tid;
		uint64_t time;
		uint32_t cpu, reserved;
		uint64_t id;
	} trailer;
	struct perf_event_header header;

	_Static_assert(sizeof(trailer) == PERFRECORD_SAMPLE_ID_SIZE, "perfrecord.h");
	assert(size >= sizeof(header) + sizeof(trailer));
	memcpy(&header, bytes, sizeof(header));
	memcpy(&trailer, bytes + size - sizeof(trailer), sizeof(trailer));
	return (struct record_head){trailer.time, header.type, trailer.cpu, header.size};
}

static void fold_oldest(struct timeline *t)
{
	struct perfrecord_switch s;
	struct record_head head;
	const uint8_t *bytes;
	size_t size;

	bytes = log_at(&t->log, t->log.tail, t->log.scratch, &size);
	head = read_head(bytes, size);
	if (!perfrecord_get_switch(bytes, size, &s) || !turns_defer(&t->state, &s))
		absorb_in_order(t, &head, bytes);
	t->log.tail += size;
	t->log_mappings -= head.type == PERF_RECORD_MMAP2;
	t->folded++;
	advance_horizon(t, head.time);
}

int timeline_push_switch(struct timeline *t, const void *bytes, size_t size)
{
	uint64_t room = MAX_OF(size, t->log.size / FOLD_SHARE);

	t->records++;
	if (size > t->log.size) {
		t->dropped++;
		return -ENOMEM;
	}
	if (!log_fits(&t->log, size))
		while (t->log.head > t->log.tail && !log_fits(&t->log, room))
			fold_oldest(t);
	log_append(&t->log, bytes, size);
	return 0;
}

int timeline_push(struct timeline *t, const struct perfrecord *record, const void *bytes,
		  size_t size)
{
	int r;

	assert(size == record->size && size >= sizeof(struct perf_event_header));
	if (record->type == PERF_RECORD_LOST)
		t->lost += record->u.lost.lost;
	r = timeline_push_switch(t, bytes, size);
	t->log_mappings += r == 0 && record->type == PERF_RECORD_MMAP2;
	return r;
}

static uint64_t count_mappings(const struct process_list *list)
{
	const struct process *p;
	uint64_t n = 0;

	TAILQ_FOREACH(p, list, entry)
	{
		const struct era *era = state_era(p);

		n += era ? space_n_mappings(era->space) : 0;
	}
	return n;
}

void timeline_get_stats(const struct timeline *t, struct timeline_stats *ret)
{
	uint64_t others = sizeof(*t) + t->log.size + LOG_SCRATCH_SIZE +
			  t->pending.capacity * sizeof(struct pending_record *);

	*ret = (struct timeline_stats){
		.records = t->records,
		.folded = t->folded,
		.dropped = t->dropped + t->state.n_evicted,
		.horizon_ns = t->horizon,
		.log_bytes_used = t->log.head - t->log.tail,
		.base_bytes_used = t->state.pool.used,
		.taken_bytes = others + t->pending.pool.taken + t->state.pool.taken,
		.most_bytes = others + t->pending.pool.limit + t->state.pool.limit,
		.processes = t->state.processes.n,
		.mappings = count_mappings(&t->state.live) + count_mappings(&t->state.ended),
		.lost = t->lost,
		.log_mappings = t->log_mappings,
	};
}
