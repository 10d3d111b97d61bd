/*
 * What execve(2) would do with a file, up to the point of no return: through "#!" lines to an ELF
 * program, with all the kernel's checks. The request changes nothing.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct execplan_request {
	int dirfd; /* AT_FDCWD: execve */
	const char *path;
	int flags;	   /* of execveat */
	char *const *argv; /* NULL or empty: the kernel passes {""} */
	const char *exe; /* the file that /proc/self/exe means for the caller; NULL: the real one */
};

struct execplan {
	/* Absolute path of the ELF file, which is still valid after the exec. NULL: only FD leads
	 * to the file (a deleted file, a memory file). */
	char *program;
	char *name;    /* file name behind all links, without directories */
	int fd;	       /* O_PATH, close-on-exec */
	char **argv;   /* {argv[0], ..., NULL} as passed to the program */
	char comm[16]; /* the name that the kernel would give the task */
};

/* The kernel would or might run the program; the emulator cannot. The number differs from those of
 * execfile_private.h. */
#define EXECPLAN_NATIVE 3
/* 0: free *RET with execplan_done(). -errno: the kernel would refuse with this error; WHY is the
 * name of the refused interpreter, or empty if PATH itself is refused. EXECPLAN_NATIVE: WHY is the
 * reason, without the file's name ("set-user-ID program"). */
int execplan_make(const struct execplan_request *request, struct execplan *ret, char *why,
		  size_t why_size);
void execplan_done(struct execplan *p);

/* Like access(2), with the effective IDs that open(2) uses. */
bool execplan_may(const char *path, int mode);
