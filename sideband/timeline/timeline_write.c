/*
 * A timeline as records, for a bundle: the base at time 0, what waits, the log as it is. Called by
 * the daemon once a snapshot.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>

#include "proto/base.h"
#include "sideband/timeline/space_private.h"
#include "sideband/timeline/timeline_private.h"

struct writer {
	struct bytes_out *out;
	uint32_t pid;
	uint8_t buffer[PATH_MAX + 512]; /* the longest record composed here is a MMAP2 */
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

/* What was remembered of one thread. A process' FORK names its parent and says when its mappings
 * were told, a thread's names the process. */
static int write_task(struct writer *w, uint32_t tid, uint32_t ppid, uint64_t told, uint16_t misc)
{
	struct perfrecord r = {
		.type = PERF_RECORD_FORK,
		.misc = misc,
		.pid = w->pid,
		.tid = tid,
		.u.task = {.pid = w->pid, .ppid = ppid, .tid = tid, .ptid = ppid, .time = told},
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
	r = write_task(w, w->pid, p->ppid, p->told, p->scanned ? PERF_RECORD_MISC_FORK_EXEC : 0);
	LIST_FOREACH(t, &p->tasks, entry)
	{
		if (!r && t->node.id != w->pid)
			r = write_task(w, t->node.id, w->pid, 0, 0);
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

/* Who runs, as he who comes or, where his own record is still to come, as he who follows. After a
 * loss only what came later is known, and from when on. */
static int write_cpu(struct writer *w, const struct cpu *c, uint32_t cpu)
{
	const struct stretch *now = turns_last(c);
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
	r.time = c->lost ? now->time : 0;
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

static int write_cpus(struct writer *w, const struct state *s)
{
	int result = 0;

	for (uint32_t cpu = 0; cpu < s->n_cpus && !result; cpu++)
		result = write_cpu(w, &s->cpus[cpu], cpu);
	return result;
}

static int by_order(const void *a, const void *b)
{
	const struct pending_record *x = *(const struct pending_record *const *)a;
	const struct pending_record *y = *(const struct pending_record *const *)b;

	return x->order < y->order ? -1 : x->order > y->order;
}

static int write_pending(const struct pending *p, struct bytes_out *out)
{
	CLEANUP_FREE const struct pending_record **sorted = calloc(p->n + 1, sizeof(*sorted));

	if (!sorted)
		return -ENOMEM;
	pending_list(p, sorted);
	qsort(sorted, p->n, sizeof(*sorted), by_order);
	for (size_t i = 0; i < p->n; i++)
		bytes_put_block(out, sorted[i]->bytes, sorted[i]->size);
	return out->error;
}

static int write_log(const struct log *log, struct bytes_out *out)
{
	uint64_t from = log->tail & (log->size - 1);
	size_t used = (size_t)(log->head - log->tail);
	size_t first = MIN_OF(used, (size_t)(log->size - from));

	if (used > 0)
		bytes_put_block(out, log->ring + from, first);
	if (used > first)
		bytes_put_block(out, log->ring, used - first);
	return out->error;
}

int timeline_write(const struct timeline *t, struct bytes_out *out)
{
	struct writer w = {.out = out};
	int r;

	/* Switches that wait become what they stand for. That changes no answer: the timeline is
	 * constant in all that can be seen. */
	timeline_settle((struct timeline *)(uintptr_t)t);
	r = write_processes(&w, &t->state.live);
	if (!r)
		r = write_processes(&w, &t->state.ended);
	if (!r)
		r = write_cpus(&w, &t->state);
	if (!r)
		r = write_pending(&t->pending, out);
	if (!r)
		r = write_log(&t->log, out);
	return r;
}
