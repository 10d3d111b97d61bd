/*
 * The functions that ran: from an address in a context to a function's counters.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "decoder/worker/replay/replay.h"

/* More than that many functions share the one at index 0. */
#define FUNCTIONS_MAX (1u << 18)
/* An image without symbols is one function, of this offset. */
#define FUNCTIONS_WHOLE_IMAGE UINT64_MAX

/* What calls and returns change lies in one cache line. */
struct function {
	_Alignas(64) uint64_t calls;
	uint64_t self_insns, total_insns, self_ticks, total_ticks;
	/* While it is on the stack of the thread being counted: how often, and the thread's
	 * counters when the outermost of them began. */
	uint64_t began_insns, began_ticks;
	uint32_t active;
	uint32_t image;	  /* UINT32_MAX: unknown (index 0) */
	uint64_t offset;  /* in the file */
	const char *name; /* borrowed; NULL: no symbol */
	uint64_t address; /* where its start lay when it was first met */
};

/* Addresses [lo, hi) that one function has in a context: all around the one asked for that are its,
 * and no other function's within it. */
struct functions_span {
	uint64_t lo, hi;
	uint64_t entry; /* its first instruction, as far as it is mapped */
	uint32_t context;
	uint32_t function;
};

struct functions {
	const struct replay *replay; /* borrowed */
	struct function *list;	     /* list[0]: all that is unknown or too much */
	size_t n, capacity;
	uint32_t *slots;
	size_t n_slots;
	struct functions_span *cache; /* direct-mapped by address: of lines, and of larger areas */
	uint64_t refused;	      /* look-ups that went to 0 as the table was full */
};

/* 0 or -ENOMEM. */
int functions_init(struct functions *f, const struct replay *replay);
void functions_done(struct functions *f);
/* The span around ADDRESS (never empty). 0 or -ENOMEM. */
int functions_find(struct functions *f, uint32_t context, uint64_t address,
		   struct functions_span *ret);
