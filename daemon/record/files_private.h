/*
 * Inside of files.h: the list of files (files_list.c), and how one file is opened (files_open.c).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/base/aside.h"
#include "daemon/record/files.h"

/* --- Opening one file --- */

/* A file is opened but never mapped and never parsed. A process that maps the file can keep its
 * mappings locked, and whoever asks for them waits: so opening is a task for a thread that can be
 * left behind. It can also be run at once. */

#define OPENTASK_PARENTS 3u

struct opentask_file {
	int fd; /* -EBADF: could not be opened; the file is known nevertheless if ino is not 0 */
	uint64_t size;
	uint32_t maj, min; /* as in records that are made of /proc/PID/maps */
	uint64_t ino;	   /* 0: not known */
};

struct opentask {
	struct aside_task task;	  /* first */
	struct perfrecord record; /* a MMAP2; its file name is .path */
	/* Processes that may have the same root as the one that mapped the file. */
	uint32_t parents[OPENTASK_PARENTS];
	size_t n_parents;
	bool look_only; /* find out which file it is, as there is no room for another open one */
	/* Results: */
	struct opentask_file file;
	const char *missing; /* why there is no fd; static text */
	char path[];
};

/* A task's context has the mounts that were read, and where /proc is. */
extern const struct aside_ops opentask_ops;

/* Copies RECORD, a MMAP2. NULL: no memory. */
struct opentask *opentask_new(const struct perfrecord *record);
/* Closes the file. Whoever takes the file over sets its fd to -EBADF. */
void opentask_free(struct opentask *t);
/* Opens the file. CONTEXT is made by opentask_ops. May never return. */
void opentask_run(void *context, struct opentask *t);
/* Whether record R names its file by build id; else it does so by device and inode. */
bool opentask_by_build_id(const struct perfrecord *r);

/* --- The list --- */

/* A place for each file, found by device and inode, by build id and path, or by build id. */

#define FILELIST_BUCKETS 16384u /* power of two */

enum filelist_index { FILELIST_BY_INODE, FILELIST_BY_PATH, FILELIST_BY_BUILD, FILELIST_N_INDEXES };

struct filelist_place {
	struct files_entry entry; /* path NULL: the place is free */
	/* The next place in the bucket, plus 1; 0: last. BY_INODE of a free place: the next free
	 * one. */
	uint32_t next[FILELIST_N_INDEXES];
	uint32_t named;		/* the last sweep in which the timeline named the file */
	uint32_t ticket;	/* of the file; another file in this place has another one */
	bool asked;		/* a task to open it is under way */
	struct opentask *again; /* the task to run next if that one fails; owned; may be NULL */
};

struct filelist {
	struct filelist_place *places;
	uint32_t n_places, capacity; /* taken and free ones */
	uint32_t n;		     /* taken ones */
	uint32_t free;		     /* the first free place, plus 1 */
	uint32_t buckets[FILELIST_N_INDEXES][FILELIST_BUCKETS];
};

/* Closes all files. A list that is all zero is empty. */
void filelist_done(struct filelist *l);
/* The newest place whose entry equals KEY in INDEX, NULL: none. Generation 0 equals any. */
struct filelist_place *filelist_search(const struct filelist *l, const struct files_entry *key,
				       enum filelist_index index);
/* By build id and path if KEY has a build id, else by device and inode. */
struct filelist_place *filelist_search_key(const struct filelist *l, const struct files_entry *key);
/* Adds a copy of KEY without an fd. NULL: no memory, or FILES_MAX. Other places may move. */
struct filelist_place *filelist_add(struct filelist *l, const struct files_entry *key);
/* Closes the file and frees the place. */
void filelist_remove(struct filelist *l, struct filelist_place *p);
/* Adds to an entry: device and inode, unless they are known; the build id of KEY. */
void filelist_learn_inode(struct filelist *l, struct filelist_place *p, uint32_t maj, uint32_t min,
			  uint64_t ino);
void filelist_learn_build(struct filelist *l, struct filelist_place *p,
			  const struct files_entry *key);
/* An open file with the build id of KEY; NULL: none among the first few. */
const struct files_entry *filelist_copy(const struct filelist *l, const struct files_entry *key);
