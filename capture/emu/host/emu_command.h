/*
 * COMMAND as execve(2) would find and start it: by PATH, through "#!" lines, down to an x86-64 ELF
 * program that the emulator can be given.
 */
#pragma once

#include <stddef.h>

struct emu_command {
	char *program; /* absolute path of the ELF file; owned, as all here */
	char **argv;   /* its arguments, argv[0] first, NULL-terminated */
	char *comm;    /* the name that the kernel would give the task, at most 15 bytes */
};

/* 0; -ENOENT, -EACCES, -ENOEXEC, ..., -EOPNOTSUPP: the kernel would run it, the emulator cannot;
 * with one line for the user in WHY. */
int emu_command_find(char *const *argv, struct emu_command *ret, char *why, size_t why_size);
void emu_command_done(struct emu_command *c);
