/*
 * The files that were mapped executable, each opened when it was first seen, so that deleted,
 * upgraded and container files can still be read at a snapshot. Bounded; what could not be opened
 * stays in the list with the reason in words.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "proto/perfrecord.h"

struct files;

struct files_entry {
	uint32_t maj, min; /* of the record; where that had a build id: of the opened file */
	uint64_t ino, ino_generation;
	uint8_t build_id_size; /* 0: the record named device and inode */
	uint8_t build_id[20];
	char *path;	     /* as the record names it */
	int fd;		     /* O_RDONLY, owned by struct files for all its life; -EBADF: missing */
	uint64_t size;	     /* when it was opened */
	const char *missing; /* why there is no fd; static text */
	uint32_t tries;
};

/* PROC is "/proc" (or a test's tree); at most MAX_OPEN fds. */
int files_new(const char *proc, uint32_t max_open, struct files **ret);
void files_free(struct files *f);
void files_freep(struct files **f);
/* A MMAP2 record: opens its file when it maps code of a file that is new. Nothing is allocated for
 * a file that is known. What a record names by a build id may turn out to be another file: nobody
 * looks into it here, who decodes must compare. */
void files_see(struct files *f, const struct perfrecord *record);
/* In the order in which they were seen; NULL beyond the last. */
const struct files_entry *files_at(const struct files *f, size_t index);
size_t files_count(const struct files *f);
/* Files for which there was no memory or no place in the list. */
uint64_t files_dropped(const struct files *f);
