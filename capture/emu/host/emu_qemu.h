/*
 * The emulator: finds COMMAND and QEMU, checks QEMU's version, and starts COMMAND under QEMU with
 * the software PMU.
 */
#pragma once

#include <stddef.h>
#include <sys/types.h>

/* Finds QEMU and checks that it can load the plugin. PATH: path or name from the user; NULL:
 * qemu-x86_64. A name is searched in $PATH. 0: the caller frees *RET_PATH; -ENOENT, -EOPNOTSUPP,
 * ...: WHY (WHY_SIZE bytes) is one line for the user. */
int emu_qemu_find(const char *path, char **ret_path, char *why, size_t why_size);

/* COMMAND as execvp(3) would find and start it: by PATH, through "#!" lines, to an x86-64 ELF
 * program. */
struct emu_command {
	char *program; /* absolute path of the ELF file; all members are owned */
	char **argv;   /* its arguments, argv[0] first, NULL-terminated */
	char *comm;    /* the name that the kernel would give the task, at most 15 bytes */
};

/* Finds the program of ARGV. 0: free *RET with emu_command_done(). -ENOENT, -EACCES, -ENOEXEC, ...:
 * as execve(2) would fail; -EOPNOTSUPP: the kernel could run the program, the emulator cannot. On
 * failure WHY (WHY_SIZE bytes) is one line for the user. */
int emu_command_find(char *const *argv, struct emu_command *ret, char *why, size_t why_size);
void emu_command_done(struct emu_command *c);

struct emu_start {
	const char *qemu, *plugin, *ring; /* ring: path by which the child opens the memory */
	const char *truth;		  /* absolute path of a directory; NULL: none */
	int repeatable;			  /* the guest gets the same random numbers each time */
	const struct emu_command *command;
};
/* Starts the emulator with COMMAND. The child inherits everything; emustart_envp() changes the
 * environment for QEMU. 0 or -errno. */
int emu_qemu_start(const struct emu_start *start, pid_t *ret_pid);
