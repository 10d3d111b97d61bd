/*
 * Gives a snapshot the recorder's timeline: all of it as records, and the files that it names.
 *
 * The records are the base with time 0, the pending records, and the log as it is.
 */
#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>

#include "proto/base.h"
#include "sideband/timeline/timeline_private.h"

struct writer {
	struct bytes_out *out;
	uint32_t pid;
	uint8_t buffer[PATH_MAX + 512]; /* the longest record composed here is an MMAP2 */
};

static int write_record(struct writer *w, struct perfrecord *r)
{
	size_t size;
	int result;

	result = perfrecord_compose(r, w->buffer, sizeof(w->buffer), &size);
	if (result < 0)
		return result;
	bytes_put_block(w->out, w->buffer, size);
	return w->out->error;
}

/* Writes the FORK of one thread. The leader's names the parent process and says since when the
 * mappings are complete; another thread's names its process. */
static int write_fork(struct writer *w, uint32_t tid, uint32_t ppid, uint64_t baseline,
		      uint16_t misc)
{
	struct perfrecord r = {
		.type = PERF_RECORD_FORK,
		.misc = misc,
		.pid = w->pid,
		.tid = tid,
		.u.task = {.pid = w->pid, .ppid = ppid, .tid = tid, .ptid = ppid, .time = baseline},
	};

	return write_record(w, &r);
}

static int write_name(struct writer *w, const struct task *t)
{
	const struct name *name = state_name(t);
	struct perfrecord r = {
		.type = PERF_RECORD_COMM,
		.pid = w->pid,
		.tid = t->node.id,
		.u.comm = {.pid = w->pid, .tid = t->node.id},
	};

	if (!name || !name->known)
		return 0;
	r.u.comm.comm = name->comm;
	return write_record(w, &r);
}

static int write_mapping(void *userdata, const struct space_mapping *m)
{
	struct writer *w = userdata;
	struct perfrecord r = {
		.type = PERF_RECORD_MMAP2,
		.pid = w->pid,
		.tid = w->pid,
		.u.mmap2 = {.pid = w->pid,
			    .tid = w->pid,
			    .addr = m->start,
			    .len = m->size,
			    .pgoff = m->pgoff,
			    .maj = m->file->maj,
			    .min = m->file->min,
			    .ino = m->file->ino,
			    .ino_generation = m->file->ino_generation,
			    .prot = m->prot,
			    .flags = m->flags,
			    .filename = m->file->path},
	};

	if (m->file->build_id_size) {
		r.misc = PERF_RECORD_MISC_MMAP_BUILD_ID;
		r.u.mmap2.build_id_size = m->file->build_id_size;
		for (size_t i = 0; i < m->file->build_id_size; i++)
			r.u.mmap2.build_id[i] = m->file->build_id[i];
	}
	return write_record(w, &r);
}

static int write_process(struct writer *w, const struct process *p)
{
	const struct era *era = state_era(p);
	const struct task *t;
	int r;

	w->pid = p->node.id;
	r = write_fork(w, w->pid, p->ppid, p->baseline,
		       p->scanned ? PERF_RECORD_MISC_FORK_EXEC : 0);
	LIST_FOREACH(t, &p->tasks, entry)
	{
		if (!r && t->node.id != w->pid)
			r = write_fork(w, t->node.id, w->pid, 0, 0);
		if (!r)
			r = write_name(w, t);
	}
	if (!r && era)
		r = space_foreach(era->space, SPACE_NOW, write_mapping, w);
	return r;
}

static int write_processes(struct writer *w, const struct process_list *list)
{
	const struct process *p;
	int r = 0;

	TAILQ_FOREACH(p, list, entry)
	if ((r = write_process(w, p)) < 0)
		break;
	return r;
}

/* Writes the thread that has CPU since the begin of its turn, as a switch in or, if its own record
 * is still to come, as the next thread of a switch out. */
static int write_cpu(struct writer *w, const struct cpu *c, uint32_t cpu)
{
	const struct turn *now = turns_last(c);
	struct perfrecord lost = {
		.type = PERF_RECORD_LOST, .cpu = cpu, .time = c->lost_time, .u.lost = {0, c->lost}};
	struct perfrecord r = {
		.type = PERF_RECORD_SWITCH_CPU_WIDE,
		.cpu = cpu,
		.u.context_switch = {TIMELINE_UNKNOWN, TIMELINE_UNKNOWN},
	};
	int result = c->lost ? write_record(w, &lost) : 0;

	if (result < 0 || !now)
		return result;
	r.time = now->time;
	if (c->entering) {
		r.misc = PERF_RECORD_MISC_SWITCH_OUT;
		r.pid = r.tid = TIMELINE_UNKNOWN;
		r.u.context_switch.next_prev_pid = now->pid;
		r.u.context_switch.next_prev_tid = now->tid;
	} else {
		r.pid = now->pid;
		r.tid = now->tid;
	}
	return write_record(w, &r);
}

static int by_order(const void *a, const void *b)
{
	const struct pending_record *x = *(const struct pending_record *const *)a;
	const struct pending_record *y = *(const struct pending_record *const *)b;

	return x->order < y->order ? -1 : x->order > y->order;
}

int timeline_write(const struct timeline *t, struct bytes_out *out)
{
	CLEANUP_FREE const struct pending_record **sorted = NULL;
	struct writer w = {.out = out};
	size_t used, first;
	uint64_t from;
	int r;

	assert(!t->state.history);
	/* Applying deferred switches changes no result, so the timeline stays constant for its
	 * users. */
	timeline_apply_deferred((struct timeline *)(uintptr_t)t);
	r = write_processes(&w, &t->state.live);
	if (!r)
		r = write_processes(&w, &t->state.ended);
	for (uint32_t cpu = 0; cpu < t->state.n_cpus && !r; cpu++)
		r = write_cpu(&w, &t->state.cpus[cpu], cpu);
	if (r < 0)
		return r;
	sorted = calloc(t->pending.n + 1, sizeof(*sorted));
	if (!sorted)
		return -ENOMEM;
	pending_list(&t->pending, sorted);
	qsort(sorted, t->pending.n, sizeof(*sorted), by_order);
	for (size_t i = 0; i < t->pending.n; i++)
		bytes_put_block(out, sorted[i]->bytes, sorted[i]->size);
	if (out->error < 0)
		return out->error;
	from = t->log.tail & (t->log.size - 1);
	used = (size_t)(t->log.head - t->log.tail);
	first = MIN_OF(used, (size_t)(t->log.size - from));
	if (used > 0)
		bytes_put_block(out, t->log.ring + from, first);
	if (used > first)
		bytes_put_block(out, t->log.ring, used - first);
	return out->error;
}

/* --- Files --- */

struct visit {
	struct pool pool;
	void *userdata;
	int (*fn)(void *userdata, const struct space_file *file);
	struct filetable files; /* files of records that FN has got */
	bool *visited;		/* by the index of the base's files: FN has got the file */
};

static int visit_mapping(void *userdata, const struct space_mapping *m)
{
	struct visit *v = userdata;

	if (v->visited[m->file->index])
		return 0;
	v->visited[m->file->index] = true;
	return v->fn(v->userdata, m->file);
}

static int visit_processes(struct visit *v, const struct process_list *list)
{
	const struct process *p;
	int r = 0;

	TAILQ_FOREACH(p, list, entry)
	{
		const struct era *era = state_era(p);

		r = era ? space_foreach(era->space, SPACE_NOW, visit_mapping, v) : 0;
		if (r)
			return r;
	}
	return 0;
}

static int visit_record(struct visit *v, const void *bytes, size_t size)
{
	const struct perf_event_header *header = bytes;
	const struct space_file *file;
	size_t n = v->files.n;
	struct perfrecord r;

	/* Most of a log is switches: they are not even parsed. */
	if (header->type != PERF_RECORD_MMAP2 || perfrecord_parse(bytes, size, &r) != 0)
		return 0;
	file = filetable_intern(&v->files, &r);
	if (!file)
		return -ENOMEM;
	return v->files.n > n ? v->fn(v->userdata, file) : 0;
}

static int visit_records(struct visit *v, const struct timeline *t)
{
	CLEANUP_FREE uint8_t *scratch = malloc(LOG_SCRATCH_SIZE);
	size_t size;
	int r = 0;

	if (!scratch)
		return -ENOMEM;
	for (size_t i = 0; i < t->pending.n_heap; i++)
		for (const struct pending_record *p = t->pending.heap[i]; p && !r; p = p->next)
			r = visit_record(v, p->bytes, p->size);
	for (uint64_t at = t->log.tail; at < t->log.head && !r; at += size) {
		const uint8_t *bytes = log_at(&t->log, at, scratch, &size);

		r = visit_record(v, bytes, size);
	}
	return r;
}

int timeline_foreach_file(const struct timeline *t,
			  int (*fn)(void *userdata, const struct space_file *file), void *userdata)
{
	struct visit v = {.userdata = userdata, .fn = fn};
	int r;

	pool_init(&v.pool, SIZE_MAX);
	filetable_init(&v.files, &v.pool);
	v.visited = pool_get(&v.pool, t->state.files.n + 1);
	r = v.visited ? visit_processes(&v, &t->state.live) : -ENOMEM;
	if (!r)
		r = visit_processes(&v, &t->state.ended);
	if (!r && t->log.ring)
		r = visit_records(&v, t);
	pool_done(&v.pool);
	return r;
}
