/*
 * The daemon's side of the timeline: records enter the log, and what the log has no room for any
 * more is folded into the base. Called for every record that intake drains, so nothing here
 * allocates once the pools are warm.
 */
#include "sideband/timeline.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "proto/base.h"
#include "proto/manifest.h"
#include "sideband/space_private.h"
#include "sideband/timeline_private.h"

#define LOG_MIN 64u
/* How far records of different CPUs may be apart, ns. */
#define REACH 1000000000u
/* Each try forgets a sixteenth of the processes. */
#define TRIES 4u

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

static void absorb_first_pending(struct timeline *t)
{
	const struct pending_record *first = pending_first(&t->pending);
	struct perfrecord r;

	if (perfrecord_parse(first->bytes, first->size, &r) == 0)
		absorb(t, &r);
	pending_drop_first(&t->pending);
}

/* A record that speaks of more than its own CPU must wait its turn. */
static void absorb_in_turn(struct timeline *t, const struct perfrecord *r, const void *bytes)
{
	switch (r->type) {
	case PERF_RECORD_FORK:
	case PERF_RECORD_EXIT:
	case PERF_RECORD_COMM:
	case PERF_RECORD_MMAP2:
		while (!pending_add(&t->pending, r->time, bytes, r->size)) {
			if (!pending_first(&t->pending)) {
				absorb(t, r);
				return;
			}
			absorb_first_pending(t);
		}
		return;
	default: absorb(t, r);
	}
}

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

static void fold_oldest(struct timeline *t)
{
	struct perfrecord r;
	const uint8_t *bytes;
	size_t size;

	bytes = log_at(&t->log, t->log.tail, t->log.scratch, &size);
	if (perfrecord_parse(bytes, size, &r) == 0)
		absorb_in_turn(t, &r, bytes);
	t->log.tail += size;
	t->log_mappings -= ((const struct perf_event_header *)bytes)->type == PERF_RECORD_MMAP2;
	t->folded++;
	advance_horizon(t, r.time);
}

int timeline_push(struct timeline *t, const struct perfrecord *record, const void *bytes,
		  size_t size)
{
	assert(size == record->size && size >= sizeof(struct perf_event_header));

	t->records++;
	if (record->type == PERF_RECORD_LOST)
		t->lost += record->u.lost.lost;
	if (size > t->log.size) {
		t->dropped++;
		return -ENOMEM;
	}
	while (!log_fits(&t->log, size))
		fold_oldest(t);
	log_append(&t->log, bytes, size);
	t->log_mappings += record->type == PERF_RECORD_MMAP2;
	return 0;
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
	*ret = (struct timeline_stats){
		.records = t->records,
		.folded = t->folded,
		.dropped = t->dropped + t->state.n_evicted,
		.horizon_ns = t->horizon,
		.log_bytes_used = t->log.head - t->log.tail,
		.base_bytes_used = t->state.pool.used,
		.processes = t->state.processes.n,
		.mappings = count_mappings(&t->state.live) + count_mappings(&t->state.ended),
		.lost = t->lost,
		.log_mappings = t->log_mappings,
	};
}

/* --- Pids --- */

struct pid_walk {
	struct pool pool;
	struct idmap seen;
	int (*fn)(void *userdata, uint32_t pid);
	void *userdata;
};

static int visit_pid(struct pid_walk *w, uint32_t pid)
{
	struct idnode *node;

	if (pid == 0 || pid == TIMELINE_UNKNOWN || idmap_find(&w->seen, pid))
		return 0;
	node = pool_get(&w->pool, sizeof(*node));
	if (!node)
		return -ENOMEM;
	node->id = pid;
	if (!idmap_add(&w->seen, &w->pool, node))
		return -ENOMEM;
	return w->fn(w->userdata, pid);
}

static int visit_record(struct pid_walk *w, const void *bytes, size_t size)
{
	const struct perf_event_header *header = bytes;
	struct perfrecord r;

	/* Most of a log is switches, and everybody in them has another record. */
	if (header->type == PERF_RECORD_SWITCH || header->type == PERF_RECORD_SWITCH_CPU_WIDE ||
	    perfrecord_parse(bytes, size, &r) != 0)
		return 0;
	switch (r.type) {
	case PERF_RECORD_FORK:
	case PERF_RECORD_EXIT: return visit_pid(w, r.u.task.pid);
	case PERF_RECORD_COMM: return visit_pid(w, r.u.comm.pid);
	case PERF_RECORD_MMAP2: return visit_pid(w, r.u.mmap2.pid);
	case PERF_RECORD_ITRACE_START: return visit_pid(w, r.u.itrace_start.pid);
	default: return 0;
	}
}

static int visit_list(struct pid_walk *w, const struct process_list *list)
{
	const struct process *p;
	int r = 0;

	TAILQ_FOREACH(p, list, entry)
	if ((r = visit_pid(w, p->node.id)))
		break;
	return r;
}

static int visit_log(struct pid_walk *w, const struct timeline *t)
{
	CLEANUP_FREE uint8_t *scratch = malloc(PERFRECORD_MAX_SIZE + 8);
	size_t size;
	int r = 0;

	if (!scratch)
		return -ENOMEM;
	for (size_t i = 0; i < t->pending.n && !r; i++)
		r = visit_record(w, t->pending.heap[i].bytes, t->pending.heap[i].size);
	for (uint64_t at = t->log.tail; at < t->log.head && !r; at += size) {
		const uint8_t *bytes = log_at(&t->log, at, scratch, &size);

		r = visit_record(w, bytes, size);
	}
	return r;
}

int timeline_foreach_pid(const struct timeline *t, int (*fn)(void *userdata, uint32_t pid),
			 void *userdata)
{
	struct pid_walk w = {.fn = fn, .userdata = userdata};
	int r;

	pool_init(&w.pool, SIZE_MAX);
	r = visit_list(&w, &t->state.live);
	if (!r)
		r = visit_list(&w, &t->state.ended);
	if (!r && t->log.ring)
		r = visit_log(&w, t);
	pool_done(&w.pool);
	return r;
}
