/*
 * The emulator: found, checked, started with our plugin.
 */
#pragma once

#include <stddef.h>
#include <sys/types.h>

#include "capture/emu/host/emu_command.h"

/* Finds QEMU (PATH by the user, or NULL: qemu-x86_64 by PATH), and checks that it can load the
 * plugin. 0, *ret_path owned; -ENOENT, -EOPNOTSUPP, ...: with one line for the user in WHY. */
int emu_qemu_find(const char *path, char **ret_path, char *why, size_t why_size);

struct emu_start {
	const char *qemu, *plugin, *ring; /* ring: path by which the child opens the memory */
	const char *truth;		  /* absolute; NULL: none */
	int repeatable;			  /* fix the guest's random numbers, too */
	const struct emu_command *command;
};
/* Starts it; everything but the arguments and the environment's spelling is inherited. 0 or
 * -errno. */
int emu_qemu_start(const struct emu_start *start, pid_t *ret_pid);
