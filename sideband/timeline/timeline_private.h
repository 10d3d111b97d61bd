/*
 * The inside of a timeline: the state, which recorder and decoder share, and the recorder's log.
 *
 * In the recorder the state is the folded base, without history. In the decoder it has history and
 * is the whole timeline. All of its memory comes from one pool.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "proto/perf/perfrecord.h"
#include "sideband/timeline/pool.h"
#include "sideband/timeline/space.h"
#include "sideband/timeline/timeline.h"

#define TIMELINE_MAX_CPUS  4096u
#define TIMELINE_COMM_SIZE 16u	      /* TASK_COMM_LEN */
#define TIMELINE_UNKNOWN   UINT32_MAX /* a pid or tid without a number in our pid namespace */

/* --- Spaces in a pool: space.c --- */

/* The most mappings that a process can have at a time; sysctl vm.max_map_count is 65530. */
#define SPACE_MAX_MAPPINGS 65536u

/* Like space_new() and space_fork(), with memory from POOL, which must outlive the spaces and be
 * the pool of SPACE. A space with history gives its memory back only with the pool; spaces without
 * history share mappings that they have in common. */
struct space *space_new_in(struct pool *pool, bool history);
struct space *space_fork_in(struct pool *pool, struct space *space, uint64_t time);
/* The number of present mappings. */
size_t space_n_mappings(const struct space *space);

/* --- Processes and threads by their number: tables.c --- */

/* Embedded as the first member of whatever an idmap finds. */
struct idnode {
	struct idnode *next;
	uint32_t id;
};

/* A zeroed struct is an empty map. */
struct idmap {
	struct idnode **buckets;
	unsigned bits; /* log2 of the number of buckets */
	size_t n;
};

struct idnode *idmap_find(const struct idmap *map, uint32_t id);
/* Adds NODE, whose id must not be in the map yet. False: no memory. */
bool idmap_add(struct idmap *map, struct pool *pool, struct idnode *node);
/* Removes NODE, which must be in the map. */
void idmap_remove(struct idmap *map, struct idnode *node);

/* --- Mapped files by their identity: tables.c --- */

/* The files that mappings name, each once. The recorder sweeps out the files that no mapping uses
 * any more; the decoder keeps all. */
struct filetable {
	struct pool *pool; /* borrowed */
	struct file_entry **buckets;
	size_t n_buckets;
	struct file_entry **list; /* by index */
	size_t n, capacity;
};

void filetable_init(struct filetable *t, struct pool *pool);
/* Finds or adds the file that the MMAP2 record R names; the table keeps a copy of the path. NULL:
 * no memory. */
const struct space_file *filetable_intern(struct filetable *t, const struct perfrecord *r);
/* NULL: no such index. */
const struct space_file *filetable_at(const struct filetable *t, size_t index);
/* Mark every file in use, then sweep: files without a mark are freed, the others get new indexes
 * and lose the mark. */
void filetable_mark(const struct space_file *file);
void filetable_sweep(struct filetable *t);

/* --- State: timeline_state.c has the tables, timeline_apply.c what records do --- */

/* An array of values in order of time, each beginning with its time. Without history it has only
 * the newest value. */
struct versions {
	void *items;
	size_t n, capacity;
};

/* From BEGIN to the next era a process has SPACE. A fork and an exec begin an era. */
struct era {
	uint64_t begin;
	struct space *space;
};

struct name {
	uint64_t begin;
	bool known;
	char comm[TIMELINE_COMM_SIZE];
};

/* A CPU has the thread PID/TID from TIME to the next turn. 0: the idle task; TIMELINE_UNKNOWN: a
 * thread without a number in our pid namespace. */
struct turn {
	uint64_t time;
	uint32_t pid, tid;
	struct timeline_thread *thread; /* NULL: none; always NULL without history */
	bool uncertain;			/* pid and tid are 0 */
	bool preempted;
};

struct process {
	struct idnode node; /* id: the pid; first, as idmap_find() returns the node */
	TAILQ_ENTRY(process) entry;
	LIST_HEAD(, task) tasks; /* the threads that have this pid now */
	uint32_t ppid;
	bool ended;	      /* the leader has exited */
	bool scanned;	      /* known from /proc alone: no record has told of its beginning */
	struct versions eras; /* struct era */
	uint64_t baseline;    /* without history: its mappings are complete since this time */
	struct certainty *certainty; /* with history */
};

/* All threads that ever had one tid. */
struct task {
	struct idnode node; /* id: the tid; first */
	LIST_ENTRY(task) entry;
	struct process *process; /* of the newest thread */
	struct versions lives;	 /* struct timeline_thread * */
	struct versions names;	 /* struct name */
};

#define TURNS_DEFERRED 4u

struct cpu {
	struct versions turns; /* struct turn */
	uint64_t n_switches, n_starts;
	bool named;	/* a record has told which thread had the CPU at SINCE or later */
	uint64_t since; /* no record is missing from here on */
	bool entering;	/* a switch out has named the next thread, which has not come yet */
	uint64_t lost, lost_time; /* sum of the LOST records, and the time of the last one */
	/* The recorder's: the newest switches that turns_defer() took. N_DEFERRED counts all that
	 * it ever took, N_SETTLED those of them that were applied or do not matter any more. */
	struct perfrecord_switch deferred[TURNS_DEFERRED];
	uint64_t n_deferred, n_settled;
};

TAILQ_HEAD(process_list, process);

struct state {
	bool history;
	struct pool pool;
	struct filetable files;
	size_t sweep_files_at; /* the number of files that makes state_file() sweep */
	struct idmap processes, tasks;
	struct process_list live;  /* least recently seen first */
	struct process_list ended; /* first ended first */
	struct cpu *cpus;
	size_t n_cpus;
	struct versions threads;    /* history: struct timeline_thread *, in order of first sight */
	struct versions losses;	    /* history: struct timeline_loss */
	struct versions lost_spans; /* history: struct lost_span; they do not overlap */
	bool lost;		    /* some record was lost */
	uint64_t n_exempt_checks;
	uint64_t n_evicted;
};

void state_init(struct state *s, bool history, size_t limit);
void state_done(struct state *s);
/* Applies the record R. 0; -ENOMEM, or -E2BIG (a process has too many mappings): the record is lost
 * and the state still consistent. */
int state_apply(struct state *s, const struct perfrecord *r);
/* Applies the LOST record R; the records were lost between SINCE and the time of R. */
int state_apply_lost(struct state *s, const struct perfrecord *r, uint64_t since);
/* Without history: forgets some processes, ended ones first, then those not seen for longest, and
 * files that nothing maps. False: there was nothing to forget. */
bool state_make_room(struct state *s);

/* The place for a new value of SIZE bytes; without history it holds the old one. NULL: no memory.
 */
void *state_add_version(struct state *s, struct versions *v, size_t size);
/* Found or made; NULL: no memory. */
struct process *state_process(struct state *s, uint32_t pid);
/* The task TID, found or made, which belongs to PROCESS from now on; NULL: no memory. */
struct task *state_task(struct state *s, struct process *process, uint32_t tid);
/* NULL: no memory, or no such CPU. */
struct cpu *state_cpu(struct state *s, uint32_t cpu);
/* The file that the MMAP2 record R names; NULL: no memory. */
const struct space_file *state_file(struct state *s, const struct perfrecord *r);
void state_forget_process(struct state *s, struct process *p);
void state_forget_task(struct state *s, struct task *t);
void state_end_process(struct state *s, struct process *p);
void state_revive_process(struct state *s, struct process *p);
/* P was seen now: moves P to the end of the live processes. */
void state_touch(struct state *s, struct process *p);
/* The task that a record at TIME names. A thread that was unknown begins at TIME. NULL: no memory.
 */
struct task *state_seen_task(struct state *s, uint32_t pid, uint32_t tid, uint64_t time);
/* With history: the newest thread of T ends at TIME. */
void state_end_life(struct state *s, struct task *t, uint64_t time);

/* The idle task, or a task without a number in our pid namespace. */
static inline bool state_is_nobody(uint32_t pid, uint32_t tid)
{
	return pid == 0 || tid == 0 || pid == TIMELINE_UNKNOWN || tid == TIMELINE_UNKNOWN;
}

static inline struct process *state_find_process(const struct state *s, uint32_t pid)
{
	return (struct process *)idmap_find(&s->processes, pid);
}

static inline struct task *state_find_task(const struct state *s, uint32_t tid)
{
	return (struct task *)idmap_find(&s->tasks, tid);
}

/* The newest of each; NULL: none. */
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

/* --- Threads on CPUs: timeline_turns.c. Functions return 0 or -ENOMEM --- */

int turns_switch(struct state *s, const struct perfrecord *r);
/* An ITRACE_START record. */
int turns_start(struct state *s, const struct perfrecord *r);
/* Records of a CPU were lost between SINCE and the time of the LOST record R. */
int turns_lose(struct state *s, const struct perfrecord *r, uint64_t since);
/* A leader's COMM by exec: another thread of the process may have become the leader. */
int turns_exec(struct state *s, const struct perfrecord *r);
/* The recorder keeps a switch for later instead of turns_switch(): the last few switches of a CPU
 * leave the same behind whatever came before them. False: R must be applied at once. */
bool turns_defer(struct state *s, const struct perfrecord_switch *r);
/* Applies the deferred switches of C. */
int turns_apply_deferred(struct state *s, struct cpu *c);
/* Takes the next deferred switch, which the caller must apply; NULL: none. */
const struct perfrecord_switch *turns_next_deferred(struct cpu *c);

static inline struct turn *turns_last(const struct cpu *c)
{
	struct turn *turns = c->turns.items;

	return c->turns.n ? &turns[c->turns.n - 1] : NULL;
}

/* --- Which mappings are complete: timeline_certainty.c. Functions return 0 or -ENOMEM --- */

/* Records of CPU, or of several CPUs (SPAN_MANY_CPUS), between these times were lost. */
#define SPAN_MANY_CPUS UINT32_MAX
struct lost_span {
	uint64_t since, until;
	uint32_t cpu;
};

/* A process' mappings are complete from TIME on and certain until DOUBT. */
struct baseline {
	uint64_t time, doubt;
};

struct certainty {
	struct versions baselines; /* struct baseline */
	struct versions exempt;	   /* size_t: lost spans during which it certainly ran elsewhere */
	/* For the newest baseline, all lost spans before SPAN_AT are over or exempt. EXEMPT_AT
	 * follows in EXEMPT. */
	size_t span_at, exempt_at;
	size_t n_threads;
	uint64_t threads_since; /* the number of threads has not changed since */
	bool known;		/* all of its threads are known */
};

/* Takes the N SPANS of all records to come, in any order; sorts them. */
int certainty_prepare(struct state *s, struct lost_span *spans, size_t n);
int certainty_init(struct state *s, struct process *p);
/* An exec at TIME makes P's mappings complete. */
int certainty_exec(struct state *s, struct process *p, uint64_t time);
/* P is forked from PPID at TIME. */
int certainty_fork(struct state *s, struct process *p, uint32_t ppid, uint64_t time);
/* The scan found P, whose mappings were complete up to the time COMPLETE. */
void certainty_scan(struct state *s, struct process *p, uint64_t complete);
/* The lost span that ends at UNTIL is over. */
int certainty_lose(struct state *s, uint64_t until);
/* All records are applied. */
void certainty_finish(struct state *s);

/* --- The recorder's log: timeline_log.c --- */

struct log {
	uint8_t *ring;
	uint64_t size;	     /* a power of two */
	uint64_t head, tail; /* bytes ever appended and dropped */
	uint8_t *scratch;    /* of LOG_SCRATCH_SIZE, for the owner's log_at() */
};

/* Room for a record that wraps around the end of the ring. */
#define LOG_SCRATCH_SIZE ((size_t)PERFRECORD_MAX_SIZE + 8)

int log_init(struct log *log, uint64_t size);
void log_done(struct log *log);
bool log_fits(const struct log *log, size_t size);
void log_append(struct log *log, const void *bytes, size_t size);
/* The record at AT (tail <= AT < head). If the record wraps, it is copied to SCRATCH
 * (LOG_SCRATCH_SIZE bytes). */
const uint8_t *log_at(const struct log *log, uint64_t at, uint8_t *scratch, size_t *ret_size);

/* A record that fell out of the log and waits until no other CPU can bring an older one. */
struct pending_record {
	uint64_t time, order;
	struct pending_record *next; /* of its queue */
	uint8_t queue;
	bool later; /* sorts behind the others of the same time */
	uint16_t size;
	uint8_t bytes[];
};

#define PENDING_QUEUES 64u

struct pending {
	struct pool pool;
	struct pending_record *last[PENDING_QUEUES]; /* of each queue; NULL: the queue is empty */
	struct pending_record **heap; /* oldest first: the first of each queue, and stragglers */
	size_t n_heap, n, capacity;
	uint64_t order;
};

/* The fields of a record that sorting needs. */
struct record_head {
	uint64_t time;
	uint32_t type, cpu;
	uint16_t size;
};

int pending_init(struct pending *p, uint64_t log_bytes);
void pending_done(struct pending *p);
/* The most bytes that this takes beside a log of LOG_BYTES. */
uint64_t pending_most(uint64_t log_bytes);
/* Adds a copy of the record BYTES, whose head is HEAD. False: no room. */
bool pending_add(struct pending *p, const struct record_head *head, const void *bytes);
/* The oldest record; NULL: none. */
const struct pending_record *pending_first(const struct pending *p);
void pending_drop_first(struct pending *p);
/* Stores all records, in no order, in RET, which has room for P's n. */
void pending_list(const struct pending *p, const struct pending_record **ret);

/* True: a record of this TYPE sorts behind a FORK of the same time. A fork comes before what the
 * child did on another CPU in the same nanosecond. */
static inline bool timeline_is_later(uint32_t type, uint64_t time)
{
	return type != PERF_RECORD_FORK || time == 0;
}

struct timeline {
	struct state state;
	/* the recorder's: */
	struct log log;
	struct pending pending;
	uint64_t records, folded, dropped, lost, horizon;
	uint64_t log_mappings; /* MMAP2 records in the log */
};

/* Applies all deferred switches (timeline.c). */
void timeline_apply_deferred(struct timeline *t);
