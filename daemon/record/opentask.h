/*
 * One file to open, with all that is needed for it: a task for a thread that can be left behind,
 * or to be done at once. Whoever maps a file can keep its mappings locked, and whoever asks for
 * them waits.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/base/aside.h"
#include "daemon/record/fileopen.h"

#define OPENTASK_PARENTS 3u

struct opentask {
	struct aside_task task;
	struct perfrecord record; /* its file name is .path */
	uint32_t parents[OPENTASK_PARENTS];
	size_t n_parents;
	bool look_only; /* there is no room for another open file */
	/* Answer: */
	struct fileopen_file file; /* fd -EBADF: could not be opened; whose name is known though
				      where ino is not 0 */
	const char *missing;	   /* static text */
	char path[];
};

/* The context of a task is what has been read of mounts. */
extern const struct aside_ops opentask_ops;

/* A copy of RECORD, a MMAP2; to be freed with opentask_free, before it was run also with free().
 * NULL: no memory. */
struct opentask *opentask_new(const struct perfrecord *record);
/* Closes the file, which who wants it takes by making its fd -EBADF. */
void opentask_free(struct opentask *t);
/* CONTEXT is opentask_ops'. May take for ever. */
void opentask_run(void *context, struct opentask *t);
