/*
 * The clocks around the flow. Called by cpu_replay.c, once a batch, for a summary that was asked
 * for it
 * (--repeat).
 */
#include "decoder/worker/replay/stopwatch.h"

#include <stddef.h>
#include <time.h>

#include "proto/base.h"

/* All threads of this process count. */
void stopwatch_start(struct stopwatch *w)
{
	if (w == NULL)
		return;
	w->wall_since = now_ns(CLOCK_MONOTONIC);
	w->cpu_since = now_ns(CLOCK_PROCESS_CPUTIME_ID);
}

void stopwatch_stop(struct stopwatch *w)
{
	if (w == NULL)
		return;
	w->cpu += now_ns(CLOCK_PROCESS_CPUTIME_ID) - w->cpu_since;
	w->wall += now_ns(CLOCK_MONOTONIC) - w->wall_since;
}
