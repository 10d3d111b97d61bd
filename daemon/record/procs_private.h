/*
 * Inside of procs.h: procs.c (who is there, by the records), procs_facts.c (what /proc says of
 * them) and procs_uid.c (whose they certainly are, and who is excluded).
 */
#pragma once

#include "daemon/record/procreader.h"
#include "daemon/record/procs.h"
#include "proto/base.h"

#define PROCS_NONE UINT32_MAX

struct procs_entry {
	struct procinfo info;
	uint32_t next;		      /* in its bucket */
	uint64_t forked_at, ended_at; /* perf ns; 0: not told */
	uint64_t exec_at;	      /* so, of the last one */
	bool pending;		      /* facts are to be read */
	bool ended;
	bool old_program; /* exe and cmdline are those from before an exec */
	bool awaits_exe;  /* no file was mapped since the exec */
	/* Answers to requests after one, up to the other, tell of it. */
	uint64_t before_asked, asked;
	bool asked_ended; /* it had ended by then */
	bool asked_stale; /* it has executed another program since */
	bool no_cmdline;  /* is given up */
	struct {
		uint64_t since;	    /* of what /proc has said: it held then, perf ns; ABSENT */
		bool since_birth;   /* and nothing speaks against its holding since the fork */
		uint32_t forked_by; /* 0: not known */
		uint32_t execs;	    /* of which /proc has not been asked yet */
		uint32_t asked;	    /* of them, with the request under way */
		uint32_t covered;   /* of them, with the last answer, */
		uint64_t learned;   /* which came then, perf ns */
		bool seen;	    /* /proc has said something */
		/* Of struct procs, when what is known held, and with the request under way. */
		uint64_t losses, asked_losses;
	} uid;
	bool excluded;
	/* Of the place, not of who has it now: */
	bool in_line, in_ended;
	uint64_t since_ns; /* when it came into the line */
};

/* Numbers of entries, each at most once; as many as there are entries. */
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
	struct procs_line ended; /* first ended first; some of them live again */
	struct procs_line line;	 /* whose facts are to be read, first seen first */
	uint64_t delay_ns, now_ns;
	uint64_t patience_ns, snapshot_patience_ns;
	uint64_t tags; /* so far */
	/* How often records were lost, the last time, and up to which of these all were looked at
	 * again, and when. */
	uint64_t losses, lost_at, looked_losses, looked_ns;
	uint32_t n_pending;
	uint64_t dropped;
};

/* procs.c: */
struct procs_entry *procs_find(const struct procs *p, uint32_t pid);
void procs_mark(struct procs *p, struct procs_entry *e);
/* Whom E tells of has ended, and the pid is used again. */
void procs_reuse(struct procs *p, struct procs_entry *e);
void procs_forget_program(struct procinfo *info);

/* procs_uid.c: */
/* Another process: what is known of the one before it does not hold. */
void procs_uid_forget(const struct procs *p, struct procs_entry *e);
/* One that is told late, after what /proc said was taken for that of the program before, was it
 * that /proc told of: of the one before nothing is known. */
void procs_uid_exec(struct procs_entry *e, uint64_t time);
/* /proc has said whose E is, of whom /proc has said BEFORE. A process without rights to change its
 * user gets another one by executing a program that gives it: so each program must have been looked
 * at, and of several in a row only the last one can be. */
void procs_uid_learn(const struct procs *p, struct procs_entry *e, uint64_t before);
void procs_exclude_learn(const struct procs *p, struct procs_entry *e);
/* Have records been lost since it was looked at? */
bool procs_is_doubted(const struct procs *p, const struct procs_entry *e);
/* Who forked E, if the entry still tells of him. */
const struct procs_entry *procs_forker(const struct procs *p, const struct procs_entry *e);
/* Of one that was gone too soon: that of who forked it. */
uint64_t procs_uid(const struct procs *p, const struct procs_entry *e);
