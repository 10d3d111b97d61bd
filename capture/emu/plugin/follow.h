/*
 * exec under the emulator: starts the emulator again, with the program that execve(2) would start.
 *
 * The system call callback uses this before QEMU executes the call. On success the process image is
 * replaced. A call that the kernel would refuse is left to QEMU's own execve, so that the program
 * gets the kernel's errno.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How this emulator was started; it starts the next emulator in the same way. All strings live as
 * long as the process. */
struct follow_self {
	const char *qemu;      /* absolute path of the emulator's program */
	const char *plugin;    /* absolute path of the plugin's file */
	const char *ring;      /* path of the shared memory: /proc/PID/fd/N or /proc/self/fd/N */
	const char *truth;     /* directory; NULL: none */
	const char *exec_path; /* of the running program, for /proc/self/exe */
	bool repeatable;       /* option -seed 1 */
	/* Device and inode of "/" when follow_keep_ring() kept a descriptor; 0: it did not. */
	uint64_t root[2];
};

/* The process is about to become another user's, and that user cannot open the shared memory by its
 * path. Opens a descriptor that the next programs inherit, and changes self->ring to its path. Does
 * nothing if called again, and leaves the path unchanged on failure. */
void follow_keep_ring(struct follow_self *self);

/* Fills *RET from /proc/self/exe and from the emulator's command line. 0; -EINVAL: the command line
 * is not one of emustart_argv() (capture/emu/machine/emustart.h); -errno. */
int follow_self_read(struct follow_self *ret);

/* An execve or execveat of the guest. Pointers are guest addresses. */
struct follow_call {
	bool at; /* execveat, which has dirfd and flags */
	int dirfd, flags;
	uint64_t path, argv, envp;
};

enum follow_verdict {
	FOLLOW_FAILS,  /* the kernel would refuse: QEMU's own execve gives the guest the errno */
	FOLLOW_READY,  /* the emulator can run the program */
	FOLLOW_NATIVE, /* only the kernel can run the program: QEMU's own execve runs it untraced */
	FOLLOW_NESTED, /* the program is an emulator itself, and is refused */
};

struct follow; /* a prepared exec */

/* Decides what to do with CALL; changes nothing. *RET is set for FOLLOW_READY only, and
 * follow_exec() frees it. WHY (WHY_SIZE bytes) is set for FOLLOW_NATIVE and FOLLOW_NESTED to
 * "PROGRAM: reason" ("/usr/bin/sudo: set-user-ID program", "./old: not an x86-64 program"). Thread
 * safe. */
enum follow_verdict follow_prepare(const struct follow_self *self, const struct follow_call *call,
				   struct follow **ret, char *why, size_t why_size);
/* Calls execve. Returns only when execve failed: frees F and returns -errno. */
int follow_exec(struct follow *f);

/* Part of follow_prepare(), for its tests: reads the arguments of execve from the guest's memory
 * within execve's limits (fs/exec.c). Other threads of the guest may write to this memory at the
 * same time. Each byte is read once, and all checks apply to the copy. */

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
