/*
 * The facts about processes, read from /proc by a thread of its own: a command line lies in memory
 * of its process, who can keep that to himself, so to read it may take for ever.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "capture/proc/procscan.h"
#include "daemon/base/aside.h"

/* How many may be asked for at once. */
#define PROCREADER_ROOM 128u
/* Threads that stand in a read for good, beyond which no command line is read, and no fact. */
#define PROCREADER_STUCK 4u

struct procreader;

/* What is asked for; comes back with the answer. */
struct procreader_request {
	uint32_t pid;
	uint64_t tag;
	bool cmdline; /* is wanted; in an answer: was looked for */
};

struct procreader_answer {
	struct procreader_request request;
	int error; /* as procscan_info's */
	struct procinfo info;
};

#define PROCREADER_FULL	   1
#define PROCREADER_NOTHING 1

/* PROC is "/proc" (or a test's tree). The thread begins with the first request. 0 or -errno. */
int procreader_new(const char *proc, struct procreader **ret);
/* Waits for no thread: one that stands in a read goes when that returns. */
void procreader_free(struct procreader *r);
/* 0: an answer will come, in the order of the requests, unless procreader_give_up tells of it.
 * PROCREADER_FULL: not now, answers must be taken first. -errno: there is no thread to be had. */
int procreader_ask(struct procreader *r, const struct procreader_request *request);
/* *RET's info is the caller's. 0 or PROCREADER_NOTHING. */
int procreader_take(struct procreader *r, struct procreader_answer *ret);
/* Waits at most NS for an answer. 0, also when there is none; -errno: there is no thread. */
int procreader_wait(struct procreader *r, uint64_t ns);
/* Requests without an answer that was taken. */
unsigned int procreader_pending(const struct procreader *r);
/* When all answers have been taken: leaves a thread that has been reading one process for more than
 * NS to itself; another goes on with the requests behind it. *RET: what it stands in; no answer to
 * that comes. 0 or PROCREADER_NOTHING. */
int procreader_give_up(struct procreader *r, uint64_t ns, struct procreader_request *ret);
/* Threads that stand. */
unsigned int procreader_stuck(struct procreader *r);
