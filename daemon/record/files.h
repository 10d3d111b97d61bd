/*
 * The files that were mapped executable, each opened when it was first seen, so that deleted,
 * upgraded and container files can still be read at a snapshot. Bounded: what neither the
 * timeline's base nor its log names makes room. What could not be opened stays in the list with the
 * reason in words.
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

/* A file is known by device and inode (of records made from /proc/PID/maps, and of files without
 * a build id), or by build id and path, or, once it was seen both ways, by both. */
struct files_entry {
	uint32_t maj, min;	      /* as records name it */
	uint64_t ino, ino_generation; /* ino 0: not known; generation 0: of any */
	uint8_t build_id_size;	      /* 0: not known */
	uint8_t build_id[20];
	char *path;	     /* as the first record names it */
	int fd;		     /* O_RDONLY, owned by struct files; -EBADF: missing */
	uint64_t size;	     /* when it was opened */
	const char *missing; /* why there is no fd; static text; "gone:" before it where nobody can
				have it any more */
	uint32_t seen;	     /* sightings without an fd */
	uint32_t owner;	     /* a process that maps it, one that is not excluded if there is one */
};
#define FILES_WHY_EXCLUDED "only processes map it that the recorder was told not to decode"

/* PROC is "/proc" (or a test's tree); at most MAX_OPEN fds, and FILES_MAX files. */
int files_new(const char *proc, uint32_t max_open, struct files **ret);
/* From now on TIMELINE (NULL: nobody) says which files are still named when room is needed, and
 * PROCS (may be NULL) who the parent of a process was that is gone. Both borrowed. */
void files_use(struct files *f, const struct timeline *timeline, const struct procs *procs);
/* From now on files are opened by a thread that is left behind when one takes for ever, and are
 * there when files_take was called after it; else within files_see. 0 or -errno. */
int files_open_aside(struct files *f);
/* Then: readable when files_on_fd should be called; borrowed. */
int files_fd(const struct files *f);
void files_on_fd(struct files *f);
/* Takes over what has been opened. Waits for nothing. */
void files_take(struct files *f);
/* So, and waits for what is being opened, but at most 200 ms: for a snapshot. */
void files_await(struct files *f);
/* Threads that stand in a file. */
unsigned int files_stuck(const struct files *f);
/* Waits for no thread. */
void files_free(struct files *f);
void files_freep(struct files **f);
/* A MMAP2 record: opens its file when it maps code of a file that is new. Nothing is allocated for
 * a file that is known. A file that could not be opened is tried again, ever less often, as others
 * map it. What a record names by a build id may turn out to be another file (before Linux 6.11):
 * nobody looks into it here, who decodes must compare. */
void files_see(struct files *f, const struct perfrecord *record);
/* Forgets, and closes, what the timeline does not name any more: now and then, so that deleted
 * files do not take room on their disks for ever. Takes as long as the timeline is large. */
void files_tidy(struct files *f);
/* The entry that FILE of a timeline means; NULL: none. Its INDEX among the places of the list. */
const struct files_entry *files_find(const struct files *f, const struct space_file *file,
				     size_t *ret_index);
/* By place; NULL: none there. Places are given in the order in which files were seen, and again
 * when a file made room. */
const struct files_entry *files_at(const struct files *f, size_t index);
/* Places, taken ones and free ones. */
size_t files_places(const struct files *f);
size_t files_count(const struct files *f);
/* Files for which there was no memory or no place in the list. */
uint64_t files_dropped(const struct files *f);
