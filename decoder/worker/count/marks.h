/*
 * Marks: all that the trace says besides branches (the flow's marks). All marks are counted, and
 * the newest of those worth reading are kept in bounded lists.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "decoder/worker/replay/replay.h"

#define MARKS_MAX 10000u /* in each list: the newest; all marks are counted */

enum marks_list_id {
	MARKS_PTWRITES,
	MARKS_FREQUENCIES, /* CBR, where it changes on that CPU */
	MARKS_POWER,	   /* EXSTOP, MWAIT, PWRE, PWRX */
	MARKS_ABORTS,	   /* of transactions */
	MARKS_INTERRUPTS,  /* CFE */
	MARKS_N_LISTS,
};

/* The counters. */
enum marks_event {
	MARKS_ASYNC_BRANCH,  /* FLOW_ASYNC, also for aborts of transactions */
	MARKS_ASYNC_DISABLE, /* tracing stopped without a branch instruction */
	MARKS_INTERRUPT,
	MARKS_INTERRUPTS_ON, /* the interrupt flag */
	MARKS_INTERRUPTS_OFF,
	MARKS_MODE,
	MARKS_PAGING,
	MARKS_VMCS,
	MARKS_TX_BEGIN,
	MARKS_TX_COMMIT,
	MARKS_TX_ABORT,
	MARKS_PTWRITE,
	MARKS_FREQUENCY,
	MARKS_EXSTOP,
	MARKS_MWAIT,
	MARKS_PWRE,
	MARKS_PWRX,
	MARKS_MNT,
	MARKS_TRIG,
	MARKS_PEBS,
	MARKS_N_EVENTS,
};

/* A flow_mark with its place in time and the thread that it belongs to. */
struct mark {
	uint64_t at;	       /* TSC, for the order; 0: unknown */
	uint64_t seq;	       /* in the order in which marks were found */
	struct flow_mark flow; /* what the packet says, with its time as an interval */
	uint32_t cpu;	       /* index into the manifest's CPUs */
	uint32_t context;
	const struct timeline_thread *thread;  /* NULL: unknown, or tracing was off */
	const struct timeline_thread *process; /* as in replay_stretch */
};

struct marks_list {
	struct mark *list; /* after marks_end the newest first, MARKS_MAX at most */
	size_t n, capacity;
	uint64_t total;
	uint64_t floor; /* TSC; marks older than this have been dropped */
};

struct marks_cpu {
	uint32_t ratio; /* the newest; 0: no mark yet */
	uint32_t lowest, highest;
	uint64_t changes;
	uint8_t mode, iflag; /* the last value plus one; 0: no mark yet */
};

struct marks_transactions {
	uint64_t begun, committed, aborted;
};

struct marks {
	uint64_t counts[MARKS_N_EVENTS];
	struct marks_list lists[MARKS_N_LISTS];
	struct marks_cpu *cpus; /* in the manifest's order */
	uint64_t seq;
};

/* 0 or -ENOMEM. */
int marks_init(struct marks *m, size_t n_cpus);
void marks_done(struct marks *m);
/* Counts the marks of S, and its asynchronous branches and stops. OF_THREAD: the transactions of
 * the thread. 0 or -ENOMEM. */
int marks_stretch(struct marks *m, const struct replay_stretch *s,
		  struct marks_transactions *of_thread);
/* After the last stretch: sorts the lists. */
void marks_end(struct marks *m);
/* The stable name in reports, e.g. "transaction-abort". */
const char *marks_event_name(enum marks_event event);

/* The frequency of core:bus RATIO in MHz; MANIFEST_ABSENT: not known. */
uint64_t marks_mhz(const struct replay *r, uint64_t ratio);
