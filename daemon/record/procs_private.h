/*
 * Inside of procs.h: procs.c (the table, by records), procs_facts.c (what /proc says) and
 * procs_uid.c (whose a process certainly is, and whether it is excluded).
 */
#pragma once

#include "daemon/record/procreader.h"
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
 * right to change its user gets another one by executing a program that gives it. So each program
 * must have been looked at, and of several in a row only the last one can be. */
void procs_uid_learn(const struct procs *p, struct procs_entry *e, uint64_t before);
void procs_exclude_learn(const struct procs *p, struct procs_entry *e);
/* Whether records have been lost since E was looked at. */
bool procs_is_doubted(const struct procs *p, const struct procs_entry *e);
/* Fills in what is told of E's owner, and whether E is excluded. */
void procs_uid_tell(const struct procs *p, const struct procs_entry *e, struct procs_told *ret);
