/*
 * Whether a CPU's trace unit writes: its ring at two stops, beside the time that user code ran.
 *
 * A dead trace unit leaves what an idle CPU leaves: the same head at each stop. The kernel's count
 * of the time that user code ran on the CPU tells them apart. Code that ran while the CPU was not
 * traced is left out of that time, and the kernel's ticks are counted in the unit's favour, so that
 * an idle CPU is never taken for a dead unit. A thread that runs in the kernel only leaves no trace
 * where the kernel is not traced, and no user time.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "capture/ring/ring.h"

#define PULSE_BYTES 64u

/* A value; all zero: the ring has not been stopped yet. */
struct pulse {
	bool known;
	uint64_t head; /* of the ring at the last stop */
	uint8_t newest[PULSE_BYTES];
	/* The last two stops had the same head and the same bytes before it: nothing was written
	 * since SINCE_NS (perf clock; ABSENT: no clock), when the CPU was first restarted with that
	 * head. For USER_NS at least user code ran in that time. */
	bool stands;
	uint64_t since_ns, user_ns;
	uint64_t ran_ns; /* the count of user time behind the last restart; UINT64_MAX: unknown */
};

/* At a stop. */
void pulse_stop(struct pulse *p, const struct ring *ring);

/* Times of the perf clock. */
struct pulse_times {
	uint64_t stop_ns, restart_ns;
	uint64_t read_ns; /* when ran_ns was read; not before restart_ns */
	uint64_t ran_ns;  /* for how long user code has run on the CPU; UINT64_MAX: unknown */
};
/* Behind the restart that follows a stop. STEP_NS: the largest step in which ran_ns counts. */
void pulse_restart(struct pulse *p, const struct pulse_times *times, uint64_t step_ns);
