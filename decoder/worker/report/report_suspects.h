/*
 * Suspects: shared by report_suspects.c and suspects_*.c.
 */
#pragma once

#include "decoder/worker/report/report_parts.h"

#define SUSPECT_INSIDE 5u
#define SUSPECT_RARE   2u
#define SUSPECT_TIDS   8u

/* In the order in which they are listed. */
enum report_suspect_kind {
	SUSPECT_CRASH,
	SUSPECT_DEADLOCK,
	SUSPECT_LONG_CALL,
	SUSPECT_STUCK_CALL,
	SUSPECT_LOCK_WAIT,
	SUSPECT_WAIT,
	SUSPECT_CONTENTION,
	SUSPECT_SLOW_CALLS,
	SUSPECT_RUNNABLE,
	SUSPECT_CPU_WAIT,
	SUSPECT_RAN,
	SUSPECT_LATE_FUNCTION,
	SUSPECT_FREQUENCY,
	SUSPECT_GAP,
};

struct report_suspect {
	enum report_suspect_kind kind;
	size_t order;			      /* among those of its kind */
	const struct timeline_thread *thread; /* NULL: none */
	/* It has the CPU, or had it meanwhile, or holds the lock; or NULL. */
	const struct timeline_thread *other;
	uint32_t function;     /* number in the tally; 0: none */
	size_t cpu;	       /* index into the manifest */
	uint64_t since, until; /* perf ns */
	/* Numbers of the kind: calls that ended, or the highest ratio; slow calls, instructions, a
	 * system call, a ratio, or the number of a gap. */
	uint64_t calls, count;
	uint64_t usual_ns, limit_ns, longest_ns, off_ns;
	uint64_t cost_ns; /* of slow calls, together, at least */
	uint64_t address; /* a place in context */
	uint32_t context;
	/* Functions, outermost first; of SUSPECT_CONTENTION: callers, innermost first. */
	uint32_t inside[SUSPECT_INSIDE];
	uint64_t inside_ns[SUSPECT_INSIDE];
	size_t n_inside;
	uint32_t rare[SUSPECT_RARE]; /* functions that are always that slow */
	size_t n_rare;
	uint64_t insns; /* of FUNCTION, with those that it called */
	uint32_t tids[SUSPECT_TIDS];
	size_t n_tids;
	bool outside; /* the signal was raised by none of the process's threads */
	bool cycle;   /* each of TIDS waits for a lock that the next one holds, or the first */
};

/* A thread at the trigger. */
struct moment {
	const struct timeline_thread *thread;
	const struct report_state *state;
	const struct tally_counters *last; /* NULL: the code of its last turn is not known */
	uint64_t call;			   /* or REPORT_NO_CALL */
	bool lock;			   /* it waits for a lock, */
	bool mutex;			   /* which is a mutex of glibc, */
	const struct report_state *owner;  /* and which this thread holds; NULL: not known */
	uint64_t caller;		   /* of the lock's function; 0: unknown */
	uint64_t locking;		   /* since when it is in that function, perf ns */
};

struct moments {
	struct moment *list; /* by process */
	size_t n;
	uint64_t now;
	/* Threads that are not in the list, by process. */
	const struct report_state **missing;
	size_t n_missing;
};

/* 0 or -ENOMEM. */
int suspects_add(struct report *r, const struct report_suspect *s);
const struct function *suspects_function(const struct report *r, uint32_t function);
/* TSC in perf ns; MANIFEST_ABSENT for 0, too. */
uint64_t suspects_time(const struct report *r, uint64_t tsc);
/* NULL: no call of FUNCTION took time. */
const struct durations *suspects_durations(const struct report *r, uint32_t function);
/* The window of all CPUs, up to the trigger, perf ns; empty if nothing is known. */
uint64_t suspects_begin(const struct report *r, uint64_t *ret_end);
/* TICKS of TSC in ns; 0: unknown. */
uint64_t suspects_span(const struct report *r, uint64_t ticks);
/* The least octave of ticks from NS on. */
unsigned suspects_octave(const struct report *r, uint64_t ns);
/* How long the calls of 2^OCTAVE ticks or more took at least, together, in ticks. */
uint64_t suspects_least_sum(const struct durations *d, unsigned octave);
/* Whether the slowest call of B lies within that of A. */
bool suspects_is_within(const struct durations *a, const struct durations *b);
/* Whether the slowest call of function A took longer than that of B, or as long and lies around it.
 * Both have durations. */
bool suspects_is_longer(const struct report *r, uint32_t a, uint32_t b);
/* Whether NAME (may be NULL; with or without a version) is one of the N names. */
bool suspects_is_one_of(const char *name, const char *const *names, size_t n);
/* Whether NAME (may be NULL; with or without a version) is a function that takes a lock, of those
 * that programs call; or the function in which glibc itself waits for its own locks, such as those
 * of malloc. */
bool suspects_is_lock(const char *name);
bool suspects_is_private_lock(const char *name);
/* Whether NAME takes a mutex, and waits at the mutex's own address. */
bool suspects_is_mutex(const char *name);
/* Whether a thread in function NAME waits for a lock. */
bool suspects_is_lock_function(const char *name);

/* Adds the suspects among threads: suspects_threads.c. 0 or -ENOMEM. */
int suspects_threads(struct report *r);
/* How long M has been as it is, certainly; 0: not certain. */
uint64_t suspects_age(const struct moments *all, const struct moment *m);
/* A suspect of KIND about M. */
struct report_suspect suspects_of(enum report_suspect_kind kind, const struct moment *m);
/* NULL: none is known. */
const struct tally_branch *suspects_last_branch(const struct moment *m);
/* Whether a thread of process PID that is not in the list was there at SINCE (perf ns; UINT64_MAX:
 * at the trigger) or later. */
bool suspects_is_missing(const struct moments *all, uint32_t pid, uint64_t since);

/* Adds the crash of the process that is [FIRST, END) of the list, or nothing. A process whose
 * threads are all gone, and none of which called exit, was ended by a signal. The thread that was
 * interrupted first got it: suspects_crash.c. 0 or -ENOMEM. */
int suspects_crash(struct report *r, const struct moments *all, size_t first, size_t end);
/* Adds the deadlock of such a process, or its threads that wait for locks: suspects_deadlock.c. 0
 * or -ENOMEM. */
int suspects_deadlocks(struct report *r, const struct moments *all, size_t first, size_t end);
/* Whether M blocked in futex(2), or in a system call of unknown number. In a lock's function a
 * thread may also wait for a page. */
bool suspects_may_wait_for_lock(const struct moment *m);
/* Looks for a lock's function among the innermost frames of M. Such a function may sleep more than
 * once before it has the lock. */
void suspects_find_lock(const struct report *r, struct moment *m);
/* Adds the call in which the thread of STATE, whose last code is C, sent something and waits for
 * the answer in system call CALL: suspects_stuck.c. 0 or -ENOMEM. */
int suspects_stuck(struct report *r, const struct report_state *state,
		   const struct tally_counters *c, uint64_t call);
/* Whether the thread with these counters, which was interrupted, certainly did not raise a signal
 * by the instruction that it got no further than: suspects_signal.c. */
bool suspects_raised_nothing(const struct report *r, const struct tally_counters *c);
/* Adds threads that waited for a CPU, out of those of STATES: suspects_waits.c. 0 or -ENOMEM. */
int suspects_waits(struct report *r, const struct report_state *const *states, size_t n);
/* Adds functions of which a few calls took much longer than others: suspects_slow.c. 0 or -ENOMEM.
 */
int suspects_slow(struct report *r);
/* Adds locks that many calls waited for: suspects_locks.c. 0 or -ENOMEM. */
int suspects_locks(struct report *r);
