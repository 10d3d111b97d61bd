/*
 * The beginning of an executable file, as execve(2) reads it: a "#!" line, or ELF headers. Says
 * what the kernel would do with it (fs/binfmt_script.c, fs/binfmt_elf.c) and whether QEMU's loader
 * (linux-user/elfload.c) would do the same. All bytes are a stranger's.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>

/* include/uapi/linux/binfmts.h, BINPRM_BUF_SIZE */
#define EXECFILE_HEAD_SIZE 256

/* The file's first bytes, zeros behind its end. 0 or -errno. */
int execfile_read_head(int fd, char ret_head[EXECFILE_HEAD_SIZE]);

/* It does not begin with "#!". */
#define EXECFILE_NO_SCRIPT 1
struct execfile_script {
	const char *interpreter; /* both point into HEAD */
	const char *argument;	 /* NULL: none */
};
/* Cuts HEAD's first line into its words. 0; EXECFILE_NO_SCRIPT; -ENOEXEC: the kernel takes no name
 * from this line. */
int execfile_parse_script(char head[EXECFILE_HEAD_SIZE], struct execfile_script *ret);

/* The kernel runs it, or may; QEMU's loader does not, or not in the same way. */
#define EXECFILE_FOREIGN 2
struct execfile_elf {
	const char *reason;		/* EXECFILE_FOREIGN: "a 32-bit program"; static */
	bool has_interpreter;		/* PT_INTERP */
	char interpreter[PATH_MAX + 1]; /* may be empty */
};
/* 0: an x86-64 program that both can load; EXECFILE_FOREIGN; -ENOEXEC, -EIO: the kernel refuses
 * it. AS_INTERPRETER: it is another program's PT_INTERP (then -ELIBBAD, and its own PT_INTERP does
 * not count). */
int execfile_read_elf(int fd, bool as_interpreter, struct execfile_elf *ret);
