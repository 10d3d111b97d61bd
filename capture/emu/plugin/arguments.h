/*
 * The arguments of execve, read from the guest's memory within execve's limits (fs/exec.c).
 *
 * Other threads of the guest may write to this memory at the same time. Each byte is read once, and
 * all checks apply to the copy.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* include/uapi/linux/binfmts.h, MAX_ARG_STRLEN; includes the NUL. */
#define ARGUMENTS_MAX_STRING (32u * 4096)

/* Bytes that the kernel now allows for a new program's strings and the pointers to them. */
size_t arguments_limit(void);

/* Reads the string at guest address ADDRESS, at most MAX bytes including the NUL. 0: the caller
 * frees *RET; -EFAULT; TOO_LONG: no NUL within MAX bytes; -ENOMEM. */
int arguments_read_string(uint64_t address, size_t max, int too_long, char **ret);
/* Reads the NULL-terminated vector of strings at guest address ADDRESS (0: an empty vector), and
 * subtracts its size from *ROOM. 0: free *RET with arguments_free(); -EFAULT; -E2BIG; -ENOMEM. */
int arguments_read_vector(uint64_t address, size_t *room, char ***ret);
/* NULL is allowed. */
void arguments_free(char **strings);
