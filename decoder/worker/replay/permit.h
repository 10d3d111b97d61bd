/*
 * Of whom a decode may tell: of one user alone (decode_options.only_uid), and of nobody whom the
 * recorder was told to leave alone (struct manifest_process, excluded).
 *
 * Decoding itself goes through all that is there, as whose stretch it is can only be told from all;
 * what is not permitted is dropped before it is counted, listed or named.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/bundle/manifest.h"
#include "proto/decode_options.h"
#include "sideband/timeline/timeline.h"

struct permit_process {
	uint32_t pid;
	uint64_t since; /* perf ns; from then on it is certainly the user's; ABSENT: never */
	bool excluded;
};

struct permit {
	bool only; /* of one user alone */
	uint32_t uid;
	bool excluding; /* who is not in the list is excluded */
	/* Those of which there is something to say, in order of pid. */
	struct permit_process *processes;
	size_t n;
};

enum permit_answer { PERMIT_YES = 0, PERMIT_EXCLUDED, PERMIT_NOT };

/* P with neither is one that permits everything. 0 or -ENOMEM. */
int permit_init(struct permit *p, const struct manifest *m, const struct decode_options *options);
void permit_done(struct permit *p);
/* In all of these P may be NULL: everything is permitted. */
/* Is it one user alone of whom may be told? */
bool permit_is_limited(const struct permit *p);
/* May what THREAD did at TIME (perf ns; MANIFEST_ABSENT: nobody knows when) and later be told?
 * NULL: nobody knows whose it was. */
enum permit_answer permit_thread(const struct permit *p, const struct timeline_thread *thread,
				 uint64_t time);
/* May PROCESS be named at all? */
bool permit_process(const struct permit *p, const struct manifest_process *process);
/* So by its number; MANIFEST_ABSENT is nobody's. */
bool permit_pid(const struct permit *p, uint64_t pid);
/* An address of the kernel tells where the kernel is. */
bool permit_address(const struct permit *p, uint64_t address);
