/*
 * When something went wrong with the recording: a bounded list, for the notes of snapshots.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "proto/bundle/manifest.h"

/* The newest spans of each kind, reason and CPU are kept apart; older ones are joined. */
#define FAULTS_APART 8u

/* A value; all zero is an empty list. */
struct faults {
	struct manifest_note *list; /* owned; kind and why are borrowed, static texts; the oldest
				     * first */
	size_t n, capacity;
	uint64_t unlisted; /* what there was no memory for */
};

void faults_done(struct faults *f);
/* Adds NOTE, whose kind and why are static texts. Notes come in order of until_ns. */
void faults_add(struct faults *f, const struct manifest_note *note);
/* Adds the list to M, the newest first; a last note counts what found no room. 0 or -ENOMEM. */
int faults_tell(const struct faults *f, struct manifest *m);
