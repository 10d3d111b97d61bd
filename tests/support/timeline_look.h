/*
 * Questions that only tests ask a timeline.
 */
#pragma once

#include "sideband/timeline/timeline_private.h"

/* The index of CPU's turn at TIME; the number of turns if there is none. */
static inline size_t timeline_look_find_turn(const struct timeline *t, uint32_t cpu, uint64_t time)
{
	size_t n = timeline_n_turns(t, cpu);
	struct timeline_turn turn;

	for (size_t i = n; i > 0; i--) {
		timeline_get_turn(t, cpu, i - 1, &turn);
		if (turn.since <= time)
			return i - 1;
	}
	return n;
}

/* The thread that ran on CPU at TIME; NULL: unknown. *ret_since and *ret_until (may be NULL): the
 * span of time for which the answer holds. */
static inline const struct timeline_thread *timeline_look_running(const struct timeline *t,
								  uint32_t cpu, uint64_t time,
								  uint64_t *ret_since,
								  uint64_t *ret_until)
{
	struct timeline_turn turn;

	timeline_get_turn(t, cpu, timeline_look_find_turn(t, cpu, time), &turn);
	if (ret_since)
		*ret_since = turn.since;
	if (ret_until)
		*ret_until = turn.until;
	return turn.thread;
}

/* The files that mappings name: their number; one of them by index (NULL: no such index). */
static inline size_t timeline_look_n_files(const struct timeline *t)
{
	return t->state.files.n;
}

static inline const struct space_file *timeline_look_file(const struct timeline *t, size_t index)
{
	return filetable_at(&t->state.files, index);
}
