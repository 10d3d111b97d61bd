/*
 * A search for the thread of a stretch, and one way through it, as turns_decide.c and turns_enter.c
 * share them.
 */
#pragma once

#include "decoder/worker/turns/turns.h"

/* The first stretches of a search, each put into a turn. */
struct turns_way {
	struct turns_past past;
	uint64_t origins; /* bits: the ways behind the first stretch that lead here */
};

struct turns_search {
	const struct turns_question *q;
	const struct turns_turn *turns;
	size_t n_turns;
	bool choice; /* more than one thread is possible by time: evidence is looked for */
	bool lax;    /* evidence contradicts itself: where threads left user code does not count */
	/* The stretch at hand. */
	const struct turns_stretch *stretch;
	uint32_t candidates[TURNS_CANDIDATES];
	size_t n_candidates;
	struct turns_proof proofs[TURNS_CANDIDATES];
	bool inside[TURNS_CANDIDATES]; /* no handler of that thread begins where the stretch does */
};

/* Operations on ways, for turns_decide.c and turns.c: */

/* On W, TURN was left so last. */
void turns_remember(struct turns_past *w, uint32_t turn, const struct turns_left *left);
/* W knows nothing of TURN by itself any more. */
void turns_drop(struct turns_past *w, uint32_t turn);
/* W knows nothing of turns from TURN on any more. */
void turns_doubt(struct turns_past *w, uint32_t turn);
/* A and B have the same turn: A becomes both, and forgets what they do not agree on. */
void turns_join(struct turns_past *a, const struct turns_past *b);
bool turns_is_same_left(const struct turns_left *a, const struct turns_left *b);

/* Finds where no handler begins, for all N ways together. */
void turns_find_inside(struct turns_search *s, const struct turns_way *ways, size_t n);
/* Whether W can go on with the stretch at hand in candidate C. */
bool turns_may_go_on(const struct turns_search *s, const struct turns_way *w, size_t c);
void turns_go_on(const struct turns_search *s, struct turns_way *w, size_t c);
/* Whether the thread's turn before T, on another CPU, has been decoded to its end. */
bool turns_is_passed(const struct turns_search *s, const struct turns_turn *t);
