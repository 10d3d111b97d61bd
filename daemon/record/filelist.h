/*
 * The list behind struct files: a place for each file, found by device and inode, by build id and
 * path, by build id alone. Knows nothing of opening. Called by files.c.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/record/files.h"

#define FILELIST_BUCKETS 16384u /* power of two */

enum filelist_index { FILELIST_BY_INODE, FILELIST_BY_PATH, FILELIST_BY_BUILD, FILELIST_N_INDEXES };

struct opentask;

struct filelist_place {
	struct files_entry entry;	   /* path NULL: free */
	uint32_t next[FILELIST_N_INDEXES]; /* in the bucket, and 1; 0: last; BY_INODE: next free
					      place */
	uint32_t named;			   /* the sweep in which the timeline named it */
	uint32_t ticket;		   /* files.c's: which of all that had this place */
	bool asked;			   /* somebody is opening it */
	struct opentask *again;		   /* the next to be asked then; owned; NULL: nobody */
};

struct filelist {
	struct filelist_place *places;
	uint32_t n_places, capacity; /* taken and free ones */
	uint32_t n;		     /* taken ones */
	uint32_t free;		     /* place, and 1 */
	uint32_t buckets[FILELIST_N_INDEXES][FILELIST_BUCKETS];
};

/* Closes all fds. A list that is all zero is empty. */
void filelist_done(struct filelist *l);
/* The one like KEY that was found last; NULL: none. A generation of 0 is like any. */
struct filelist_place *filelist_search(const struct filelist *l, const struct files_entry *key,
				       enum filelist_index index);
/* By build id and path where KEY has a build id, else by device and inode. */
struct filelist_place *filelist_search_key(const struct filelist *l, const struct files_entry *key);
/* Another one with KEY (its path is copied), without an fd. NULL: no memory, or FILES_MAX. Places
 * that were given before may have moved. */
struct filelist_place *filelist_add(struct filelist *l, const struct files_entry *key);
/* Closes its fd. */
void filelist_remove(struct filelist *l, struct filelist_place *p);
/* What is known of it besides: device and inode, unless they are known; its build id. */
void filelist_learn_inode(struct filelist *l, struct filelist_place *p, uint32_t maj, uint32_t min,
			  uint64_t ino);
void filelist_learn_build(struct filelist *l, struct filelist_place *p,
			  const struct files_entry *key);
/* An open file of the build of KEY; NULL: none among the first few. */
const struct files_entry *filelist_copy(const struct filelist *l, const struct files_entry *key);
