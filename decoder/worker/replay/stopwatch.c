/*
 * The clocks around the flow. Called by walk.c, once a batch, for a summary that was asked for it
 * (--repeat).
 */
#include "decoder/worker/replay/stopwatch.h"

#include <stddef.h>
#include <time.h>

static uint64_t read_clock(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* All threads of this process count. */
void stopwatch_start(struct stopwatch *w)
{
	if (w == NULL)
		return;
	w->wall_since = read_clock(CLOCK_MONOTONIC);
	w->cpu_since = read_clock(CLOCK_PROCESS_CPUTIME_ID);
}

void stopwatch_stop(struct stopwatch *w)
{
	if (w == NULL)
		return;
	w->cpu += read_clock(CLOCK_PROCESS_CPUTIME_ID) - w->cpu_since;
	w->wall += read_clock(CLOCK_MONOTONIC) - w->wall_since;
}
