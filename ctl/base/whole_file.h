/*
 * A file of limited size, read as a whole into memory.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* All of FD, from its beginning; its position stays. *RET is freed by the caller, and has room for
 * one byte more. 0; -EBADMSG: no regular file, -EFBIG: more than MAX bytes, or -errno. */
int whole_file_read(int fd, uint64_t max, char **ret, size_t *ret_size);
