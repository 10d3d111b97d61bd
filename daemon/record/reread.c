/*
 * The sweep over /proc: which processes are left, which are being read, and which were read.
 */
#include "daemon/record/reread.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "capture/proc/number.h"
#include "capture/proc/procfile.h"
#include "daemon/base/aside.h"
#include "proto/base.h"
#include "proto/bundle/manifest.h"
#include "proto/bytes.h"

#define AT_ONCE 16u /* processes that are asked for at a time */
#define TRIES	4u
/* Between two sweeps, and so many times as long as the last one took: losses may go on, and on a
 * large host a sweep costs as much as some 100,000 records. */
#define PAUSE_NS      500000000u
#define PAUSE_TIMES   20u
#define STUCK_NS      1000000000u /* for one process */
#define RECORDS_LIMIT (4u << 20)  /* bytes of one process: some 20,000 mappings */

struct task {
	struct aside_task task; /* first */
	uint32_t pid;
	uint64_t since; /* perf ns: nothing may have changed from then on */
	unsigned int tries;
	bool changed;
	/* Results: */
	int error;
	struct bytes_out records; /* one behind the other */
};

struct reread {
	char *proc; /* owned */
	struct aside *aside;
	bool wanted;
	/* CLOCK_MONOTONIC: when the sweep began (0: none goes on); no other one begins before. */
	uint64_t begun_ns, next_ns;
	uint32_t *pids; /* of the sweep; owned */
	size_t n, capacity, at;
	/* Those that were asked for, also those that were read; NULL: free. */
	struct task *tasks[AT_ONCE];
	bool was_read[AT_ONCE];
	struct reread_stats stats;
};

/* --- In the thread --- */

static int context_new(const char *proc, void **ret)
{
	*ret = strdup(proc);
	return *ret ? 0 : -ENOMEM;
}

static int keep_record(void *userdata, const void *record, size_t size)
{
	struct task *t = userdata;

	bytes_put_block(&t->records, record, size);
	return t->records.error;
}

static void run(void *context, struct aside_task *task)
{
	struct task *t = (struct task *)(void *)task;

	t->error = procscan_again(context, t->pid, t->since, keep_record, t);
}

static void task_free(struct aside_task *task)
{
	struct task *t = (struct task *)(void *)task;

	bytes_out_done(&t->records);
	free(t);
}

static const struct aside_ops ops = {
	.context_new = context_new,
	.context_free = free,
	.run = run,
	.task_free = task_free,
};

/* --- The sweep --- */

int reread_new(const char *proc, struct reread **ret)
{
	struct reread *r = calloc(1, sizeof(*r));
	int result = -ENOMEM;

	if (!r)
		return -ENOMEM;
	r->proc = strdup(proc);
	if (r->proc)
		result = aside_new(&ops, proc, &r->aside);
	if (result < 0) {
		free(r->proc);
		free(r);
		return result;
	}
	*ret = r;
	return 0;
}

void reread_free(struct reread *r)
{
	if (!r)
		return;
	for (size_t i = 0; i < AT_ONCE; i++)
		if (r->was_read[i])
			task_free(&r->tasks[i]->task);
	aside_free(r->aside);
	free(r->pids);
	free(r->proc);
	free(r);
}

void reread_lost(struct reread *r)
{
	if (r)
		r->wanted = true;
}

void reread_changed(struct reread *r, uint32_t pid, uint64_t time)
{
	for (size_t i = 0; r && i < AT_ONCE; i++)
		if (r->tasks[i] && r->tasks[i]->pid == pid && time >= r->tasks[i]->since)
			r->tasks[i]->changed = true;
}

/* Lists the processes. 0 or -errno. */
static int list_processes(struct reread *r)
{
	DIR *all;
	struct dirent *d;
	uint64_t pid;
	int result = procfile_opendir(AT_FDCWD, r->proc, &all);

	r->n = r->at = 0;
	if (result < 0)
		return result;
	while (result == 0 && (d = readdir(all))) {
		if (!number_parse(d->d_name, 10, INT32_MAX, "", NULL, &pid) || pid == 0)
			continue;
		result = ARRAY_RESERVE(r->pids, r->capacity, r->n + 1);
		if (result == 0)
			r->pids[r->n++] = (uint32_t)pid;
	}
	closedir(all);
	return result;
}

/* Begins a sweep if one is wanted and it is time. */
static void begin_sweep(struct reread *r)
{
	uint64_t now = r->wanted ? now_ns(CLOCK_MONOTONIC) : 0;

	if (!r->wanted || now < r->next_ns)
		return;
	r->begun_ns = now;
	/* If some processes are not listed, another sweep follows. */
	r->wanted = list_processes(r) < 0;
	r->stats.sweeps += !r->wanted;
}

static void end_sweep(struct reread *r)
{
	uint64_t now = r->begun_ns ? now_ns(CLOCK_MONOTONIC) : 0;

	if (!r->begun_ns)
		return;
	r->next_ns = now + MAX_OF((uint64_t)PAUSE_NS, PAUSE_TIMES * (now - r->begun_ns));
	r->begun_ns = 0;
}

static bool is_idle(const struct reread *r)
{
	for (size_t i = 0; i < AT_ONCE; i++)
		if (r->tasks[i])
			return false;
	return r->at == r->n;
}

/* Asks for T (taken over), which gets place I. */
static void ask(struct reread *r, size_t i, struct task *t, uint64_t now)
{
	t->since = now;
	t->changed = false;
	t->tries++;
	t->task.tag = i;
	bytes_out_reset(&t->records);
	r->was_read[i] = false;
	r->tasks[i] = t;
	if (aside_ask(r->aside, &t->task) == 0)
		return;
	r->tasks[i] = NULL;
	r->stats.failed++;
	task_free(&t->task);
}

/* A thread that hangs is left behind, with its task. */
static void leave_stuck(struct reread *r)
{
	struct aside_task *stuck = aside_give_up(r->aside, STUCK_NS);

	if (!stuck)
		return;
	r->tasks[stuck->tag] = NULL;
	r->stats.failed++;
}

void reread_ask(struct reread *r, uint64_t now)
{
	if (!r || now == MANIFEST_ABSENT || now == 0)
		return;
	if (is_idle(r)) {
		end_sweep(r);
		begin_sweep(r);
	} else {
		leave_stuck(r);
	}
	for (size_t i = 0; i < AT_ONCE && r->at < r->n; i++) {
		struct task *t = r->tasks[i] ? NULL : calloc(1, sizeof(*t));

		if (!t)
			continue;
		t->pid = r->pids[r->at++];
		bytes_out_init(&t->records, RECORDS_LIMIT);
		ask(r, i, t, now);
	}
}

bool reread_take(struct reread *r)
{
	struct aside_task *task;
	bool any = false;

	while (r && (task = aside_take(r->aside))) {
		if (task->given_up) {
			task_free(task);
			continue;
		}
		r->was_read[task->tag] = any = true;
	}
	return any;
}

/* Each record is as it was kept: the length is in its header. */
static void give_records(const struct task *t, procscan_fn fn, void *userdata)
{
	struct perf_event_header h;

	for (size_t at = 0; at < t->records.size; at += h.size) {
		memcpy(&h, t->records.data + at, sizeof(h));
		(void)fn(userdata, t->records.data + at, h.size);
	}
}

void reread_give(struct reread *r, uint64_t now, procscan_fn fn, void *userdata)
{
	for (size_t i = 0; r && i < AT_ONCE; i++) {
		struct task *t = r->tasks[i];

		if (!r->was_read[i])
			continue;
		if (t->error == 0 && t->changed && t->tries < TRIES) {
			ask(r, i, t, now);
			continue;
		}
		/* The records that are given are no change. */
		r->was_read[i] = false;
		r->tasks[i] = NULL;
		if (t->error == 0 && !t->changed)
			give_records(t, fn, userdata);
		r->stats.told += t->error == 0 && !t->changed && t->records.size > 0;
		r->stats.failed += t->changed || (t->error < 0 && t->error != -ESRCH);
		task_free(&t->task);
	}
}

void reread_get_stats(const struct reread *r, struct reread_stats *ret)
{
	*ret = r ? r->stats : (struct reread_stats){0};
}
