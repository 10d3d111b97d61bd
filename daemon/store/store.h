/*
 * The snapshots that there are: ids, quotas, what lies on disk and what in memory. The loop's
 * thread only; the bytes themselves are written by job threads (store_file.h).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/store/entry.h"
#include "daemon/store/imagestore.h"
#include "daemon/store/store_file.h"

struct store;

struct store_limits {
	uint64_t max_use;     /* bytes on disk; the oldest snapshots go first */
	uint32_t max_entries; /* snapshots */
	uint32_t in_memory;   /* snapshots kept in memory when the disk is full; older ones go */
};

struct store_stats {
	uint64_t done, failed; /* ended in this run */
	uint64_t evicted;      /* removed to make room */
	uint64_t lost;	       /* kept in memory only, and gone */
	uint64_t bytes;	       /* on disk, without images: store_use */
	uint64_t recovered;    /* found at the start without their end being known */
};

/* Makes DIR (parents too), locks it against a second recorder, removes what a crash left half
 * written and lists the rest. 0, or -errno with one line in WHY (-EBUSY: another recorder has it).
 */
int store_new(const char *dir, const struct store_limits *limits, struct store **ret, char *why,
	      size_t why_size);
void store_free(struct store *s);
/* Other limits from now on: what is beyond them goes, the oldest first, STORE_TRIM at a time. True:
 * there is more of it, for store_trim, until that says no. */
#define STORE_TRIM 8u
bool store_use_limits(struct store *s, const struct store_limits *limits);
bool store_trim(struct store *s);
void store_freep(struct store **s);
/* For store_file.h; borrowed, good as long as the store. */
int store_dir_fd(const struct store *s);
/* So, too. */
struct imagestore *store_images(const struct store *s);

/* A new id "<realtime in base32>-<boot id, 4 digits>-<sequence>": unique, and greater (strcmp) than
 * all before it, even when the clock was set back. */
void store_new_id(struct store *s, uint64_t realtime_usec, const char *boot_id,
		  char ret[ENTRY_ID_SIZE]);
/* Lists a snapshot that begins; E->id is from store_new_id. 0 or -ENOMEM. */
int store_add(struct store *s, const struct entry *e);
/* The state of a listed snapshot has changed. */
void store_set_state(struct store *s, const char *id, enum entry_state state);
/* Removes old snapshots until BYTES fit that ID is about to write; they count from now on. 0 or
 * -EFBIG: they can never fit, beside what is pinned. */
int store_make_room(struct store *s, const char *id, uint64_t bytes);
/* Removes old snapshots until BYTES fit that ID is about to add to the image cache, or a quarter of
 * all that may be stored, or none is left that can go; what fits may be added then. How large
 * programs are is up to whoever runs them. */
void store_make_room_for_images(struct store *s, const char *id, uint64_t bytes);
/* A snapshot has ended; E replaces what was listed. BUNDLE_FD, REPORT_FD (taken over; -1: on disk
 * or not there): the bytes that could not be written to the disk. */
void store_end(struct store *s, const struct entry *e, int bundle_fd, int report_fd);

/* Forgets snapshot ID with its files. 0; -ENOENT; -EBUSY: it has not ended yet; -EPERM: it is
 * pinned. */
int store_delete(struct store *s, const char *id);

/* store_pin.c: what is pinned is not removed to make room, and is pinned again after a restart. */

struct store_pins {
	uint64_t bytes, max_bytes; /* on disk, with the images that they need */
	uint64_t left_bytes;	   /* for others */
	size_t n, max_n;	   /* snapshots */
};

/* What is pinned, and how much may be: half of the limits, as the rest has to hold what is new. */
void store_get_pins(const struct store *s, struct store_pins *ret);
/* Snapshot ID is pinned from now on, or no longer. 0, also when it was so already; -ENOENT; -EBUSY:
 * it has not ended yet; -ENODATA: what there is of it is in memory alone; -EDQUOT: with it too much
 * would be pinned, RET_PINS says how much; -errno. */
int store_pin(struct store *s, const char *id, bool pinned, struct store_pins *ret_pins);

/* The snapshot of ID, a unique prefix of it or "latest" (the newest that has ended). 0, -ENOENT or
 * STORE_AMBIGUOUS. *ret is good until the next call that changes the store. */
#define STORE_AMBIGUOUS 1
int store_find(const struct store *s, const char *id, const struct entry **ret);
/* Oldest first. */
size_t store_count(const struct store *s);
const struct entry *store_at(const struct store *s, size_t index);
/* Those of former runs whose bundle lies on the disk and was not decoded: *AT from 0 on; NULL:
 * there are no more. */
const struct entry *store_next_unfinished(const struct store *s, size_t *at);
/* Its bytes, read-only. 0; -ENOENT: it has no such part; -errno. */
int store_open(const struct store *s, const struct entry *e, enum store_part part, int *ret_fd,
	       uint64_t *ret_size);
/* The read-only file of the image cache that has image INDEX of its manifest; as store_open. */
int store_open_image(const struct store *s, const struct entry *e, uint32_t index, int *ret_fd,
		     uint64_t *ret_size);
/* Bytes on disk: of snapshots and of the images that they need. */
uint64_t store_use(const struct store *s);
const struct store_stats *store_get_stats(const struct store *s);
