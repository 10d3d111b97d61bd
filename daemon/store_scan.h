/*
 * The state directory as it is found at the start.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/entry.h"

/* Makes DIR with MODE, and its missing parents, which everybody may enter. 0 or -errno. */
int store_make_dirs(const char *dir, mode_t mode);
/* Removes temporary files and calls FN for the id of each file of ours (more than once for an id
 * with more files). FN's first non-zero result ends it and is returned. 0 or -errno. */
int store_scan(int dir_fd, int (*fn)(void *userdata, const char *id), void *userdata);
/* What is known of ID. True when its end is not known: the recorder ended first, or ID.entry is
 * damaged; it is then listed as failed, with what its name tells. */
bool store_scan_entry(int dir_fd, const char *id, uint64_t id_time_usec, struct entry *ret);
