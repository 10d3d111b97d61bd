/*
 * One snapshot's files in the state directory: ID.ptsnap (bundle), ID.json (report), ID.images
 * (what the bundle needs of the image cache), ID.entry (what is known of it). Each appears
 * complete, by rename. Called from job threads: nothing here but the directory's fd. The empty file
 * ID.pinned, which says that it is pinned, is the loop's (store_pin.c).
 */
#pragma once

#include <stdint.h>

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

/* "ID.ptsnap", ... */
#define STORE_NAME_SIZE (ENTRY_ID_SIZE + 8)
void store_file_name(const char *id, enum store_part part, char ret[STORE_NAME_SIZE]);
/* SIZE bytes of FROM as that part of snapshot ID. 0, or -errno (-ENOSPC, -EDQUOT, ...) with nothing
 * left behind. */
int store_file_put(int dir_fd, const char *id, enum store_part part, int from, uint64_t size);
int store_file_put_entry(int dir_fd, const struct entry *e);
/* KEPT as STORE_IMAGES of ID. 0 or -errno, as store_file_put. */
int store_file_put_kept(int dir_fd, const char *id, const struct kept *kept);
/* KEPT is initialised. 0, -ENOENT, -EBADMSG or -errno. */
int store_file_get_kept(int dir_fd, const char *id, struct kept *kept);
/* 0, -EBADMSG or -errno. */
int store_file_get_entry(int dir_fd, const char *id, struct entry *ret);
