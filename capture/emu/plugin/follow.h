/*
 * exec under the emulator: what execve(2) would start is started by the emulator again, with the
 * same rings. Called by the system call callback (plugin.c), before QEMU executes the call itself.
 *
 * On success the process image is replaced and nothing returns. Whatever would fail in the kernel
 * is left to QEMU's own execve, which then gives the program the kernel's errno.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How this emulator was started; what it starts in its place is started alike. */
struct follow_self {
	const char *qemu;      /* absolute path of the emulator's program */
	const char *plugin;    /* absolute path of the plugin's file */
	const char *ring;      /* path of the shared memory, /proc/PID/fd/N, or as kept */
	const char *truth;     /* directory; NULL: none */
	const char *exec_path; /* of the program that runs now, for /proc/self/exe */
	bool repeatable;       /* -seed 1 */
	uint64_t root[2];      /* device and inode of "/" when the ring was kept; 0: it was not */
};

/* The program is about to become another user's, who cannot open the ring by its path: from now on
 * it is a descriptor of the program's own, which what is exec'ed inherits. Once is enough. Where
 * that does not go the ring stays as it is. */
void follow_keep_ring(struct follow_self *self);

/* Fills *RET from /proc/self: which emulator runs, and what it was told on its command line. 0 or
 * -errno (-EINVAL: not started as capture/emu/machine/emustart.h says). To be freed by
 * follow_self_done. */
int follow_self_read(struct follow_self *ret);

/* The guest's arguments of the call, as guest addresses. */
struct follow_call {
	bool at; /* execveat: DIRFD and FLAGS count */
	int dirfd, flags;
	uint64_t path, argv, envp;
};

enum follow_verdict {
	FOLLOW_FAILS,  /* the kernel would refuse it: QEMU's own execve tells the guest why */
	FOLLOW_READY,  /* can be started under the emulator */
	FOLLOW_NATIVE, /* the kernel would run it, we cannot: QEMU's own execve runs it untraced */
	FOLLOW_NESTED, /* it is an emulator itself: refused */
};

struct follow; /* one exec, prepared */

/* Looks at everything and changes nothing. *RET is set with FOLLOW_READY only. WHY (WHY_SIZE bytes)
 * gets, for FOLLOW_NATIVE and FOLLOW_NESTED, "PROGRAM: reason" ("/usr/bin/sudo: set-user-ID
 * program", "./old: not an x86-64 program"). Thread safe; allocates on the heap. */
enum follow_verdict follow_prepare(const struct follow_self *self, const struct follow_call *call,
				   struct follow **ret, char *why, size_t why_size);
/* execve. Returns only when that failed: -errno; F is freed then. */
int follow_exec(struct follow *f);
