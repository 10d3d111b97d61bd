/*
 * Priority for threads that must not wait for a CPU: those that drain rings, and those that copy
 * rings while CPUs are not traced.
 *
 * The priority is the lowest real-time one, SCHED_FIFO 1, where RLIMIT_RTPRIO or CAP_SYS_NICE
 * permits it, else a nice value. If threads of other groups (cgroup(7); sched(7) on autogroups) are
 * busy, a thread of the usual class can wait for many milliseconds, whatever its nice value.
 */
#pragma once

#include <stdbool.h>

/* For a thread that sleeps nearly always: for good. Processes that the thread forks do not inherit
 * the priority. */
void realtime_enter(void);

/* For a while. realtime_begin() and realtime_end() are called in one thread, which forks nothing
 * between. */
struct realtime {
	bool changed;	  /* the scheduling class was changed */
	int policy, nice; /* before */
};
void realtime_begin(struct realtime *ret);
/* Gives the thread back what it had before. */
void realtime_end(const struct realtime *r);
