/*
 * What the trace says besides branches (flow's marks): all of it counted, and of what is worth
 * reading the newest in bounded lists.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "decoder/worker/replay/replay.h"

#define MARKS_MAX 10000u /* in each list, the newest; all are counted */

enum marks_list_id {
	MARKS_PTWRITES,
	MARKS_FREQUENCIES, /* CBR, where it changes on that CPU */
	MARKS_POWER,	   /* EXSTOP, MWAIT, PWRE, PWRX */
	MARKS_ABORTS,	   /* of transactions */
	MARKS_INTERRUPTS,  /* CFE */
	MARKS_N_LISTS,
};

/* What is counted. */
enum marks_event {
	MARKS_ASYNC_BRANCH,  /* FLOW_ASYNC: aborts of transactions, too */
	MARKS_ASYNC_DISABLE, /* tracing went off without a branch instruction */
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

/* A flow_mark, its time as an interval, and whose it is. */
struct mark {
	uint64_t at;  /* TSC, for the order; 0: unknown */
	uint64_t seq; /* in order of finding */
	struct flow_mark said;
	uint32_t cpu; /* index into the manifest's */
	uint32_t context;
	/* NULL: unknown, or tracing was off. */
	const struct timeline_thread *thread;
	const struct timeline_thread *process; /* as in replay_stretch */
};

struct marks_list {
	struct mark *list; /* after marks_end the newest first, MARKS_MAX at most */
	size_t n, capacity;
	uint64_t total;
	uint64_t floor; /* what is older than this has been dropped */
};

struct marks_cpu {
	uint32_t ratio; /* the newest; 0: none yet */
	uint32_t lowest, highest;
	uint64_t changes;
	uint8_t mode, iflag; /* as last said, plus one; 0: not yet */
};

struct marks_transactions {
	uint64_t begun, committed, aborted;
};

struct marks {
	uint64_t counts[MARKS_N_EVENTS];
	struct marks_list lists[MARKS_N_LISTS];
	struct marks_cpu *cpus; /* as the manifest's */
	uint64_t seq;
};

/* 0 or -ENOMEM. */
int marks_init(struct marks *m, size_t n_cpus);
void marks_done(struct marks *m);
/* Counts the items of S that are not branches; OF_THREAD are the counters of its thread. 0 or
 * -ENOMEM. */
int marks_stretch(struct marks *m, const struct replay_stretch *s,
		  struct marks_transactions *of_thread);
/* After the last stretch: puts the lists in order. */
void marks_end(struct marks *m);
/* "ptwrite", "transaction-abort", ...: the name in reports; stable. */
const char *marks_event_name(enum marks_event event);
