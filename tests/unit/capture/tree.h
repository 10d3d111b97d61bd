/*
 * A directory of small files, for tests of code that reads /proc and /sys.
 */
#pragma once

#include <stddef.h>

/* Makes an empty directory and returns its path, which the caller gives to tree_free(). Ends the
 * test on failure. */
char *tree_new(void);
/* Removes the directory with its contents. */
void tree_free(char *root);
/* Writes TEXT to ROOT/PATH, and makes directories on the way. */
void tree_write(const char *root, const char *path, const char *text);
void tree_write_bytes(const char *root, const char *path, const void *data, size_t size);
void tree_symlink(const char *root, const char *path, const char *target);
