/*
 * Says which processes a report may tell of: with decode_options.only_uid those of one user alone,
 * and never those that the recorder was told to leave alone (struct manifest_process, excluded).
 *
 * Decoding goes through the whole bundle, as the thread of a stretch can only be told from all
 * processes. A process that is not permitted is dropped before anything of it is counted, listed or
 * named.
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
	uint64_t since; /* perf ns: certainly the user's from then on; ABSENT: never */
	bool excluded;
};

struct permit {
	bool only; /* one user's processes alone */
	uint32_t uid;
	bool excluding; /* processes that are not in the list are excluded */
	/* The manifest's processes, in order of pid. */
	struct permit_process *processes;
	size_t n;
};

enum permit_answer { PERMIT_YES = 0, PERMIT_EXCLUDED, PERMIT_NOT };

/* Without a user and without excluded processes, P permits everything. 0 or -ENOMEM. */
int permit_init(struct permit *p, const struct manifest *m, const struct decode_options *options);
void permit_done(struct permit *p);
/* In all of these P may be NULL: everything is permitted. */

/* Whether the report may tell of one user alone. */
bool permit_is_limited(const struct permit *p);
/* Whether the report may tell what THREAD (NULL: unknown) did at TIME (perf ns; MANIFEST_ABSENT:
 * unknown) and later. */
enum permit_answer permit_thread(const struct permit *p, const struct timeline_thread *thread,
				 uint64_t time);
/* Whether PROCESS may be named at all. */
bool permit_process(const struct permit *p, const struct manifest_process *process);
/* The same by its number; MANIFEST_ABSENT is no process'. */
bool permit_pid(const struct permit *p, uint64_t pid);
/* Whether ADDRESS may be written: an address of the kernel tells where the kernel is. */
bool permit_address(const struct permit *p, uint64_t address);
