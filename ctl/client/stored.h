/*
 * A bundle that the recorder has stored, with the images that lie beside it: from the recorder, or
 * from its state directory. What is wrong is said; results are exit codes.
 */
#pragma once

#include <stdbool.h>

#include "ctl/base/option.h"

struct stored;

/* Snapshot ID (as of Get) of the recorder of SETTINGS, which are borrowed. */
int stored_from_recorder(const struct settings *settings, const char *id, struct stored **ret);
/* The file at PATH, which is open as FD (taken over, also on failure). One that has no list beside
 * it, and one that is no bundle, is itself all there is. */
int stored_from_file(const char *path, int fd, struct stored **ret);
void stored_freep(struct stored **s);

/* Is it a bundle? */
int stored_check(const struct stored *s);
/* The bundle to TO, made whole; what it goes without is said unless QUIET. */
int stored_write(struct stored *s, bool quiet, int to);
/* The bundle as a file, made whole where it is not: *ret_fd is the caller's, without a name. */
int stored_open(struct stored *s, bool quiet, int *ret_fd);
