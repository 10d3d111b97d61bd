/*
 * The beginning of an executable file, as execve(2) reads it: a "#!" line or ELF headers. Decides
 * what the kernel would do with the file (fs/binfmt_script.c, fs/binfmt_elf.c), and whether QEMU's
 * loader (linux-user/elfload.c) would do the same. All bytes are untrusted.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>

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
