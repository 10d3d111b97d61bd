/*
 * Decides which thread's code a CPU's flow walks, at the beginning of each stretch of user code.
 * Looks at the stretches behind it ahead of the flow, and keeps the answers for the walk.
 *
 * whose.c decides, whose_code.c tells what code makes of the packets, whose_kernel.c follows the
 * thread switches that are seen in the kernel's code.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decoder/worker/replay/replay.h"
#include "decoder/worker/turns/scan.h"
#include "decoder/worker/turns/turns.h"

#define WHOSE_TRIALS 4u

/* A stretch that was looked at ahead, and what the code of some contexts would make of it. */
struct whose_look {
	struct scan_stretch seen;
	struct event_reader reader; /* of the packets behind its beginning */
	struct turns_stretch times;
	struct {
		uint32_t context;
		struct flow_trial result;
	} trials[WHOSE_TRIALS];
	size_t n_trials;
};

/* The thread from OFFSET of the trace on. */
struct whose_answer {
	uint64_t offset;
	uint64_t since;					/* of the turn, perf ns; 0: not known */
	const struct timeline_thread *thread, *process; /* as in struct replay_stretch */
	struct replay_candidates candidates;
	uint64_t number; /* among this CPU's answers, from 1 */
	/* The answer holds from the beginning of the batch behind the one that was being made when
	 * the answer was given. */
	bool at_batch;
};

struct whose {
	struct replay *replay;
	const struct tscmap *clock; /* of the CPU */
	size_t index;		    /* of the CPU in the manifest */
	uint64_t stop_ns;
	struct flow *flow;
	bool has_turns; /* the sideband says something about who ran */
	/* The stretch that is asked for, or walked. */
	struct scan_stretch now;
	struct turns_stretch times;
	struct turns_state state;
	/* The stretches that were looked at, beginning with that one; none where there was no need.
	 */
	struct scan *scan;
	struct whose_look *looks; /* a ring of TURNS_WINDOW */
	size_t first, n_looks;
	struct whose_answer *answers; /* oldest first, at least one */
	size_t n_answers, max_answers;
	uint64_t n_numbers; /* answers given so far */
	struct {	    /* CONTEXT was THREAD's at TIME, perf ns */
		const struct timeline_thread *thread;
		uint32_t context;
		uint64_t time;
	} known;
	/* Where the kernel's code is in the trace: */
	uint32_t turn;		 /* the turn that has the CPU now, */
	bool turn_known;	 /* if it is known */
	bool begins;		 /* no stretch was decided yet */
	bool open;		 /* the thread of the last stretch was not decided */
	bool waits;		 /* the stretch that is asked for is not decided yet */
	bool forced;		 /* waiting is of no use */
	uint64_t waits_for;	 /* perf ns */
	uint32_t context;	 /* answered last */
	struct replay_late late; /* of that context, until the end of its turn */
	int error;		 /* of functions that cannot return one */
};

/* 0 or -ENOMEM. */
int whose_init(struct whose *w, struct replay *r, size_t index, struct flow *flow);
void whose_done(struct whose *w);
/* Before the flow goes on. The first USED answers are dropped. FORCED: what is not known now will
 * not be known later either. */
void whose_begin(struct whose *w, size_t used, bool forced);
/* Behind the trace's end. */
void whose_end(struct whose *w);
/* For the flow's context function. */
uint64_t whose_ask(struct whose *w, uint64_t ip, uint64_t tsc_lo, uint64_t tsc_hi);
/* For the flow's code function. */
int whose_code(const struct replay *r, uint32_t context, uint64_t ip, struct flow_code *ret);

/* --- Between the three files --- */

/* An instant lies within. */
struct whose_time {
	uint64_t lo, hi; /* perf ns */
};

/* Stretch number I, where 0 is the one that is asked for, looking ahead as needed; NULL: there is
 * none. */
struct whose_look *whose_look_at(struct whose *w, size_t i);
/* The perf time of TSC; where nothing is known the end of the recording. */
uint64_t whose_ns(const struct whose *w, uint64_t tsc);
/* The part of the time within which STRETCH may have begun that lies in turns FIRST to LAST. */
struct whose_time whose_enter_time(const struct whose *w, const struct scan_stretch *stretch,
				   uint32_t first, uint32_t last);
/* Adds ANSWER behind the answers that are there. 0 or -ENOMEM. */
int whose_add_answer(struct whose *w, const struct whose_answer *answer);

/* The context of THREAD's process for the stretch that is asked for, which begins within WHEN. */
uint32_t whose_context(struct whose *w, const struct timeline_thread *thread,
		       struct whose_time when);
/* As in struct turns_question. */
void whose_proof(void *userdata, size_t i, uint32_t turn, struct turns_proof *ret);
bool whose_alike(void *userdata, uint32_t a, uint32_t b, uint64_t ip);
/* Where a thread in CONTEXT enters again that left user code by the instruction at IP. */
struct turns_left whose_left(const struct replay *r, uint32_t context, uint64_t ip);

/* A switch was seen: answers, for the next batch. */
void whose_switched(struct whose *w, uint64_t tsc_lo, uint64_t tsc_hi);
/* Kernel code is walked on: answers where the turn is another one, or not known. */
void whose_in_kernel(struct whose *w, uint64_t tsc_lo, uint64_t tsc_hi);
/* User code begins: whether it is known in which turn (w->turn). */
bool whose_knows_turn(struct whose *w, uint64_t tsc_lo, uint64_t tsc_hi);
