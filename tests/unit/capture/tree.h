/*
 * A directory of small files, for tests of what reads /proc and /sys.
 */
#pragma once

#include <stddef.h>

/* A new empty directory; its path is the caller's to give to tree_free. Ends the test on failure.
 */
char *tree_new(void);
/* Removes it with all that is in it. */
void tree_free(char *root);
/* ROOT/PATH with TEXT; directories on the way are made. */
void tree_write(const char *root, const char *path, const char *text);
void tree_write_bytes(const char *root, const char *path, const void *data, size_t size);
void tree_symlink(const char *root, const char *path, const char *target);
