/*
 * The state directory as it is found at the start.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/store/entry.h"

/* Makes DIR with MODE, and its missing parents, which everybody may enter. 0 or -errno. */
int store_make_dirs(const char *dir, mode_t mode);
/* Is ID of the form that store_new_id makes? */
bool store_scan_is_id(const char *id);
/* Removes temporary files and calls FN for the id of each file of ours (more than once for an id
 * with more files). FN's first non-zero result ends it and is returned. 0 or -errno. */
int store_scan(int dir_fd, int (*fn)(void *userdata, const char *id), void *userdata);
/* What is known of ID. Without an end it is listed as failed; where ID.entry is damaged or not
 * there, with what its name tells, and STORE_SCAN_NO_TRIGGER. */
enum store_scan_found {
	STORE_SCAN_ENDED,      /* one way or the other */
	STORE_SCAN_FAILED,     /* the recorder ended first */
	STORE_SCAN_UNFINISHED, /* so, too; its bundle is there and was not decoded yet */
};
#define STORE_SCAN_NO_TRIGGER "unknown"
enum store_scan_found store_scan_entry(int dir_fd, const char *id, uint64_t id_time_usec,
				       struct entry *ret);
