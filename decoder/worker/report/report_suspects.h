/*
 * What stands out: shared by report_suspects.c, suspects_threads.c, suspects_stuck.c,
 * suspects_waits.c and suspects_locks.c.
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

/* 0 or -ENOMEM. */
int suspects_add(struct report *r, const struct report_suspect *s);
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
/* Adds the suspects among threads: suspects_threads.c. 0 or -ENOMEM. */
int suspects_threads(struct report *r);
/* Adds the call in which the thread of STATE, whose last code is C, sent something and waits for
 * the answer in system call CALL: suspects_stuck.c. 0 or -ENOMEM. */
int suspects_stuck(struct report *r, const struct report_state *state,
		   const struct tally_counters *c, uint64_t call);
/* Whether the thread with these counters, which was interrupted, certainly did not raise a signal
 * by the instruction that it got no further than: suspects_signal.c. */
bool suspects_raised_nothing(const struct report *r, const struct tally_counters *c);
/* The same for threads that waited for a CPU, out of those of STATES: suspects_waits.c. */
int suspects_waits(struct report *r, const struct report_state *const *states, size_t n);
/* Adds locks that many calls waited for: suspects_locks.c. 0 or -ENOMEM. */
int suspects_locks(struct report *r);
