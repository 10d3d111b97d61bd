/*
 * Which processes and files a snapshot taken now would name: those of the base, of what waits, and
 * of the log. Called by the daemon when it decides what to keep.
 */
#include <errno.h>
#include <stdlib.h>

#include "proto/base.h"
#include "sideband/timeline/space_private.h"
#include "sideband/timeline/timeline_private.h"

/* One of the two is asked for. */
struct walk {
	struct pool pool;
	void *userdata;
	int (*pid)(void *userdata, uint32_t pid);
	struct idmap pids; /* that were told */
	int (*file)(void *userdata, const struct space_file *file);
	struct filetable files; /* of the records that were told */
	bool *told;		/* by the index of the base's files */
};

static int visit_pid(struct walk *w, uint32_t pid)
{
	struct idnode *node;

	if (!w->pid || pid == 0 || pid == TIMELINE_UNKNOWN || idmap_find(&w->pids, pid))
		return 0;
	node = pool_get(&w->pool, sizeof(*node));
	if (!node)
		return -ENOMEM;
	node->id = pid;
	if (!idmap_add(&w->pids, &w->pool, node))
		return -ENOMEM;
	return w->pid(w->userdata, pid);
}

static int visit_mmap2(struct walk *w, const struct perfrecord *r)
{
	size_t n = w->files.n;
	const struct space_file *file;

	if (!w->file)
		return visit_pid(w, r->u.mmap2.pid);
	file = filetable_intern(&w->files, r);
	if (!file)
		return -ENOMEM;
	return w->files.n > n ? w->file(w->userdata, file) : 0;
}

static bool is_wanted(const struct walk *w, uint32_t type)
{
	switch (type) {
	case PERF_RECORD_MMAP2: return true;
	/* Most of a log is switches, and everybody in them has another record. */
	case PERF_RECORD_FORK:
	case PERF_RECORD_EXIT:
	case PERF_RECORD_COMM:
	case PERF_RECORD_ITRACE_START: return w->pid;
	default: return false;
	}
}

static int visit_record(struct walk *w, const void *bytes, size_t size)
{
	const struct perf_event_header *header = bytes;
	struct perfrecord r;

	if (!is_wanted(w, header->type) || perfrecord_parse(bytes, size, &r) != 0)
		return 0;
	switch (r.type) {
	case PERF_RECORD_FORK:
	case PERF_RECORD_EXIT: return visit_pid(w, r.u.task.pid);
	case PERF_RECORD_COMM: return visit_pid(w, r.u.comm.pid);
	case PERF_RECORD_MMAP2: return visit_mmap2(w, &r);
	default: return visit_pid(w, r.u.itrace_start.pid);
	}
}

static int visit_mapping(void *userdata, const struct space_mapping *m)
{
	struct walk *w = userdata;

	if (w->told[m->file->index])
		return 0;
	w->told[m->file->index] = true;
	return w->file(w->userdata, m->file);
}

static int visit_process(struct walk *w, const struct process *p)
{
	const struct era *era = state_era(p);
	int r = visit_pid(w, p->node.id);

	if (!r && era && w->file)
		r = space_foreach(era->space, SPACE_NOW, visit_mapping, w);
	return r;
}

static int visit_list(struct walk *w, const struct process_list *list)
{
	const struct process *p;
	int r = 0;

	TAILQ_FOREACH(p, list, entry)
	if ((r = visit_process(w, p)))
		break;
	return r;
}

static int visit_log(struct walk *w, const struct timeline *t)
{
	CLEANUP_FREE uint8_t *scratch = malloc(PERFRECORD_MAX_SIZE + 8);
	size_t size;
	int r = 0;

	if (!scratch)
		return -ENOMEM;
	for (size_t i = 0; i < t->pending.n_heap; i++)
		for (const struct pending_record *p = t->pending.heap[i]; p && !r; p = p->next)
			r = visit_record(w, p->bytes, p->size);
	for (uint64_t at = t->log.tail; at < t->log.head && !r; at += size) {
		const uint8_t *bytes = log_at(&t->log, at, scratch, &size);

		r = visit_record(w, bytes, size);
	}
	return r;
}

static int visit_all(struct walk *w, const struct timeline *t)
{
	int r;

	pool_init(&w->pool, SIZE_MAX);
	filetable_init(&w->files, &w->pool);
	w->told = pool_get(&w->pool, t->state.files.n + 1);
	r = w->told ? visit_list(w, &t->state.live) : -ENOMEM;
	if (!r)
		r = visit_list(w, &t->state.ended);
	if (!r && t->log.ring)
		r = visit_log(w, t);
	pool_done(&w->pool);
	return r;
}

int timeline_foreach_pid(const struct timeline *t, int (*fn)(void *userdata, uint32_t pid),
			 void *userdata)
{
	struct walk w = {.userdata = userdata, .pid = fn};

	return visit_all(&w, t);
}

int timeline_foreach_file(const struct timeline *t,
			  int (*fn)(void *userdata, const struct space_file *file), void *userdata)
{
	struct walk w = {.userdata = userdata, .file = fn};

	return visit_all(&w, t);
}
