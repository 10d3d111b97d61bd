/*
 * The calls and returns of each thread of a truth directory, out of the instructions that executed.
 *
 * Zydis says of the last instruction of each block whether it calls or returns. A plain shadow
 * stack joins them: a near call pushes the address behind it, a near return to that address pops
 * it. Nothing else changes the stack: a tail call, a PLT entry and an exception are jumps.
 *
 * A return that goes elsewhere is odd. If its target is further down, the frames above were left
 * without a return; otherwise nothing is known of the stack any more. Such frames have no OTHER. If
 * several frames have the same return address, it is not known which one was meant, and none of
 * them is joined. Frames that an exception left stay on the stack; one of a recursive function can
 * be taken for another one.
 *
 * Shares no code with the decoder. For test programs: out of memory ends the process.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/support/truth_walk.h"

#define TRUTH_STACK_NONE UINT32_MAX

/* A near call or return that executed. */
struct truth_step {
	uint64_t from, to; /* TO 0: not known */
	uint64_t back;	   /* a call: the address behind it */
	uint64_t tsc;
	uint64_t own;	 /* a call: the instructions that the called function executed itself */
	uint32_t other;	 /* of a call, the return; of a return, the call; TRUTH_STACK_NONE */
	uint32_t around; /* a call: the call whose frame it is made in; TRUTH_STACK_NONE */
	bool call;
	bool odd;   /* a return went elsewhere, or nothing is known behind the step */
	bool open;  /* a call: the end of its frame was not seen */
	bool mixed; /* a call: OWN lacks instructions, which were counted for frames above it */
};

/* User code without an entry into the kernel. */
struct truth_stretch {
	uint32_t cpu;
	uint64_t begin, end; /* TSC; of the entry and of the last instruction */
	size_t steps;	     /* before it */
	bool cut;	     /* something that executed before it is not known */
};

struct truth_life {
	struct truth_thread who;
	struct truth_step *steps;
	size_t n_steps, steps_room;
	struct truth_stretch *stretches;
	size_t n_stretches, stretches_room;
};

struct truth_stack {
	struct truth_life *threads; /* those that executed anything */
	size_t n, room;
};

/* Arguments and result are those of truth_walk(). Call truth_stack_done() in every case. */
int truth_stack_read(const char *dir, const struct truth_span *spans, size_t n,
		     struct truth_stack *ret, char **ret_bad);
void truth_stack_done(struct truth_stack *s);
