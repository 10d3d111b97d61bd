/*
 * Processes, their mappings, and the threads on CPUs over time, as the perf sideband tells them.
 *
 * The recorder feeds every sideband record to a timeline and writes the timeline into each bundle.
 * The decoder loads the records of a bundle and asks by time: which thread had a CPU, which file a
 * process had mapped at an address, what a thread was called.
 *
 * In the recorder (timeline_push, timeline_write) a timeline is a log, a bounded ring of raw
 * records, over a base. A record for which the log has no room any more is folded into the base,
 * which has the present state and no history. In the decoder (timeline_load) all records are sorted
 * by time (equal times: in order of arrival) and applied to a state with history.
 *
 * Files: timeline.c is the recorder's side, timeline_log.c has the log and the records that wait
 * between log and base, and timeline_write.c makes records of a timeline. timeline_load.c is the
 * decoder's side: it sorts, applies and answers. Both share the state: timeline_state.c has its
 * tables, timeline_apply.c what each kind of record does, timeline_turns.c the threads on CPUs, and
 * timeline_certainty.c the mappings that may be incomplete. space.c is one address space, tables.c
 * has the hash tables, and pool.c the memory of it all.
 *
 * Decisions that govern the room:
 * - The sideband is always perf records in the kernel's format, also for what the scan of /proc
 *   found and for the base in a bundle. Such records have time 0: they tell of processes that were
 *   there before, and never undo what a live record said.
 * - A fork of a process that the scan of /proc found after its fork leaves what the scan read of
 *   the child as it is: the scan may have read the parent's data much later than the fork.
 * - Memory is limited in bytes, and everything that a limit drops is counted. Once the pools are
 *   warm, nothing is allocated per record.
 * - Folding looks at few switches: the base needs only the last few switches of each CPU.
 * - What records contradict or losses hide is marked uncertain and never guessed.
 * - A timeline has one owner and no lock. Asking a loaded timeline changes nothing, so threads may
 *   ask at the same time. All results are borrowed from the timeline.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/bytes.h"
#include "proto/perf/perfrecord.h"
#include "sideband/timeline/space.h"

struct timeline;

/* --- The recorder's side --- */

/* A timeline with a log of LOG_BYTES (a power of two, at least 64, allocated at once) and a base of
 * at most BASE_BYTES. At the limit processes are dropped and counted: ended ones first, then those
 * not seen for longest. 0, -EINVAL (LOG_BYTES), -ENOMEM. */
int timeline_new(uint64_t log_bytes, uint64_t base_bytes, struct timeline **ret);
/* A timeline that never takes more than MAX_BYTES (at least 1 MiB): a quarter for the log, rounded
 * down to a power of two, a quarter of the log's size for records that wait between log and base,
 * and the rest for the base. 0, -EINVAL (MAX_BYTES), -ENOMEM. */
int timeline_new_within(uint64_t max_bytes, struct timeline **ret);
void timeline_free(struct timeline *t);
void timeline_freep(struct timeline **t);

/* Adds one parsed record; BYTES are the record as it came. Records of one CPU must arrive in order;
 * folding sorts the records of different CPUs if they are less than a second apart. 0, or -ENOMEM:
 * the record is dropped and counted. */
int timeline_push(struct timeline *t, const struct perfrecord *record, const void *bytes,
		  size_t size);
/* The same for a well-formed SWITCH_CPU_WIDE (perfrecord_get_switch()). */
int timeline_push_switch(struct timeline *t, const void *bytes, size_t size);
/*
 * Writes the base as records with time 0 (FORK, COMM, MMAP2), and for each CPU whose thread is
 * known the SWITCH with which that thread's turn began; then the log. Of who had the CPU before
 * that SWITCH nothing is known. The base does not hide losses: for a CPU of which a LOST record was
 * folded, the base has a LOST record (with the time of the last one and the sum of all). The time
 * in the body of a process' FORK says since when the process' mappings are complete. 0, -E2BIG,
 * -ENOMEM.
 */
int timeline_write(const struct timeline *t, struct bytes_out *out);
/* Calls FN once for each pid of the base and of the log, in no order. A result of FN other than 0
 * ends the loop. Returns that result, 0, or -ENOMEM. */
int timeline_foreach_pid(const struct timeline *t, int (*fn)(void *userdata, uint32_t pid),
			 void *userdata);
/* Calls FN at least once for each file that a process of the base maps or a record of the log
 * names: the files that a snapshot taken now may need. The file is valid only during the call, and
 * its index has no meaning. Returns like timeline_foreach_pid(). */
int timeline_foreach_file(const struct timeline *t,
			  int (*fn)(void *userdata, const struct space_file *file), void *userdata);

struct timeline_stats {
	uint64_t records, folded, dropped; /* dropped: no memory, or a limit */
	uint64_t horizon_ns;		   /* MANIFEST_ABSENT: nothing folded yet */
	uint64_t log_bytes_used, base_bytes_used;
	uint64_t taken_bytes, most_bytes;   /* all memory taken now, and the most it can become */
	uint64_t processes, mappings, lost; /* of the base; lost: sum of the LOST records */
	uint64_t log_mappings;		    /* MMAP2 records of the log */
};
void timeline_get_stats(const struct timeline *t, struct timeline_stats *ret);

/* --- The decoder's side --- */

/* Loads the SIZE bytes RECORDS of a bundle; *ret is the caller's. Records that do not parse are
 * skipped and counted in *ret_bad. 0 or -ENOMEM. */
int timeline_load(const void *records, size_t size, struct timeline **ret, uint64_t *ret_bad);

/* One thread from its fork, or from the first record that names it, to its exit. */
struct timeline_thread {
	uint32_t pid, tid;
	uint64_t begin, end; /* perf ns; begin 0: before the horizon; end SPACE_NOW: alive */
	uint32_t ppid;	     /* UINT32_MAX: unknown */
};

/* One turn of a CPU: the time in which one thread has it. The turns of a CPU are in order of time
 * and without a break: none is empty, each ends where the next begins, and the last one is open. A
 * turn is uncertain if records contradict each other or were lost. An uncertain turn begins with
 * the last record before the LOST record and ends as soon as a record tells which thread has had
 * the CPU since. A thread that becomes its process' leader by exec begins a new turn. */
struct timeline_turn {
	uint64_t since, until; /* perf ns; 0: before what is known; SPACE_NOW: open */
	const struct timeline_thread *thread; /* NULL: idle, or unknown */
	bool uncertain; /* records of this time were lost: any thread may have had the CPU */
	bool preempted; /* the thread was runnable when it left
			   (PERF_RECORD_MISC_SWITCH_OUT_PREEMPT) */
};
size_t timeline_n_turns(const struct timeline *t, uint32_t cpu);
/* An INDEX beyond the last turn gives a turn without a thread from 0 to the first turn. */
void timeline_get_turn(const struct timeline *t, uint32_t cpu, size_t index,
		       struct timeline_turn *ret);
/* True: mapping records of PID may have been lost before TIME, and its mappings have not become
 * complete since by an exec, by a fork from a process whose mappings are certain, or because the
 * recorder has read all of them again (procscan_again()). A loss
 * concerns all processes except those whose only thread had another CPU from the last record before
 * the LOST record up to that record. */
bool timeline_space_uncertain(const struct timeline *t, uint32_t pid, uint64_t time);
/* The space of process PID at TIME; NULL: none known. The space stays after the process' end until
 * the pid is used again. */
const struct space *timeline_space(const struct timeline *t, uint32_t pid, uint64_t time);
/* The name of thread TID at TIME; NULL: unknown. */
const char *timeline_comm(const struct timeline *t, uint32_t tid, uint64_t time);
/* The newest thread with the number TID; NULL: none known. */
const struct timeline_thread *timeline_last_thread(const struct timeline *t, uint32_t tid);
size_t timeline_n_threads(const struct timeline *t);
/* NULL: no such index. */
const struct timeline_thread *timeline_thread(const struct timeline *t, size_t index);

/* A LOST record, or an AUX record with flags. */
struct timeline_loss {
	uint32_t cpu;
	uint64_t time;
	uint64_t since;	    /* LOST: the records were lost between SINCE and TIME; 0: unknown */
	uint64_t lost;	    /* number of records; 0 for an AUX record */
	uint64_t aux_flags; /* 0 for a LOST record */
};
/* The losses of all CPUs in order of time; NULL beyond the last. */
const struct timeline_loss *timeline_loss(const struct timeline *t, size_t index);
