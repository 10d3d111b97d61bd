/*
 * Works out what execve(2) would do with a file, up to the point of no return: follows "#!" lines
 * to an ELF program, and makes all the kernel's checks. The request changes nothing.
 */
#pragma once

#include <limits.h>
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

/* The kernel would or might run the program; the emulator cannot. The number differs from
 * EXECFILE_NO_SCRIPT and EXECFILE_FOREIGN. */
#define EXECPLAN_NATIVE 3
/* 0: free *RET with execplan_done(). -errno: the kernel would refuse with this error; WHY is the
 * name of the refused interpreter, or empty if PATH itself is refused. EXECPLAN_NATIVE: WHY is the
 * reason, without the file's name ("set-user-ID program"). */
int execplan_make(const struct execplan_request *request, struct execplan *ret, char *why,
		  size_t why_size);
void execplan_done(struct execplan *p);

/* Like access(2), with the effective IDs that open(2) uses. */
bool execplan_may(const char *path, int mode);

/*
 * Part of execplan_make(), for its tests: the beginning of an executable file, as execve(2) reads
 * it: a "#!" line or ELF headers. Decides what the kernel would do with the file
 * (fs/binfmt_script.c, fs/binfmt_elf.c), and whether QEMU's loader (linux-user/elfload.c) would do
 * the same. All bytes are untrusted.
 */

/* include/uapi/linux/binfmts.h, BINPRM_BUF_SIZE */
#define EXECFILE_HEAD_SIZE 256

/* Reads the file's first bytes; zeros follow its end. 0 or -errno. */
int execfile_read_head(int fd, char ret_head[EXECFILE_HEAD_SIZE]);

/* The file does not begin with "#!". */
#define EXECFILE_NO_SCRIPT 1
struct execfile_script {
	const char *interpreter; /* both point into HEAD */
	const char *argument;	 /* NULL: none */
};
/* Splits the first line of HEAD into its words. 0; EXECFILE_NO_SCRIPT; -ENOEXEC: the kernel finds
 * no name in this line. */
int execfile_parse_script(char head[EXECFILE_HEAD_SIZE], struct execfile_script *ret);

/* The kernel runs the file, or may run it; QEMU's loader does not, or does something else. */
#define EXECFILE_FOREIGN 2
struct execfile_elf {
	const char *reason;		/* EXECFILE_FOREIGN: "a 32-bit program"; static */
	bool has_interpreter;		/* PT_INTERP */
	char interpreter[PATH_MAX + 1]; /* may be empty */
};
/* Checks the ELF headers. 0: both can load the program; EXECFILE_FOREIGN: *ret has the reason;
 * -ENOEXEC, -EIO: the kernel refuses the file. AS_INTERPRETER: the file is another program's
 * PT_INTERP; the kernel refuses it with -ELIBBAD, and its own PT_INTERP is ignored. */
int execfile_read_elf(int fd, bool as_interpreter, struct execfile_elf *ret);
