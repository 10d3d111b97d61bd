/*
 * The emulator: finds QEMU, checks its version, and starts COMMAND under it with the software PMU.
 */
#pragma once

#include <stddef.h>
#include <sys/types.h>

/* Finds QEMU and checks that it can load the plugin. PATH: path or name from the user; NULL:
 * qemu-x86_64. A name is searched in $PATH. 0: the caller frees *RET_PATH; -ENOENT, -EOPNOTSUPP,
 * ...: WHY (WHY_SIZE bytes) is one line for the user. */
int emu_qemu_find(const char *path, char **ret_path, char *why, size_t why_size);

struct emu_command;

struct emu_start {
	const char *qemu, *plugin, *ring; /* ring: path by which the child opens the memory */
	const char *truth;		  /* absolute path of a directory; NULL: none */
	int repeatable;			  /* the guest gets the same random numbers each time */
	const struct emu_command *command;
};
/* Starts the emulator with COMMAND. The child inherits everything; emustart_envp() changes the
 * environment for QEMU. 0 or -errno. */
int emu_qemu_start(const struct emu_start *start, pid_t *ret_pid);
