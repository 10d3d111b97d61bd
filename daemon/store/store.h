/*
 * The list of stored snapshots: ids, quotas, and which bytes are on disk and which in memory.
 *
 * This room keeps snapshots. store.c is the list, and opens what it lists. store_room.c decides
 * what is removed when the limits are reached, and what is pinned. store_file.c writes and reads
 * the files of one snapshot and scans the state directory at start. imagestore.c is the host's
 * image cache and knows which snapshot needs which file of the cache; imagefile.c adds bytes to
 * one file of the cache. fdstore.c passes snapshots that are not decoded yet to the next run, by
 * way of systemd. entry.c is what is known of one snapshot, as JSON.
 *
 * Decisions that govern the room:
 * - The list belongs to the loop's thread. Files are written by jobs' threads, which get nothing of
 *   the store but its directory's descriptor and the image cache, which has a lock.
 * - Every file is published by rename: it is complete or does not exist. A file that a crash leaves
 *   under a temporary name is removed at the next start.
 * - What is announced of a snapshot is on the disk first, the names of its files included, or the
 *   announcement says that it is in memory only.
 * - A snapshot whose job did not end before the recorder did is listed as failed, as its bundle may
 *   be all that is left of an incident; as done, if its report was published.
 * - The store grows up to its limits and counts what it removes. The oldest snapshots are removed
 *   first; a pinned one and one that has not ended never are. At most half of each limit can be
 *   pinned.
 * - A snapshot that the disk did not take stays as files in memory, the newest few of them.
 * - A bundle lacks the bytes of programs. They are stored once a host in the image cache, compared
 *   byte for byte with what the cache has under the same name, as a build id can be forged. A file
 *   of the cache that no snapshot needs any more is removed.
 * - The loop never waits for a busy disk: files are given back in threads of their own.
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
	uint64_t max_use;     /* bytes on disk, image cache included */
	uint32_t max_entries; /* snapshots */
	uint32_t in_memory;   /* snapshots that may be kept in memory when the disk is full */
};

struct store_stats {
	uint64_t done, failed; /* snapshots that ended in this run */
	uint64_t evicted;      /* removed to make room */
	uint64_t lost;	       /* kept in memory only, and removed */
	uint64_t bytes;	       /* on disk, without images; store_use() counts both */
	uint64_t recovered;    /* found at the start, not ended */
};

/* Makes DIR and its missing parents, locks DIR against a second recorder, removes what a crash left
 * half written, and lists the snapshots found. Waits a second for the lock of a recorder that was
 * just killed. 0; -EBUSY: another recorder has DIR; or -errno; on failure WHY is one line. */
int store_new(const char *dir, const struct store_limits *limits, struct store **ret, char *why,
	      size_t why_size);
void store_free(struct store *s);
void store_freep(struct store **s);
/* Sets other limits and removes the oldest snapshots beyond them, at most STORE_TRIM. Returns
 * whether some remain to be removed: then call store_trim() until it returns false. */
#define STORE_TRIM 8u
bool store_use_limits(struct store *s, const struct store_limits *limits);
bool store_trim(struct store *s);
/* The state directory, for the functions of store_file.h. Borrowed; valid as long as the store. */
int store_dir_fd(const struct store *s);
/* The image cache. Borrowed; valid as long as the store. */
struct imagestore *store_images(const struct store *s);

/* Makes a new id "<realtime in base32>-<boot id, 4 digits>-<sequence>". It is unique and greater
 * (strcmp) than all ids before it, even when the clock was set back. */
void store_new_id(struct store *s, uint64_t realtime_usec, const char *boot_id,
		  char ret[ENTRY_ID_SIZE]);
/* Lists a new snapshot. E->id is from store_new_id(). 0 or -ENOMEM. */
int store_add(struct store *s, const struct entry *e);
/* Sets the state of snapshot ID, if it is listed. */
void store_set_state(struct store *s, const char *id, enum entry_state state);
/* Removes old snapshots until there is room for BYTES that ID is about to write; BYTES count from
 * now on. 0, or -EFBIG: there can be no such room beside what is pinned. */
int store_make_room(struct store *s, const char *id, uint64_t bytes);
/*
 * The same for BYTES that ID is about to add to the image cache. Stops when there is room for
 * BYTES, when there is room for a quarter of all that may be stored, or when no snapshot can be
 * removed; what fits then may be added. The quarter is there because whoever runs a program decides
 * how large the program is.
 */
void store_make_room_for_images(struct store *s, const char *id, uint64_t bytes);
/* Snapshot E->id has ended; E replaces what was listed. BUNDLE_FD and REPORT_FD (taken over) are
 * memory files with bytes that could not be written to disk; -1: on disk or absent. */
void store_end(struct store *s, const struct entry *e, int bundle_fd, int report_fd);

/* Removes snapshot ID with its files. 0; -ENOENT; -EBUSY: it has not ended; -EPERM: it is pinned.
 */
int store_delete(struct store *s, const char *id);

/* A pinned snapshot is not removed to make room and stays pinned after a restart. */

struct store_pins {
	uint64_t bytes, max_bytes; /* on disk, with the images that they need */
	uint64_t left_bytes;	   /* for snapshots that are not pinned */
	size_t n, max_n;	   /* snapshots */
};

/* Tells how much is pinned and how much may be: half of each limit, as the rest is for new ones. */
void store_get_pins(const struct store *s, struct store_pins *ret);
/* Pins snapshot ID, or no longer does. 0, also when nothing changes; -ENOENT; -EBUSY: it has not
 * ended; -ENODATA: some of it is in memory only; -EDQUOT: too much would be pinned, RET_PINS says
 * how much; or -errno. */
int store_pin(struct store *s, const char *id, bool pinned, struct store_pins *ret_pins);

/* Finds the snapshot of ID, of a unique prefix, or of "latest" (the newest that has ended). 0,
 * -ENOENT or STORE_AMBIGUOUS. *ret is valid until the next call that changes the store. */
#define STORE_AMBIGUOUS 1
int store_find(const struct store *s, const char *id, const struct entry **ret);
/* Snapshots by index, the oldest first. store_index() is the index of the first one whose id is ID
 * or greater, store_count() if there is none. */
size_t store_count(const struct store *s);
size_t store_index(const struct store *s, const char *id);
const struct entry *store_at(const struct store *s, size_t index);
/* Returns the next snapshot of a former run whose bundle is on disk and was not decoded, NULL: no
 * more. *AT begins as 0. */
const struct entry *store_next_unfinished(const struct store *s, size_t *at);
/* Opens PART of snapshot E read-only. 0; -ENOENT: there is no such part; -EBADMSG: something else
 * has its name; or -errno. */
int store_open(const struct store *s, const struct entry *e, enum store_part part, int *ret_fd,
	       uint64_t *ret_size);
/* Opens, as store_open(), the image cache's file that has image INDEX of E's manifest. */
int store_open_image(const struct store *s, const struct entry *e, uint32_t index, int *ret_fd,
		     uint64_t *ret_size);
/* Bytes on disk: of snapshots and of the images that they need. */
uint64_t store_use(const struct store *s);
const struct store_stats *store_get_stats(const struct store *s);
