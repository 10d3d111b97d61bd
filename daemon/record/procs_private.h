/*
 * Inside of procs.h: procs.c (the table, by records), procs_facts.c (what /proc says), procs_uid.c
 * (whose a process certainly is, and whether it is excluded) and procreader.c (the thread that
 * reads /proc).
 */
#pragma once

#include "capture/proc/procscan.h"
#include "daemon/base/aside.h"
#include "daemon/record/procs.h"
#include "proto/base.h"

#define PROCS_NONE UINT32_MAX

struct procs_entry {
	struct procinfo info;
	uint32_t next;		      /* entry in the same bucket */
	uint64_t forked_at, ended_at; /* perf ns; 0: not told */
	uint64_t exec_at;	      /* perf ns, of the last exec; 0: not told */
	bool pending;		      /* facts have to be read */
	bool ended;
	bool old_program; /* info's exe and cmdline are of the program before an exec */
	bool awaits_exe;  /* no file was mapped since the exec */
	/* Answers to requests with tags above before_asked tell of this process; the newest request
	 * has the tag asked. */
	uint64_t before_asked, asked;
	bool asked_ended; /* the process had ended when it was asked for */
	bool asked_stale; /* the process has executed another program since */
	bool no_cmdline;  /* the command line is given up */
	struct {
		uint64_t since;	    /* perf ns: info.uid held then, by /proc; ABSENT */
		bool since_birth;   /* nothing says that it did not hold since the fork */
		uint32_t forked_by; /* pid; 0: not known */
		uint32_t execs;	    /* programs that /proc was not asked about */
		uint32_t asked;	    /* of these, covered by the request under way */
		uint32_t covered;   /* of these, covered by the last answer */
		uint64_t learned;   /* perf ns, of the last answer */
		bool seen;	    /* /proc has said something */
		/* The value of struct procs.losses when this was known to hold, and when the
		 * request under way was made. */
		uint64_t losses, asked_losses;
	} uid;
	bool excluded;
	/* These belong to the slot, whichever process has it: */
	bool in_line, in_ended;
	uint64_t since_ns; /* when it came into the line */
};

/* A ring of indexes of entries, each at most once, with room for all entries. */
struct procs_line {
	uint32_t *items;
	uint64_t head, tail;
};

struct procs {
	struct procreader *reader;
	struct source *source; /* borrowed */
	const struct exclude *exclude;
	struct procs_entry *entries;
	uint32_t n, max;
	uint32_t *buckets;	 /* as many as entries */
	struct procs_line ended; /* the first to end first; some of them live again */
	struct procs_line line;	 /* whose facts have to be read, the first seen first */
	uint64_t delay_ns, now_ns;
	uint64_t patience_ns, snapshot_patience_ns;
	uint64_t tags;	  /* requests so far */
	uint64_t losses;  /* how often records were lost */
	uint64_t lost_at; /* perf ns, the last time */
	/* All processes were looked at again for this many losses, at this time. */
	uint64_t looked_losses, looked_ns;
	uint32_t n_pending;
	uint64_t dropped;
};

/* procs.c: */
struct procs_entry *procs_find(const struct procs *p, uint32_t pid);
/* Has the facts of E read. */
void procs_mark(struct procs *p, struct procs_entry *e);
/* E's process has ended, and another one has its pid. */
void procs_reuse(struct procs *p, struct procs_entry *e);
void procs_forget_program(struct procinfo *info);

/* procs_uid.c: */
/* E is another process from now on: what was known does not hold. */
void procs_uid_forget(const struct procs *p, struct procs_entry *e);
/* E executed a program at TIME. If /proc was read after TIME but before this record came, the
 * answer was taken for the program before: then nothing is known of that one either. */
void procs_uid_exec(struct procs_entry *e, uint64_t time);
/* /proc has told E's uid, which was BEFORE according to the previous answer. A process without the
 * right to change its user gets another one by executing a program that gives it. Each program must
 * therefore have been looked at, and only the last of several in a row can be. */
void procs_uid_learn(const struct procs *p, struct procs_entry *e, uint64_t before);
void procs_exclude_learn(const struct procs *p, struct procs_entry *e);
/* Whether records have been lost since E was looked at. */
bool procs_is_doubted(const struct procs *p, const struct procs_entry *e);
/* Fills in what is told of E's owner, and whether E is excluded. */
void procs_uid_tell(const struct procs *p, const struct procs_entry *e, struct procs_told *ret);

/* --- procreader.c ---
 *
 * Reads facts about processes from /proc in another thread: a command line is in its process's own
 * memory, and the process can make reading it take for ever. */

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
