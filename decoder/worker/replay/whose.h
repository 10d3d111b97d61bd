/*
 * Whose code a CPU's flow walks: its stretches, looked at ahead of it, and what was answered.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decoder/worker/replay/replay.h"
#include "decoder/worker/turns/scan.h"
#include "decoder/worker/turns/turns.h"

#define WHOSE_TRIALS 4u

/* A stretch that was looked at, and what codes would make of it. */
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

/* From OFFSET of the trace on. */
struct whose_answer {
	uint64_t offset;
	uint64_t since;					/* of its turn, perf ns; 0: not known */
	const struct timeline_thread *thread, *process; /* as in struct replay_stretch */
	uint64_t number;				/* of all answers of this CPU, from 1 */
	bool at_batch; /* it holds from the beginning of the batch behind the one that was made when
			* it was given */
};

struct whose {
	struct replay *replay;
	const struct tscmap *clock; /* of the CPU */
	size_t index;		    /* of the CPU in the manifest */
	uint64_t stop_ns;
	struct flow *flow;
	bool has_turns; /* something is known of who ran */
	/* The stretch that is asked for, or walked. */
	struct scan_stretch now;
	struct turns_stretch times;
	struct turns_state state;
	/* Those that were looked at, from that one on; none where there was no need. */
	struct scan *scan;
	struct whose_look *looks; /* a ring */
	size_t first, n_looks;
	struct whose_answer *answers; /* oldest first, at least one */
	size_t n_answers, max_answers;
	uint64_t n_numbers;
	struct { /* CONTEXT was THREAD's at that time, perf ns */
		const struct timeline_thread *thread;
		uint32_t context;
		uint64_t time;
	} known;
	uint32_t turn;		 /* of a trace with the kernel's code: */
	bool turn_known;	 /* that is the one that has the CPU now */
	uint64_t end;		 /* the CPU was stopped then, perf ns; 0: not known */
	bool begins;		 /* no stretch was decided yet */
	bool open;		 /* whose the last one is was not decided */
	bool waits;		 /* the stretch that is asked for is not decided yet */
	bool forced;		 /* no use in waiting */
	uint64_t waits_for;	 /* perf ns */
	uint32_t context;	 /* answered last, */
	struct replay_late late; /* until the end of its turn */
	int error;		 /* of what cannot return one */
};

/* 0 or -ENOMEM. */
int whose_init(struct whose *w, struct replay *r, size_t index, struct flow *flow);
void whose_done(struct whose *w);
/* Before the flow goes on: answers before number USED are not needed any more. FORCED: what is not
 * known now is not going to be. */
void whose_begin(struct whose *w, size_t used, bool forced);
/* Behind the trace's end. */
void whose_end(struct whose *w);
/* For the flow's context function. */
uint64_t whose_ask(struct whose *w, uint64_t ip, uint64_t tsc_lo, uint64_t tsc_hi);
/* For its code function. */
int whose_code(const struct replay *r, uint32_t context, uint64_t ip, struct flow_code *ret);
