/*
 * Finds the word that a user may have meant.
 */
#pragma once

#include <stddef.h>

/* Longer words are not compared. */
#define NEAREST_MAX 64u

/* The candidate, so far, that is nearest to a word. */
struct nearest {
	const char *word;  /* borrowed */
	const char *found; /* borrowed; NULL: none is near */
	unsigned distance;
};

/* WORD is what the user wrote. */
void nearest_init(struct nearest *n, const char *word);
/* Compares CANDIDATE. Letters that were left out, added, changed, or written in the wrong order
 * count one each, a third of the word's letters at most; a candidate that begins with the word
 * counts one. The first of several that are equally near stays. */
void nearest_try(struct nearest *n, const char *candidate);
/* " (did you mean WORD?)" with PREFIX before the word, or "" if no candidate is near. The text is
 * in BUFFER or static. */
const char *nearest_text(const struct nearest *n, const char *prefix, char *buffer, size_t size);
