/*
 * Inside of turns_decide.c and turns_cost.c: a search for whose a stretch is, and one way through
 * it.
 */
#pragma once

#include "decoder/worker/turns.h"

#define TURNS_MAX_LEFTS 6u /* turns of which a way remembers where they were left */

struct turns_place {
	uint32_t turn;
	struct turns_left left;
};

/* The first stretches of a search, each put into a turn. */
struct turns_way {
	unsigned int cost;
	uint32_t turn;	/* of the newest stretch; TURNS_NONE: not begun */
	uint32_t first; /* of the first one, */
	unsigned int first_cost;
	bool first_bad; /* whose code does not fit there */
	uint32_t n_lefts;
	struct turns_place lefts[TURNS_MAX_LEFTS]; /* oldest first */
};

struct turns_search {
	const struct turns_question *q;
	const struct turns_turn *turns;
	size_t n_turns;
	unsigned int empty;
	/* The stretch at hand. */
	const struct turns_stretch *stretch;
	uint32_t candidates[TURNS_CANDIDATES];
	size_t n_candidates;
	bool choice; /* some way of the search has one */
	struct turns_proof proofs[TURNS_CANDIDATES];
};

/* What a turn without a stretch costs, as far as the turns seen so far tell. */
unsigned int turns_empty_cost(const struct turns *t);
/* What the turns between FROM and TO (neither included) cost that are without one. */
unsigned int turns_skip_cost(const struct turns_search *s, uint32_t from, uint32_t to);
/* W goes on with the stretch at hand in candidate C. */
void turns_go_on(const struct turns_search *s, struct turns_way *w, size_t c);
/* Whether the thread's turn before T, on another CPU, has been decoded to its end. */
bool turns_is_passed(const struct turns_search *s, const struct turns_turn *t);
