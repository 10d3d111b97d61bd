/*
 * Inside of shift.c (which shift is the better one, and is taken) and shift_spans.c (which shifts
 * suit most of a few samples).
 */
#pragma once

#include "decoder/worker/turns/shift.h"

/* Turns on either side of a sample that may explain it. */
#define SHIFT_MAX_TURNS 64u

/* Shifts lo to hi. */
struct span {
	int64_t lo, hi;
};

/* One more sample is suited from AT on, or one less. */
struct edge {
	int64_t at;
	int change;
};

struct shift_search {
	const struct shift_question *q;
	const struct shift_sample **few;
	size_t n_few;
	struct edge *edges;
	size_t n_edges, max_edges;
	struct span open; /* of the sample at hand, not added yet; lo > hi: none */
	unsigned int rounds;
};

/* The first turn of CPU that ends at TIME or later. */
size_t shift_first_until(const struct turns_cpu *cpu, uint64_t time);
/* The code that is mapped at IP in SPACE (may be NULL) at TIME; NULL: none. */
const struct space_mapping *shift_code(const struct space *space, uint64_t time, uint64_t ip);
/* What is mapped for THREAD at TIME is known. */
bool shift_is_known(const struct timeline *timeline, const struct timeline_thread *thread,
		    uint64_t time);
/* The shift that suits most of the few samples of S, and how much larger or smaller ones suit as
 * many; 0 and 0 where none is one of them. 0 or -ENOMEM. */
int shift_best(struct shift_search *s, int64_t *ret, uint64_t *ret_doubt);
