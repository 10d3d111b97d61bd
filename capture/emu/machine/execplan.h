/*
 * What execve(2) would do with a file, up to the point where it gives the old program up: through
 * "#!" lines down to an ELF program, with all that it would refuse. Nothing is changed by asking.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct execplan_request {
	int dirfd; /* AT_FDCWD: execve */
	const char *path;
	int flags;	   /* of execveat */
	char *const *argv; /* NULL or empty: the kernel makes it {""} */
	const char *exe;   /* what /proc/self/exe means to who asks; NULL: what it says */
};

struct execplan {
	/* Absolute path of the ELF file, good after exec too; NULL: only FD leads to it (it is
	 * deleted, a memory file, ...). */
	char *program;
	char *name;    /* its last part, all links followed */
	int fd;	       /* O_PATH, close-on-exec */
	char **argv;   /* {argv[0], ..., NULL} as the program gets it */
	char comm[16]; /* the name that the kernel would give the task */
};

/* The kernel would run it, or might; the emulator cannot. (No number of execfile.h's.) */
#define EXECPLAN_NATIVE 3
/* 0, and the caller owns *RET; -errno: the kernel would refuse it with that; EXECPLAN_NATIVE: with
 * the reason in WHY, without the file's name ("set-user-ID program"). With -errno WHY is empty
 * unless it was not PATH itself but its interpreter that was refused: then its name. */
int execplan_make(const struct execplan_request *request, struct execplan *ret, char *why,
		  size_t why_size);
void execplan_done(struct execplan *p);

/* As access(2), with the effective ids as open(2) uses them. */
bool execplan_may(const char *path, int mode);
