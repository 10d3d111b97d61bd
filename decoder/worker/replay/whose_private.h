/*
 * Inside of whose.h: whose.c (whose stretch it is), whose_code.c (what its code tells) and
 * whose_kernel.c (what the kernel's code tells).
 */
#pragma once

#include "decoder/worker/replay/whose.h"

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

/* The perf time that TSC is not before, or not after; 0 and UINT64_MAX where nothing is known. */
uint64_t whose_not_before(const struct whose *w, uint64_t tsc);
uint64_t whose_not_after(const struct whose *w, uint64_t tsc);
/* Behind the answers that are there. 0 or -ENOMEM. */
int whose_add_answer(struct whose *w, const struct whose_answer *answer);
/* A switch was seen: answers, for the next batch. */
void whose_switched(struct whose *w, uint64_t tsc_lo, uint64_t tsc_hi);
/* Kernel code is walked on: answers where the turn is another one, or not known. */
void whose_in_kernel(struct whose *w, uint64_t tsc_lo, uint64_t tsc_hi);
/* User code begins: whether it is known in which turn (w->turn). */
bool whose_knows_turn(struct whose *w, uint64_t tsc_lo, uint64_t tsc_hi);
