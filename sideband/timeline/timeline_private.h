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

#include "proto/perf/perfrecord.h"
#include "sideband/timeline/filetable.h"
#include "sideband/timeline/idmap.h"
#include "sideband/timeline/pool.h"
#include "sideband/timeline/space.h"
#include "sideband/timeline/timeline.h"

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

/* PID/TID run from TIME on: 0 the idle task, TIMELINE_UNKNOWN somebody without a number here;
 * thread NULL: nobody, and always without history. */
struct stretch {
	uint64_t time;
	uint32_t pid, tid;
	struct timeline_thread *thread;
	bool uncertain; /* pid and tid are 0 */
	bool preempted;
};

struct process {
	struct idnode node; /* id: pid; first, idmap_find() gives this */
	TAILQ_ENTRY(process) entry;
	LIST_HEAD(, task) tasks; /* those with this pid now */
	uint32_t ppid;
	bool ended;	      /* its leader has exited */
	bool scanned;	      /* known from /proc alone: nothing has told of its beginning */
	struct versions eras; /* struct era */
	uint64_t told;	      /* without history: when its mappings were told from the first on */
	struct trust *trust;  /* with history */
};

/* All threads that ever had one tid. */
struct task {
	struct idnode node; /* id: tid; first */
	LIST_ENTRY(task) entry;
	struct process *process; /* of the newest */
	struct versions lives;	 /* struct timeline_thread * */
	struct versions names;	 /* struct name */
};

#define TURNS_WAITING 4u

struct cpu {
	struct versions stretches; /* struct stretch */
	uint64_t n_switches, n_starts;
	bool named;		  /* some record has told who ran at SINCE or later */
	uint64_t since;		  /* no record is missing from here on */
	bool entering;		  /* after a switch out that said who comes, until that one is in */
	uint64_t lost, lost_time; /* records, and the time of the last LOST record */
	/* The daemon's: the newest of the switches that turns_wait() took, of how many, and how
	 * many of these are applied or of no account any more. */
	struct perfrecord_switch waiting[TURNS_WAITING];
	uint64_t n_waiting, n_settled;
};

/* Records of CPU, or of some (SILENCE_MANY), between these times were lost. */
#define SILENCE_MANY UINT32_MAX
struct silence {
	uint64_t since, until;
	uint32_t cpu;
};

/* A process' mappings as told from TIME on are believed until DOUBT. */
struct telling {
	uint64_t time, doubt;
};

struct trust {
	struct versions tellings;     /* struct telling */
	struct versions exempt;	      /* size_t: silences in which it was certainly elsewhere */
	size_t silence_at, exempt_at; /* of the newest telling: all before are over or exempt */
	size_t n_threads;
	uint64_t threads_since; /* as many threads as now */
	bool known;		/* all of its threads are */
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
	struct versions threads;  /* history: struct timeline_thread *, in order of sight */
	struct versions losses;	  /* history: struct timeline_loss */
	struct versions silences; /* history: struct silence, one after the other */
	bool lost;		  /* some record, ever */
	uint64_t n_exempt_checks;
	uint64_t n_evicted;
};

void state_init(struct state *s, bool history, size_t limit);
void state_done(struct state *s);
/* Takes R in. 0, or it is lost and the state still sound: -ENOMEM, -E2BIG (one process has too many
 * mappings). */
int state_apply(struct state *s, const struct perfrecord *r);
/* As state_apply() for a LOST record: what was lost lies between SINCE and the record's time. */
int state_lose(struct state *s, const struct perfrecord *r, uint64_t since);
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
void state_revive_process(struct state *s, struct process *p);
void state_touch(struct state *s, struct process *p);
/* The task that a record at TIME speaks of, made when it was not known. NULL: no memory. */
struct task *state_see(struct state *s, uint32_t pid, uint32_t tid, uint64_t time);
/* With history: a thread begins, or is seen for the first time. 0, -ENOMEM. */
int state_begin_life(struct state *s, struct task *t, uint64_t time);
void state_end_life(struct state *s, struct task *t, uint64_t time);
/* P has SPACE (taken; NULL: no memory) from TIME on. 0, -ENOMEM. */
int state_begin_era(struct state *s, struct process *p, uint64_t time, struct space *space);
/* T is called COMM from TIME on; NULL: nobody knows. 0, -ENOMEM. */
int state_set_name(struct state *s, struct task *t, uint64_t time, const char *comm);
/* A FORK record: timeline_fork.c. 0, -ENOMEM. */
int state_fork(struct state *s, const struct perfrecord *r);

/* The idle task, and a task without a number in our pid namespace. */
static inline bool state_is_nobody(uint32_t pid, uint32_t tid)
{
	return pid == 0 || tid == 0 || pid == TIMELINE_UNKNOWN || tid == TIMELINE_UNKNOWN;
}

static inline struct timeline_thread *state_life(const struct task *t)
{
	struct timeline_thread **lives = t->lives.items;

	return t->lives.n ? lives[t->lives.n - 1] : NULL;
}

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

/* --- Turns: timeline_turns.c. 0, -ENOMEM --- */

int turns_switch(struct state *s, const struct perfrecord *r);
int turns_start(struct state *s, const struct perfrecord *r); /* ITRACE_START */
/* The daemon's turns_switch(): what a CPU's last few switches leave behind is the same whatever was
 * before, so that the others need not be looked at. False: R is to be applied at once. */
bool turns_wait(struct state *s, const struct perfrecord_switch *r);
/* What waits is applied: before anybody asks. */
int turns_settle(struct state *s, struct cpu *c);
/* The next one to be applied, which is the caller's part; NULL: none waits. */
const struct perfrecord_switch *turns_next_waiting(struct cpu *c);
int turns_lose(struct state *s, const struct perfrecord *r, uint64_t since);
/* The leader's COMM by exec: another thread may have become it. */
int turns_exec(struct state *s, const struct perfrecord *r);

static inline struct stretch *turns_last(const struct cpu *c)
{
	struct stretch *stretches = c->stretches.items;

	return c->stretches.n ? &stretches[c->stretches.n - 1] : NULL;
}

/* --- Trust: timeline_trust.c. 0, -ENOMEM --- */

/* Before the first record: the SILENCES to come, in any order (they are sorted here). */
int trust_prepare(struct state *s, struct silence *silences, size_t n);
int trust_init(struct state *s, struct process *p);
/* From TIME on P's mappings are told from the first on. */
int trust_exec(struct state *s, struct process *p, uint64_t time);
int trust_fork(struct state *s, struct process *p, uint32_t ppid, uint64_t time);
/* P was there before; its mappings were told up to TOLD. */
void trust_scan(struct state *s, struct process *p, uint64_t told);
/* The silence that ends at UNTIL is over. */
int trust_lose(struct state *s, uint64_t until);
/* After the last record. */
void trust_settle(struct state *s);

/* --- Log: timeline_log.c, timeline_pending.c --- */

struct log {
	uint8_t *ring;
	uint64_t size;	     /* a power of two */
	uint64_t head, tail; /* bytes ever appended and dropped */
	uint8_t *scratch;    /* for a record that wraps */
};

/* For a record that wraps. */
#define LOG_SCRATCH_SIZE ((size_t)PERFRECORD_MAX_SIZE + 8)

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
	struct pending_record *next; /* of its line */
	uint8_t line;
	bool later; /* than others of the same time */
	uint16_t size;
	uint8_t bytes[];
};

#define PENDING_LINES 64u

struct pending {
	struct pool pool;
	struct pending_record *last[PENDING_LINES]; /* of each line; NULL: it is empty */
	struct pending_record **heap; /* oldest first: the first of each line, and those of none */
	size_t n_heap, n, capacity;
	uint64_t order;
};

int pending_init(struct pending *p, uint64_t log_bytes);
/* The most bytes that this will take, for so large a log. */
uint64_t pending_most(uint64_t log_bytes);
void pending_done(struct pending *p);
/* Of a record, what most are asked for. */
struct glance {
	uint64_t time;
	uint32_t type, cpu;
	uint16_t size;
};

/* A copy of the record BYTES, of which G says what it is; false: no room. */
bool pending_add(struct pending *p, const struct glance *g, const void *bytes);
/* The oldest, NULL: none. */
const struct pending_record *pending_first(const struct pending *p);
void pending_drop_first(struct pending *p);
/* All, in no order: RET has room for P's n. */
void pending_list(const struct pending *p, const struct pending_record **ret);

/* A thread's beginning comes before what it did elsewhere in the same nanosecond. */
static inline bool timeline_is_later(uint32_t type, uint64_t time)
{
	return type != PERF_RECORD_FORK || time == 0;
}

struct timeline {
	struct state state;
	/* the daemon's */
	struct log log;
	struct pending pending;
	uint64_t records, folded, dropped, lost, horizon;
	uint64_t log_mappings; /* MMAP2 records in the log */
};

/* timeline.c: no switch waits any more. */
void timeline_settle(struct timeline *t);
