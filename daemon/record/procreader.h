/*
 * Reads facts about processes from /proc in another thread: a command line is in its process's own
 * memory, and the process can make reading it take for ever.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "capture/proc/procscan.h"
#include "daemon/base/aside.h"

/* Requests that may be under way at once. */
#define PROCREADER_ROOM 128u
/* When this many threads hang in a read, no more command lines are read before one comes back. */
#define PROCREADER_STUCK 4u

struct procreader;

struct procreader_request {
	uint32_t pid;
	uint64_t tag; /* the caller's */
	bool cmdline; /* read the command line, too; in an answer: that was tried */
};

struct procreader_answer {
	struct procreader_request request;
	int error; /* result of procscan_info() */
	struct procinfo info;
};

#define PROCREADER_FULL	   1
#define PROCREADER_NOTHING 1

/* PROC is "/proc" (or a test's tree). The thread starts with the first request. 0 or -errno. */
int procreader_new(const char *proc, struct procreader **ret);
/* Does not wait for threads: one that hangs in a read ends when the read returns. */
void procreader_free(struct procreader *r);
/* 0: an answer will come, in the order of the requests, unless procreader_give_up() returns this
 * request. PROCREADER_FULL: take answers first. -errno: no thread can be started. */
int procreader_ask(struct procreader *r, const struct procreader_request *request);
/* Takes an answer; *ret's info is the caller's. 0 or PROCREADER_NOTHING. */
int procreader_take(struct procreader *r, struct procreader_answer *ret);
/* Waits at most NS for an answer. 0, also if there is none; -errno: there is no thread. */
int procreader_wait(struct procreader *r, uint64_t ns);
/* Requests whose answer has not been taken. */
unsigned int procreader_pending(const struct procreader *r);
/* Call it when all answers have been taken. If the thread has been reading one process for more
 * than NS, leaves the thread behind: *ret is what it reads, to which no answer comes, and another
 * thread goes on with the requests behind it. 0 or PROCREADER_NOTHING. */
int procreader_give_up(struct procreader *r, uint64_t ns, struct procreader_request *ret);
/* The number of threads that hang. */
unsigned int procreader_stuck(struct procreader *r);
