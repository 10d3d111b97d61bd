/*
 * A directory of a test's own.
 */
#pragma once

#define SCRATCH_DIR_SIZE 64

/* Made below $TMPDIR or /tmp. */
void scratch_dir_make(char ret[SCRATCH_DIR_SIZE]);
/* Removed with the files in it. */
void scratch_dir_remove(const char *dir);
/* How many entries it has, "." and ".." not counted. */
int scratch_dir_count(const char *dir);
