/*
 * COMMAND as execvp(3) would find and start it: by PATH, through "#!" lines, to an x86-64 ELF
 * program.
 */
#pragma once

#include <stddef.h>

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
