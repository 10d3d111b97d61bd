/*
 * Strings and vectors of strings out of the guest's memory, with execve's limits (fs/exec.c).
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* include/uapi/linux/binfmts.h, MAX_ARG_STRLEN: with its NUL */
#define ARGUMENTS_MAX_STRING (32u * 4096)

/* Bytes that the kernel grants now to a new program's strings and the pointers to them. */
size_t arguments_limit(void);

/* At most MAX bytes with the NUL. 0, *RET on the heap; -EFAULT; TOO_LONG; -ENOMEM. */
int arguments_read_string(uint64_t address, size_t max, int too_long, char **ret);
/* NULL-terminated, as ADDRESS is; ADDRESS 0: empty. *ROOM is lessened by what it takes. 0, *RET for
 * arguments_free; -EFAULT; -E2BIG; -ENOMEM. */
int arguments_read_vector(uint64_t address, size_t *room, char ***ret);
void arguments_free(char **strings);
