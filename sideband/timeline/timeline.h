/*
 * Who ran, in which address space, on which CPU, when: base state plus the log of records since the
 * horizon.
 *
 * In the daemon (timeline_push, timeline_write): the log is a bounded ring of raw records; what
 * falls out at the old end is folded into the base state, which keeps no history. Nothing is
 * allocated per record once warm.
 *
 * In the worker (timeline_load): all records, sorted by time (equal times: in order of arrival),
 * are applied with history, and questions are asked by time.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/bytes.h"
#include "proto/perf/perfrecord.h"
#include "sideband/timeline/space.h"

struct timeline;

/* Records with time 0 come from the scan of /proc: they tell of processes that were there before
 * (their FORK copies nothing, all their mappings follow), and never undo what a live record said.
 */

/* The daemon's: LOG_BYTES (power of two, at least 64, allocated at once) of raw records, BASE_BYTES
 * an upper limit for the folded state (processes beyond it are dropped, ended ones first, then
 * those not seen for longest, and counted). 0, -EINVAL (LOG_BYTES), -ENOMEM. */
int timeline_new(uint64_t log_bytes, uint64_t base_bytes, struct timeline **ret);
/* The same, with as much of MAX_BYTES (at least 1 MiB) for each as goes with the other: a quarter
 * for the log, rounded down to a power of two; a quarter of that for what waits between the two;
 * the rest for the base. All in all it never takes more. */
int timeline_new_within(uint64_t max_bytes, struct timeline **ret);
void timeline_free(struct timeline *t);
void timeline_freep(struct timeline **t);

/* One record, already parsed; BYTES as they came. Records of one CPU arrive in order, those of
 * different CPUs nearly: folding sorts within a second's reach. 0; -ENOMEM (the record is dropped
 * and counted). */
int timeline_push(struct timeline *t, const struct perfrecord *record, const void *bytes,
		  size_t size);
/* The same for a well-formed SWITCH_CPU_WIDE (perfrecord_get_switch()). */
int timeline_push_switch(struct timeline *t, const void *bytes, size_t size);
/* The base as records with time 0 (FORK, COMM, MMAP2, and SWITCH for who runs where), then the log.
 * What loses its certainty does not vanish: of a CPU of which a LOST record was folded, the base
 * has that (the time of the last one, the sum of all) and, with its own time, the switch after it;
 * the time in the body of a process' FORK is when its mappings were last told from the first on.
 * 0, -E2BIG, -ENOMEM. */
int timeline_write(const struct timeline *t, struct bytes_out *out);
/* Live or remembered pids, in no order; FN's first non-zero result ends it. */
int timeline_foreach_pid(const struct timeline *t, int (*fn)(void *userdata, uint32_t pid),
			 void *userdata);

/* Each file that a process of the base maps, or a record of the log names, at least once: what a
 * snapshot taken now may ask for. A file's index means nothing here, and it is good only within FN.
 * FN's first non-zero result ends it. 0, that, or -ENOMEM. */
int timeline_foreach_file(const struct timeline *t,
			  int (*fn)(void *userdata, const struct space_file *file), void *userdata);

struct timeline_stats {
	uint64_t records, folded, dropped; /* dropped: no memory or limit */
	uint64_t horizon_ns;		   /* MANIFEST_ABSENT: nothing folded yet */
	uint64_t log_bytes_used, base_bytes_used;
	uint64_t taken_bytes, most_bytes;   /* all memory that it has now, and that it may have */
	uint64_t processes, mappings, lost; /* of the base; lost: sum of LOST records */
	uint64_t log_mappings;		    /* MMAP2 records of the log */
};
void timeline_get_stats(const struct timeline *t, struct timeline_stats *ret);

/* The worker's: from the records of a bundle. Records that do not parse are skipped and counted in
 * *ret_bad. 0 or -ENOMEM. */
int timeline_load(const void *records, size_t size, struct timeline **ret, uint64_t *ret_bad);

struct timeline_thread {
	uint32_t pid, tid;
	uint64_t begin, end; /* FORK/first sight, EXIT (SPACE_NOW: alive); 0: before the horizon */
	uint32_t ppid;	     /* UINT32_MAX: unknown */
};

/* One stretch of a CPU between two switches, in order of time and without a break: each ends where
 * the next begins, none is empty, the last one is open. Where records were lost (from the record
 * before the LOST record on), or contradict each other, the turn is uncertain; after a LOST record
 * it ends as soon as a record tells who has run since. A thread that became its process' leader by
 * exec begins a turn then. */
struct timeline_turn {
	uint64_t since, until; /* perf ns; 0: before what is known, SPACE_NOW: open */
	const struct timeline_thread *thread; /* NULL: nobody (idle), or not known */
	bool uncertain; /* switch records of this time were lost: anybody may have run */
	bool preempted; /* it was runnable when it was switched out (.._SWITCH_OUT_PREEMPT) */
};
/* Number of turns of CPU; one of them (no such index: no thread is known, until the first turn). */
size_t timeline_n_turns(const struct timeline *t, uint32_t cpu);
void timeline_get_turn(const struct timeline *t, uint32_t cpu, size_t index,
		       struct timeline_turn *ret);
/* Whether mapping records of PID may have been lost before TIME, and nothing since has told its
 * mappings anew: its space is then not to be believed. Told anew they are by an exec, and by a fork
 * from a process that is certain. Lost they may be of all processes, but for those whose only
 * thread had another CPU for all of the time between the LOST record and the one before it. */
bool timeline_space_uncertain(const struct timeline *t, uint32_t pid, uint64_t time);
/* The space of process PID at TIME, NULL: none known. It stays after the process' end, until the
 * pid is used again. */
const struct space *timeline_space(const struct timeline *t, uint32_t pid, uint64_t time);
/* The name of a thread at TIME, NULL: unknown. Borrowed. */
const char *timeline_comm(const struct timeline *t, uint32_t tid, uint64_t time);
/* The newest thread of that number, NULL: none is known. */
const struct timeline_thread *timeline_last_thread(const struct timeline *t, uint32_t tid);
size_t timeline_n_threads(const struct timeline *t);
const struct timeline_thread *timeline_thread(const struct timeline *t, size_t index);
/* LOST and AUX records of CPU in order of time; NULL beyond the last. */
struct timeline_loss {
	uint32_t cpu;
	uint64_t time;
	uint64_t since;	    /* of LOST: the lost ones lie between this and TIME; 0: not known */
	uint64_t lost;	    /* records; 0 for an AUX flag */
	uint64_t aux_flags; /* 0 for a LOST record */
};
const struct timeline_loss *timeline_loss(const struct timeline *t, size_t index);
