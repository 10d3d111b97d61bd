/*
 * The files that were mapped executable. Each is opened when it is first seen, so that deleted,
 * upgraded and container files can still be read at a snapshot.
 *
 * The number of files is bounded: a file that neither the timeline's base nor its log names makes
 * room. A file that could not be opened stays listed with the reason in words.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "daemon/record/procs.h"
#include "proto/bundle/manifest.h"
#include "proto/perf/perfrecord.h"
#include "sideband/timeline/timeline.h"

/* Other images need places in a manifest, too. */
#define FILES_MAX (MANIFEST_MAX_IMAGES / 4 * 3)

struct files;

/* A file is known by device and inode (from records made of /proc/PID/maps, and for files without a
 * build id), or by build id and path, or by both once it was seen both ways. */
struct files_entry {
	uint32_t maj, min;	      /* as records say */
	uint64_t ino, ino_generation; /* ino 0: not known; generation 0: any */
	uint8_t build_id_size;	      /* 0: not known */
	uint8_t build_id[20];
	char *path;	     /* as the first record says */
	int fd;		     /* O_RDONLY, owned by struct files; -EBADF: missing */
	uint64_t size;	     /* when it was opened */
	const char *missing; /* why there is no fd; static text. Begins with "gone:" if the file can
				no longer be had. */
	uint32_t seen;	     /* how often it was seen while missing */
	uint32_t owner;	     /* a process that maps it, if possible one that is not excluded */
};
#define FILES_WHY_EXCLUDED "only processes map it that the recorder was told not to decode"

/* PROC is "/proc" (or a test's tree). Keeps at most MAX_OPEN descriptors and FILES_MAX files. */
int files_new(const char *proc, uint32_t max_open, struct files **ret);
/* Sets who knows more (both borrowed, may be NULL): TIMELINE which files are still named when room
 * is needed, PROCS the parent of a process that is gone. */
void files_use(struct files *f, const struct timeline *timeline, const struct procs *procs);
/* From now on another thread opens files, and files_take() takes them over; a thread that does not
 * come back is left behind. Without this call, files_see() opens files itself. 0 or -errno. */
int files_open_aside(struct files *f);
/* A descriptor that is readable when files_on_fd() should be called. Borrowed. */
int files_fd(const struct files *f);
void files_on_fd(struct files *f);
/* Takes over the files that have been opened. Does not wait. */
void files_take(struct files *f);
/* The same, for a snapshot: waits at most 200 ms for files that are being opened. */
void files_await(struct files *f);
/* The number of threads that hang in a file. */
unsigned int files_stuck(const struct files *f);
/* Does not wait for threads. */
void files_free(struct files *f);
void files_freep(struct files **f);
/* Handles a MMAP2 record: opens the file if the record maps code of a new file. A file that could
 * not be opened is tried again, ever less often, when others map it. A file that a record names by
 * build id may turn out to be another one (before Linux 6.11): its content is not read here, so
 * whoever decodes must compare. */
void files_see(struct files *f, const struct perfrecord *record);
/* Closes and forgets files that the timeline no longer names. Call it now and then, so that deleted
 * files do not take room on disk for ever. Takes as long as the timeline is large. */
void files_tidy(struct files *f);
/* Finds the entry of a timeline's FILE and its place in the list. NULL: none. */
const struct files_entry *files_find(const struct files *f, const struct space_file *file,
				     size_t *ret_index);
/* The entry at place INDEX, NULL: the place is free. Places are taken in the order in which files
 * are seen; a place that was freed is taken again. */
const struct files_entry *files_at(const struct files *f, size_t index);
/* The number of places, taken and free. */
size_t files_places(const struct files *f);
/* The number of files. */
size_t files_count(const struct files *f);
/* Files for which there was no memory or no place in the list. */
uint64_t files_dropped(const struct files *f);
