/*
 * Decides which thread a stretch of user code belongs to. The sideband says to the nanosecond which
 * thread had a CPU from when to when (turns). The trace says exactly what was executed, and only
 * roughly when (stretches). Order, time and evidence put each stretch into a turn.
 *
 * turns.c is the table of turns and what is learnt about them. turns_decide.c follows all ways to
 * put stretches into turns, and turns_enter.c says which ways are possible. scan.c finds the
 * stretches of a trace by packets alone. clocks.c converts the trace's clock to the sideband's, and
 * shift.c finds how far the two are apart. Only scan.c and clocks.c know packets; no file here
 * knows code: the caller says what code tells (turns_question.proof).
 *
 * Decisions that govern the room:
 * - Stretches and turns come in the same order, a stretch lies within one turn, and the idle task
 *   has no stretches.
 * - A thread enters user code where it left it, or where a signal's handler begins. No handler
 *   begins behind a system call that returns, or at an instruction that was reached from the one
 *   before it. Behind the system call that ends a handler a thread may enter anywhere, and so may a
 *   thread in a new program, and a thread of which nothing is known.
 * - In a turn that certainly has no stretch a thread stays where it was, unless a program began.
 * - A stretch is given to a thread only when every possible way to put it and the stretches around
 *   it into turns gives it to that thread. Nothing is decided by what is likely: a turn may have no
 *   stretch, and a thread may leave user code in any manner.
 * - What is not followed is possible: ways are joined by forgetting what they do not agree on, and
 *   never dropped, and the search ends early only with an open question.
 * - An undecided stretch is not forgotten: each way that is left knows by itself how threads left
 *   user code on it, until one way is left.
 * - Before anything is decoded, the newest stretches of each CPU are compared with turns and
 *   mappings. Where many turns contradict them, and another offset of the sideband would explain
 *   that and contradict hardly anything, the offset is applied and reported. Candidates are the
 *   intervals of offsets that suit each stretch, added up; no grid is tried.
 * - Times and addresses are a stranger's: no question may go through all turns, searches are
 *   bounded, and numbers of a clock are computed with 128 bits and checked.
 *
 * A struct turns belongs to a replay, which fills it once from the timeline (borrowed) and tells it
 * what the decode learns. The functions are called by one thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sideband/timeline/timeline.h"

#define TURNS_NONE	 UINT32_MAX
#define TURNS_CANDIDATES 16u /* for one stretch */
#define TURNS_WINDOW	 48u /* stretches looked at before one is decided */

enum turns_call {
	TURNS_CALL_NONE,    /* no system call */
	TURNS_CALL_UNKNOWN, /* a system call of unknown number */
	TURNS_CALL_FORK,    /* a system call that makes a thread */
	TURNS_CALL_LAST,    /* a system call that does not return: exit, or the end of a handler */
	TURNS_CALL_OTHER,
};

/* Where a thread left user code, and thereby where it enters again. */
struct turns_left {
	uint64_t ip;	  /* 0: not known, so it may enter anywhere; of a system call: behind it */
	uint64_t again;	  /* the system call itself, which may be restarted; 0: it was none */
	uint32_t context; /* number of the context that the thread was in; 0: not known */
	/* No handler begins at `ip`: it is behind a system call, or the instruction before it was
	 * executed and led to it. */
	bool inside;
};

struct turns_turn {
	uint64_t since, until;		      /* perf ns */
	const struct timeline_thread *thread; /* NULL: the idle task, unless it is uncertain */
	const struct space *space;	      /* of the thread at the turn's end; NULL: not known */
	/* Where the thread left user code last, as far as was decoded. */
	struct turns_left left;
	/* The same thread's turn before, on any CPU; TURNS_NONE: none is known. */
	uint32_t before_cpu, before;
	/* The first turn of this CPU since which the thread ran on no other CPU. */
	uint32_t run;
	/* The first turn from this one on that a stretch may lie in, and the first such turn behind
	 * that one with another `run`. TURNS_NONE: there is none. */
	uint32_t open, other;
	bool uncertain;
	bool born;    /* the first turn of a thread whose making is known */
	bool silent;  /* of a thread without user code, which has no stretches */
	bool noted;   /* it is in the CPU's list `noted` */
	bool hidden;  /* since `before` the thread may have had a turn that is not known */
	bool fresh;   /* a program began since `before` ended, and before this turn ended */
	bool stopped; /* the CPU's trace was stopped within: what was executed then is not known */
	uint32_t dark_begins, dark_ends; /* of so many times in which the trace was off */
	uint32_t stops;			 /* turns of this CPU that are `stopped`, up to this one */
};

struct turns_cpu {
	struct turns_turn *list;
	size_t n;
	uint32_t passed; /* turns before this one are over: their `left` is final */
	uint32_t *noted; /* the turns whose `left` says something, in order */
	size_t n_noted;
	uint64_t begin; /* perf ns: of what was executed before nothing is known */
	uint32_t cpu;	/* its number; TURNS_NONE: its turns are not the timeline's */
};

/* A time, perf ns. */
struct turns_span {
	uint64_t since, until;
};

struct turns {
	struct turns_cpu *cpus;
	size_t n_cpus;
	struct turns_span *unseen;
	size_t n_unseen, max_unseen;
	bool lossy; /* records were lost, so the making of threads may be unknown */
};

/* 0 or -ENOMEM; lists of N_CPUS CPUs, empty. */
int turns_init(struct turns *t, size_t n_cpus);
void turns_done(struct turns *t);
/* Takes all turns that TIMELINE has of CPU, as number INDEX. HORIZON: before that time, perf ns,
 * records were forgotten, so any thread may have had the CPU before its first turn;
 * MANIFEST_ABSENT: none were. 0 or -ENOMEM. */
int turns_load(struct turns *t, size_t index, const struct timeline *timeline, uint32_t cpu,
	       uint64_t horizon);
/* The same, but THREAD has the CPU for ever. */
int turns_give(struct turns *t, size_t index, const struct timeline_thread *thread);
/* The trace of CPU number INDEX was stopped at TIME, perf ns; nobody knows when it went on. */
void turns_stop(struct turns *t, size_t index, uint64_t time);
/* The trace of CPU number INDEX was off from SINCE to UNTIL, perf ns. */
void turns_dark(struct turns *t, size_t index, uint64_t since, uint64_t until);
/* From SINCE to UNTIL (perf ns) any thread may have run on a CPU of which there are no turns. 0 or
 * -ENOMEM. */
int turns_unseen(struct turns *t, uint64_t since, uint64_t until);
/* When all lists are full, and all stops are told: finds the other members of turns. 0 or -ENOMEM.
 */
int turns_link(struct turns *t);

/* CPU is to be decoded from its beginning: nothing is known of what was decoded there. */
void turns_forget(struct turns *t, size_t cpu);
/* The last turn of CPU that began at or before TIME; else the first turn. */
size_t turns_at(const struct turns_cpu *cpu, uint64_t time);

/* Whether THREAD, which executes on CPU number INDEX at TIME, had a turn since SINCE (perf ns) that
 * the trace of its CPU shows not at all, or not from its beginning, because the trace begins later.
 */
bool turns_untraced(const struct turns *t, size_t index, uint64_t time,
		    const struct timeline_thread *thread, uint64_t since);

/* A stretch, as its packets show it. Intervals are wide enough for all rounding. */
struct turns_stretch {
	uint64_t enter_lo, enter_hi, leave_lo, leave_hi; /* perf ns */
	uint64_t enter;					 /* IP */
	struct turns_left left;
	bool broken; /* packets were lost before it */
};

/* The evidence of the code, if a stretch was executed in some turn. */
struct turns_proof {
	bool impossible;	/* another code was executed than the thread has there */
	bool fresh;		/* a program began since the thread's turn before */
	uint8_t behind;		/* enum turns_call: what the stretch's first instruction follows */
	uint32_t context;	/* 0: not known */
	struct turns_left left; /* where the code leads; ip 0: not known */
};

/* Where user code was left in a turn. */
struct turns_left_of {
	uint32_t turn;
	struct turns_left left;
};

#define TURNS_MAX_LEFTS 10u /* turns of which a way remembers how they were left */

/* One way to put a CPU's stretches so far into its turns: the last stretch into TURN. */
struct turns_past {
	uint32_t turn;
	/* VAGUE: of turns from UNSURE on only this way's `lefts` tell. What the turns themselves
	 * know need not be true of this way. */
	bool vague;
	uint32_t unsure;
	bool loose; /* the last stretch may lie in a later turn */
	/* Turns about which not all ways agree, as this way knows them, in order. */
	uint32_t n_lefts;
	struct turns_left_of lefts[TURNS_MAX_LEFTS];
};

/* Where a CPU stands: the turns that its last stretch may lie in, all of one thread or of several.
 */
struct turns_state {
	struct turns_past at[TURNS_CANDIDATES];
	size_t n; /* 0: anywhere */
};

struct turns_question {
	struct turns *turns;
	size_t cpu; /* index */
	const struct turns_state *state;
	/* The stretch that is asked for, as far as is known without looking ahead. */
	const struct turns_stretch *first;
	/* Called where FIRST leaves a choice: all of stretch I, where 0 is the one that is asked
	 * for. NULL: there is none. The result stays valid until the answer. */
	const struct turns_stretch *(*stretch)(void *userdata, size_t i);
	/* Called where time leaves a choice, once for each I and TURN. */
	void (*proof)(void *userdata, size_t i, uint32_t turn, struct turns_proof *ret);
	/* Whether contexts A and B have the same code at IP. */
	bool (*alike)(void *userdata, uint32_t a, uint32_t b, uint64_t ip);
	void *userdata;
};

struct turns_answer {
	const struct timeline_thread *thread; /* NULL: not decided */
	/* Not decided, but all candidates are threads of this one's process; NULL: they are not. */
	const struct timeline_thread *process;
	uint32_t first, last; /* the turns that the stretch may lie in; TURNS_NONE: none */
	/* Not decided: all turns that it may lie in are of these threads. More than there is room
	 * for, or any: n_threads is 0. */
	const struct timeline_thread *threads[TURNS_CANDIDATES];
	size_t n_threads;
	/* Not decided, and how a thread left user code on another CPU would tell more. */
	bool wait;
	bool same;		  /* the question's state is that to go on from, else this is: */
	struct turns_state state; /* to go on from */
};

/* Decides which thread stretch 0 belongs to. Changes nothing: the caller takes over the answer's
 * state. */
void turns_decide(const struct turns_question *q, struct turns_answer *ret);
/* Where CPU stands when its trace begins within [LO, HI] (perf ns). */
void turns_begin(struct turns *t, size_t cpu, uint64_t lo, uint64_t hi, struct turns_state *ret);
/* The stretch of STATE was left. LEFT NULL: its code was not walked, as the thread is not known. */
void turns_leave(struct turns *t, size_t cpu, struct turns_state *state,
		 const struct turns_left *left);
/* Behind the trace of CPU: what was executed since the last stretch of STATE is not known. */
void turns_end(struct turns *t, size_t cpu, const struct turns_state *state);
/* The turn that the last stretch lies in; TURNS_NONE: not known, or several are possible. */
uint32_t turns_now(const struct turns_state *state);
/* Whether no stretch can lie in TURN. */
static inline bool turns_is_closed(const struct turns_turn *turn)
{
	return turn->silent || (!turn->thread && !turn->uncertain);
}
