/*
 * A mapped file's build id as the kernel finds it for an MMAP2 record.
 */
#pragma once

#include <stdint.h>

/* Of the file PATH, if its inode is still INO. Returns the number of bytes, at most 20; 0: it has
 * none, or not where the kernel looks. */
uint8_t buildid_read(const char *path, uint64_t ino, uint8_t ret[20]);
