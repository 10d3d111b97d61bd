/*
 * A search for the thread of a stretch, and one way through it, as turns_decide.c and turns_cost.c
 * share them.
 */
#pragma once

#include "decoder/worker/turns/turns.h"

/* The first stretches of a search, each put into a turn. */
struct turns_way {
	struct turns_past past; /* turn: TURNS_NONE: not begun */
	uint32_t first;		/* the turn of the first stretch, */
	uint8_t choice;		/* its number among the candidates, */
	bool first_bad;		/* and whether the code does not fit there */
	uint64_t origins;	/* bits: the ways behind the first stretch that lead here */
};

struct turns_search {
	const struct turns_question *q;
	const struct turns_turn *turns;
	size_t n_turns;
	unsigned int empty;  /* cost of a turn without a stretch */
	unsigned int margin; /* how much dearer all other ways must be */
	/* The stretch at hand. */
	const struct turns_stretch *stretch;
	uint32_t candidates[TURNS_CANDIDATES];
	size_t n_candidates;
	bool choice; /* some way of the search has more than one candidate */
	struct turns_proof proofs[TURNS_CANDIDATES];
};

/* The cost of a turn without a stretch, as far as the turns seen so far tell. */
unsigned int turns_empty_cost(const struct turns *t);
/* The cost of the turns between FROM and TO (neither included), which would have no stretch. */
unsigned int turns_skip_cost(const struct turns_search *s, uint32_t from, uint32_t to);
/* On W, TURN was left so last. */
void turns_remember(struct turns_past *w, uint32_t turn, const struct turns_left *left);
/* W goes on with the stretch at hand in candidate C. */
void turns_go_on(const struct turns_search *s, struct turns_way *w, size_t c);
/* Whether the thread's turn before T, on another CPU, has been decoded to its end. */
bool turns_is_passed(const struct turns_search *s, const struct turns_turn *t);
