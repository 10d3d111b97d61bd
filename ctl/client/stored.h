/*
 * A stored bundle with its images, from the recorder or from a state directory.
 *
 * All functions that return int print what is wrong and return an exit code.
 */
#pragma once

#include <stdbool.h>

#include "ctl/base/option.h"

struct stored;

/* Gets snapshot ID ("latest", or the beginning of an ID) from the recorder. SETTINGS are borrowed
 * for the life of *ret, which is the caller's. */
int stored_from_recorder(const struct settings *settings, const char *id, struct stored **ret);
/* Takes the file PATH, open as FD, which is taken over also on failure. The images are looked for
 * beside PATH. A file without a list of images beside it, or that is no bundle, is taken as it is.
 */
int stored_from_file(const char *path, int fd, struct stored **ret);
void stored_freep(struct stored **s);

/* Checks that the file is a bundle. */
int stored_check(const struct stored *s);
/* Writes the bundle, joined with its images, to fd TO. Unless QUIET, prints how many images are
 * missing. */
int stored_write(struct stored *s, bool quiet, int to);
/* The same as a file without a name; *ret_fd is the caller's. Afterwards *s may only be freed. */
int stored_open(struct stored *s, bool quiet, int *ret_fd);
