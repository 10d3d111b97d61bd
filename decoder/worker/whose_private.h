/*
 * Inside of whose.h: whose.c (whose stretch it is) and whose_code.c (what its code tells).
 */
#pragma once

#include "decoder/worker/whose.h"

/* An instant lies within. */
struct whose_time {
	uint64_t lo, hi; /* perf ns */
};

/* Stretch number I from the one that is asked for on, looking ahead as needed; NULL: there is none.
 */
struct whose_look *whose_look_at(struct whose *w, size_t i);
/* The perf time of TSC; where nothing is known the end of the recording. */
uint64_t whose_ns(const struct whose *w, uint64_t tsc);
/* When, within the time that STRETCH may have begun, turns FIRST to LAST were. */
struct whose_time whose_enter_time(const struct whose *w, const struct scan_stretch *stretch,
				   uint32_t first, uint32_t last);

/* Code of the process of THREAD for the stretch that is asked for, which begins within WHEN: a
 * context's number. */
uint32_t whose_context(struct whose *w, const struct timeline_thread *thread,
		       struct whose_time when);
/* As in struct turns_question. */
void whose_proof(void *userdata, size_t i, uint32_t turn, struct turns_proof *ret);
enum turns_call whose_call(void *userdata, const struct turns_left *left);
