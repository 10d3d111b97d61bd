/*
 * One exec twice: as the kernel does it, and as follow.c does it. The program that is exec'ed and
 * the emulator are both this test program again; each tells what it was given.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "capture/emu/plugin/follow.h"

/* To be called first by main: does not return when this is one of the exec'ed. */
void exec_oracle_serve(int argc, char **argv);

#define EXEC_ORACLE_NO_COMM  1u /* the task's name is not compared */
#define EXEC_ORACLE_NO_INODE 2u /* nor the file */

struct exec_try {
	struct follow_self *self;
	struct follow_call call; /* addresses of this process */
	void (*prepare)(void);	 /* in the child, before the exec; NULL: nothing */
	unsigned int without;	 /* EXEC_ORACLE_NO_* */
};

struct exec_outcome {
	int error; /* of execve; 0: it started */
	bool told; /* the program said what it was given */
	char *text;
	size_t size;
};
/* The kernel's. */
void exec_oracle_native(const struct exec_try *t, struct exec_outcome *ret);

struct exec_followed {
	enum follow_verdict verdict;
	char why[512];
	char self[8192]; /* what follow_self_read says in the emulator, one line a field */
	struct exec_outcome outcome; /* FOLLOW_READY */
};
void exec_oracle_follow(const struct exec_try *t, struct exec_followed *ret);

/* FOLLOW_READY: the program gets the same. FOLLOW_FAILS: the kernel refuses it too. The other two:
 * nothing is said of the kernel. Gives the verdict. */
enum follow_verdict exec_oracle_compare(const struct exec_try *t, char *why, size_t why_size);
