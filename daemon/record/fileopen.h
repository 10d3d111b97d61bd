/*
 * The file that a MMAP2 record means -> fd. A file is only ever opened, never mapped to be read and
 * never parsed here.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "capture/proc/mapquery.h"
#include "proto/perf/perfrecord.h"

struct mounts;

/* Reasons that begin so mean that process and file were gone. */
#define FILEOPEN_GONE "gone:"

struct fileopen_file {
	int fd;
	uint64_t size;
	uint32_t maj,
		min; /* as records name it that are made from /proc/PID/maps; ino 0: unknown */
	uint64_t ino;
};

/* What is known of a record's file before it is opened. */
struct fileopen {
	struct mounts *mounts; /* borrowed */
	const char *proc;      /* borrowed */
	const struct perfrecord *record;
	int dir;     /* /proc/PID: of this process even if its pid is used again; -errno: gone */
	bool mapped; /* MAP is still the mapping of the record, and may be touched */
	struct mapquery map;
	struct fileopen_file file; /* that was opened to look at it; fd -EBADF: none, or taken */
	const char *missing;	   /* the best reason so far; static text */
};

/* Whether the record names its file by a build id; else by device and inode. */
bool fileopen_by_build_id(const struct perfrecord *r);
/* Asks the process for its mapping. RECORD must live as long as LOOK. */
void fileopen_look(struct mounts *mounts, const char *proc, const struct perfrecord *record,
		   struct fileopen *ret);
void fileopen_done(struct fileopen *look);
/* Opens it: by the mapping, else in the root of the process; where that is gone, in the roots of
 * the N processes OTHERS, which may have the same; else in our own. 0: *ret, whose fd is the
 * caller's. Else -errno, and look->missing says why in words. */
int fileopen_open(struct fileopen *look, const uint32_t *others, size_t n,
		  struct fileopen_file *ret);
