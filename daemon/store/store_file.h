/*
 * The files of one snapshot in the state directory, written and read by jobs' threads, and the scan
 * of that directory at start.
 *
 * The files are ID.ptsnap (bundle), ID.json (report), ID.images (which images the bundle needs),
 * ID.entry (what is known of the snapshot) and the empty file ID.pinned. Each one is published by
 * rename, except ID.pinned, which the loop makes and removes (store_room.c). These functions use
 * nothing but the directory's descriptor.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "daemon/store/entry.h"
#include "proto/bundle/kept.h"

enum store_part {
	STORE_BUNDLE = 0,
	STORE_REPORT,
	STORE_IMAGES,
	STORE_ENTRY,
	STORE_PINNED,
	STORE_N_PARTS,
};

/* The name of a file: "ID.ptsnap". */
#define STORE_NAME_SIZE (ENTRY_ID_SIZE + 8)
void store_file_name(const char *id, enum store_part part, char ret[STORE_NAME_SIZE]);
/* Opens NAME in DIR_FD with FLAGS (O_RDONLY, O_RDWR). Never waits, whatever has that name: a FIFO
 * without a writer would hold up its caller for ever. 0; -EBADMSG: NAME is no regular file; or
 * -errno. */
int store_file_open(int dir_fd, const char *name, int flags, int *ret_fd, struct stat *ret_st);
/* Whether there is a regular file of that name. */
bool store_file_exists(int dir_fd, const char *id, enum store_part part);
/* The bytes of the regular file PART of snapshot ID; ENTRY_ABSENT: there is none. */
uint64_t store_file_size(int dir_fd, const char *id, enum store_part part);
/* Writes the first SIZE bytes of FROM as PART of snapshot ID. 0, or -errno (-ENOSPC, -EDQUOT, ...)
 * with nothing left behind. */
int store_file_put(int dir_fd, const char *id, enum store_part part, int from, uint64_t size);
/* The same for ID.entry and, from KEPT, ID.images. */
int store_file_put_entry(int dir_fd, const struct entry *e);
int store_file_put_kept(int dir_fd, const char *id, const struct kept *kept);
/* Brings the names of files that were put or removed to the disk. 0 or -errno. */
int store_file_sync(int dir_fd);
/* Reads ID.images into KEPT, which is initialised. 0, -ENOENT, -EBADMSG or -errno. */
int store_file_get_kept(int dir_fd, const char *id, struct kept *kept);

/* Makes DIR with MODE, and missing parents with mode 0755. 0 or -errno. */
int store_make_dirs(const char *dir, mode_t mode);
/* Whether ID has the form that store_new_id() makes. */
bool store_scan_is_id(const char *id);
/* Removes temporary files, then calls FN with the id of each snapshot file, several times for an id
 * with several files. A result of FN other than 0 ends the scan and is returned. 0 or -errno. */
int store_scan(int dir_fd, int (*fn)(void *userdata, const char *id), void *userdata);
/* Reads what is known of ID. A snapshot that had not ended is given as done if its report is there,
 * because a report is published when it is complete, and else as failed. If ID.entry is
 * missing or damaged, *ret has what the id tells (ID_TIME_USEC) and the trigger
 * STORE_SCAN_NO_TRIGGER. */
enum store_scan_found {
	STORE_SCAN_ENDED,      /* done or failed, as ID.entry or the report says */
	STORE_SCAN_FAILED,     /* the recorder ended first */
	STORE_SCAN_UNFINISHED, /* the recorder ended first; the bundle is there to be decoded */
};
#define STORE_SCAN_NO_TRIGGER "unknown"
enum store_scan_found store_scan_entry(int dir_fd, const char *id, uint64_t id_time_usec,
				       struct entry *ret);
