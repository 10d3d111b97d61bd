/*
 * Counters of what executed: by thread, by function and by CPU, all bounded.
 *
 * This room turns the stretches of a replay into the numbers of the report and the summary. tally.c
 * counts items (branches, gaps, marks); tally_steps.c counts walks of steps, the compact form that
 * the hot loop gives: most steps in tally_quick.c, out of records that tally_cache.c keeps for each
 * kind of step. steps.c says which code a step executes and when. functions.c finds the function of
 * an address, and which pieces of code have the same functions. calls.c keeps the call stack of one
 * thread, tally_instances.c tells when each call began and ended, and durations.c has their
 * histograms. marks.c and gaps.c count and list what is not a branch and what is missing. decoded.c
 * holds all results of one decode.
 *
 * Main types: struct tally with one struct tally_counters for each thread, struct function, struct
 * calls, struct marks, struct gaps; struct decode has one of each.
 *
 * Decisions that govern the room:
 * - Items are the definition of all counting. tally_steps.c counts the same walks without making
 *   items and must give the same numbers to the last bit: test_tally_steps.c counts random programs
 *   both ways.
 * - The tally works out once for each naming what a kind of step adds to the counters. A naming is
 *   a piece of code together with the functions at its offsets, whatever address spaces the code
 *   lies in.
 * - An instruction belongs to the function around its own address, the innermost of several. A run
 *   that crosses the end of a function is split exactly.
 * - A thread has one set of counters, whatever CPUs it ran on. Its stretches come in the order of
 *   its life, so its last branches and its call stack are its own.
 * - An instance of a function is the time from where the function is entered to where it ends. A
 *   call or a jump to the function's first instruction enters it. A jump out of a function does not
 *   end it: a tail call, a PLT entry or a part that lies apart is nested within, and ends when
 *   execution jumps back, or together with the function when that returns. A jump into the middle
 *   of a function further out (longjmp, an exception) ends all that was called in between.
 * - An interrupt in front of a called function's first instruction interrupts that function.
 * - Traces of CPUs begin at different times. What a thread did on a CPU before that CPU's trace
 *   begins is not known: the instances that the thread had before on another CPU are lost.
 * - A recursive function may go on in a part that lies apart in each instance: a jump to the part
 *   unwinds nothing if another instance of the same function has jumped there.
 * - A function is active while it has an instance. Its total is the thread's counters over that
 *   time; recursion counts once.
 * - The duration of a call is that of its instance, by the instants of its first and its last
 *   branch. Calls whose end nobody saw (a gap, the end of the trace, a switch of stacks) have none
 *   and are counted.
 * - The time is counted with the first branch whose time differs. The last branches of a walk are
 *   written at the end of the stretch, and only those that later branches did not replace.
 * - Every table has a limit. A first, unnamed entry counts what exceeds the limit, and the report
 *   says how much that was.
 *
 * The tally, the marks and the gaps own their lists. The replay and the names of functions are
 * borrowed and live longer. Everything here belongs to one thread of the decoder.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decoder/worker/count/calls.h"
#include "decoder/worker/count/functions.h"
#include "decoder/worker/count/marks.h"
#include "decoder/worker/count/tally_cache.h"
#include "decoder/worker/replay/replay.h"
#include "proto/report.h"

/* Threads beyond this number share the first counters, those of no known thread. */
#define TALLY_MAX_THREADS 65536u
#define TALLY_NO_FUNCTION UINT32_MAX

struct tally_branch {
	uint64_t from, to;
	uint64_t tsc_lo, tsc_hi;
	uint32_t context;
	uint8_t kind;  /* enum flow_kind; FLOW_GAP: the branches before and behind do not continue
			* one another */
	uint8_t fault; /* enum fault, of FLOW_GAP */
};

/* Waits shorter than so many ticks are not looked at. */
#define TALLY_WAIT_MIN 4096u
/* The newest waits of a thread are known one by one. */
#define TALLY_WAITS 64u

/* The thread could have run and did not. */
struct tally_wait {
	uint64_t end;	 /* TSC */
	uint64_t before; /* ticks of all waits before it */
};

struct tally_waits {
	struct tally_wait list[TALLY_WAITS]; /* the newest is list[(n - 1) % TALLY_WAITS] */
	uint64_t n;			     /* ever */
	uint64_t total;			     /* ticks */
};

/* The counters of one thread, and where the thread is. */
struct tally_counters {
	const struct timeline_thread *thread; /* NULL: unknown */
	uint64_t insns, branches;
	uint64_t hash;	/* of the addresses of its instructions; only if the summary has hashes */
	uint64_t ticks; /* TSC ticks within traced stretches */
	uint64_t last_tsc; /* estimate for the last item; 0: unknown */
	struct marks_transactions transactions;
	struct tally_waits waits;
	size_t cpu;  /* of the last stretch: index into the manifest */
	bool async;  /* the last item interrupted user code */
	bool traced; /* within a stretch */
	uint64_t ip; /* the last address known; 0: unknown */
	uint32_t context;
	const struct space *space;
	struct calls calls;
	uint32_t function;	  /* that runs; TALLY_NO_FUNCTION */
	struct calls_begin begin; /* of the function's instance */
	bool called;		  /* the next function to run has just been called */
	bool cut;		  /* the run goes on behind a mark */
	struct tally_branch last[REPORT_LAST_BRANCHES];
	uint64_t n_last; /* ever; the newest is last[(n_last - 1) % REPORT_LAST_BRANCHES] */
};

struct tally_cpu {
	uint64_t first_tsc, last_tsc; /* of items; 0: unknown */
	uint64_t gap_tsc;	      /* when the open gap began; 0: no gap is open */
	uint64_t lost_ticks;	      /* within gaps */
};

/* How an instance ended (proto/callstream.h has the same words). */
enum tally_end {
	TALLY_RETURNED,
	TALLY_LEFT,    /* execution jumped back, or it ended together with one around it */
	TALLY_UNWOUND, /* one around it goes on, or the program ended */
	TALLY_SWAPPED, /* execution went to another stack */
	TALLY_LOST,    /* at a gap, or in a turn before a CPU's trace begins */
};

/* How an instance began. */
enum tally_begin {
	TALLY_CALLED,
	TALLY_JUMPED,
	TALLY_SIGNALLED, /* on top of the stack is the frame of a signal, or of the kernel */
	TALLY_FOUND,	 /* before it was seen */
};

/* Somebody who is told of every instance while items are counted: the same instances, with the same
 * begins and ends, as those of which the tally has durations. Functions return 0 or -errno, which
 * ends the counting. */
struct tally_watch {
	/* Before an item of S is counted; and when its run and its time are counted, and the stack
	 * does not know of it yet (not for a mark). */
	int (*before)(void *userdata, struct tally_counters *counters,
		      const struct replay_stretch *s, const struct flow_item *item);
	int (*item)(void *userdata, struct tally_counters *counters, const struct replay_stretch *s,
		    const struct flow_item *item);
	/* An instance of counters->function begins within the running one; or the running one ends.
	 * The time is that of the thread's last branch. */
	int (*begin)(void *userdata, struct tally_counters *counters, enum tally_begin how);
	int (*end)(void *userdata, struct tally_counters *counters, enum tally_end how);
	/* The outermost instance is on the stack no more, and nobody will say when it ended. */
	int (*drop)(void *userdata, struct tally_counters *counters);
	void *userdata;
};

/* A walk of the current stretch whose branches are not yet in counters->last. */
struct tally_tail {
	uint32_t walk, last; /* its number; the step of its last branch */
	uint64_t end;	     /* counters->n_last behind that branch */
};

struct tally {
	struct functions functions;
	struct tally_cache cache;	 /* of steps */
	struct tally_counters **threads; /* threads[0]: unknown thread, or too many threads */
	size_t n_threads, capacity;
	uint32_t *slots;
	size_t n_slots;
	struct tally_counters *current; /* of the thread being counted */
	/* The newest is tails[(n_tails - 1) % REPORT_LAST_BRANCHES]; older walks than these have
	 * none of the last branches. */
	struct tally_tail tails[REPORT_LAST_BRANCHES];
	size_t n_tails;
	struct tally_cpu *cpus; /* in the manifest's order */
	uint64_t threads_refused;
	/* Borrowed; NULL: nobody. With a watch, walks are counted as items. */
	const struct tally_watch *watch;
};

/* REPLAY is borrowed. 0 or -ENOMEM. */
int tally_init(struct tally *t, const struct replay *replay);
void tally_done(struct tally *t);
/* If the thread of S executed since it was seen last, on a CPU whose trace begins later: nobody
 * knows its stack any more, and its instances are lost. tally_stretch() does the same. 0 or
 * -ENOMEM. */
int tally_unseen(struct tally *t, struct tally_counters *counters, const struct replay_stretch *s);
/* Counts a stretch, and adds what its walks executed to the statistics of the flow. 0 or -ENOMEM.
 */
int tally_stretch(struct tally *t, const struct replay_stretch *s);
/* S is not counted. What its thread executes there is as unknown to the tally as in a gap. 0 or
 * -ENOMEM. */
int tally_leave_out(struct tally *t, const struct replay_stretch *s);
/* After the last stretch: ends the functions that are still active. The stacks stay, with the
 * beginnings of their instances. */
void tally_end(struct tally *t);

/* The counters of THREAD, made if there are none; threads[0] if there are too many threads. 0 or
 * -ENOMEM. */
int tally_find(struct tally *t, const struct timeline_thread *thread, struct tally_counters **ret);
/* Sorts the threads with tally_compare_threads. tally_find must not be called afterwards. */
void tally_sort(struct tally *t);
/* Order by tid, then by begin, then by pid, with NULL first: the same order in each run of the
 * program. */
int tally_compare_threads(const struct timeline_thread *a, const struct timeline_thread *b);
