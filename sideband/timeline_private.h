/*
 * The inside of a timeline. The state is the same in the daemon, where it is the folded base
 * without history, and in the worker, where it has history and is all there is; the log is the
 * daemon's.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "proto/perfrecord.h"
#include "sideband/filetable.h"
#include "sideband/idmap.h"
#include "sideband/pool.h"
#include "sideband/space.h"
#include "sideband/timeline.h"

#define TIMELINE_MAX_CPUS  4096u
#define TIMELINE_COMM_SIZE 16u /* TASK_COMM_LEN */
#define TIMELINE_UNKNOWN   UINT32_MAX

/* --- State: timeline_state.c, timeline_apply.c --- */

/* Values in order of time; without history only the newest. */
struct versions {
	void *items;
	size_t n, capacity;
};

struct era {
	uint64_t begin;
	struct space *space;
};

struct name {
	uint64_t begin;
	bool known;
	char comm[TIMELINE_COMM_SIZE];
};

/* PID/TID run from TIME on; thread NULL: nobody (and always without history). */
struct stretch {
	uint64_t time;
	uint32_t pid, tid;
	struct timeline_thread *thread;
};

struct process {
	struct idnode node; /* id: pid; first, idmap_find() gives this */
	TAILQ_ENTRY(process) entry;
	LIST_HEAD(, task) tasks; /* those with this pid now */
	uint32_t ppid;
	bool ended;	      /* its leader has exited */
	struct versions eras; /* struct era */
};

/* All threads that ever had one tid. */
struct task {
	struct idnode node; /* id: tid; first */
	LIST_ENTRY(task) entry;
	struct process *process; /* of the newest */
	struct versions lives;	 /* struct timeline_thread * */
	struct versions names;	 /* struct name */
};

struct cpu {
	struct versions stretches; /* struct stretch */
	uint64_t n_switches, n_starts;
};

TAILQ_HEAD(process_list, process);

struct state {
	bool history;
	struct pool pool;
	struct filetable files;
	size_t sweep_files_at;
	struct idmap processes, tasks;
	struct process_list live;  /* least recently seen first */
	struct process_list ended; /* first ended first */
	struct cpu *cpus;
	size_t n_cpus;
	struct versions threads; /* history: struct timeline_thread *, in order of sight */
	struct versions losses;	 /* history: struct timeline_loss */
	uint64_t n_evicted;
};

void state_init(struct state *s, bool history, size_t limit);
void state_done(struct state *s);
/* Takes R in. 0, or it is lost and the state still sound: -ENOMEM, -E2BIG (one process has too many
 * mappings). */
int state_apply(struct state *s, const struct perfrecord *r);
/* Without history: forgets some processes, ended ones first, then those not seen for longest, and
 * files that nobody maps. False: there was nothing to forget. */
bool state_make_room(struct state *s);

/* The place for a new item of SIZE bytes; NULL: no memory. Without history the old one is in it. */
void *state_add_version(struct state *s, struct versions *v, size_t size);
struct process *state_process(struct state *s, uint32_t pid); /* found or made; NULL: no memory */
struct task *state_task(struct state *s, struct process *process, uint32_t tid);
struct cpu *state_cpu(struct state *s, uint32_t cpu); /* NULL: no memory or no such CPU */
/* The file that the MMAP2 record R names; NULL: no memory. */
const struct space_file *state_file(struct state *s, const struct perfrecord *r);
void state_forget_process(struct state *s, struct process *p);
void state_forget_task(struct state *s, struct task *t);
void state_end_process(struct state *s, struct process *p);
void state_touch(struct state *s, struct process *p);

static inline struct era *state_era(const struct process *p)
{
	struct era *eras = p->eras.items;

	return p->eras.n ? &eras[p->eras.n - 1] : NULL;
}

static inline struct name *state_name(const struct task *t)
{
	struct name *names = t->names.items;

	return t->names.n ? &names[t->names.n - 1] : NULL;
}

/* --- Log: timeline_log.c, timeline_pending.c --- */

struct log {
	uint8_t *ring;
	uint64_t size;	     /* a power of two */
	uint64_t head, tail; /* bytes ever appended and dropped */
	uint8_t *scratch;    /* for a record that wraps */
};

int log_init(struct log *log, uint64_t size);
void log_done(struct log *log);
bool log_fits(const struct log *log, size_t size);
void log_append(struct log *log, const void *bytes, size_t size);
/* The record at AT (tail <= AT < head), in the ring or, where it wraps, in SCRATCH
 * (PERFRECORD_MAX_SIZE + 8 bytes). Its size is *RET_SIZE. */
const uint8_t *log_at(const struct log *log, uint64_t at, uint8_t *scratch, size_t *ret_size);

/* What fell out of the log, waiting until nothing older can come from another CPU. */
struct pending_record {
	uint64_t time, order;
	uint8_t *bytes;
	size_t size;
};

struct pending {
	struct pool pool;
	struct pending_record *heap; /* oldest first */
	size_t n, capacity;
	uint64_t order;
};

int pending_init(struct pending *p, uint64_t log_bytes);
void pending_done(struct pending *p);
/* A copy of BYTES; false: no room. */
bool pending_add(struct pending *p, uint64_t time, const void *bytes, size_t size);
/* The oldest, NULL: none. */
const struct pending_record *pending_first(const struct pending *p);
void pending_drop_first(struct pending *p);

struct timeline {
	struct state state;
	/* the daemon's */
	struct log log;
	struct pending pending;
	uint64_t records, folded, dropped, lost, horizon;
	uint64_t log_mappings; /* MMAP2 records in the log */
};
