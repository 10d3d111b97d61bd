/*
 * Decides which thread a stretch of user code belongs to. The sideband says to the nanosecond which
 * thread had a CPU from when to when (turns). The trace says exactly what was executed, and only
 * roughly when (stretches). Order, time and evidence put each stretch into a turn.
 *
 * turns.c is the table of turns and what is learnt about them. turns_decide.c searches for the
 * cheapest way to put stretches into turns, and turns_cost.c says what a way costs. scan.c finds
 * the stretches of a trace by packets alone. clocks.c converts the trace's clock to the sideband's,
 * and shift.c finds how far the two are apart. Only scan.c and clocks.c know packets; no file here
 * knows code: the caller says what code tells (turns_question.proof).
 *
 * Decisions that govern the room:
 * - Certain: stretches and turns come in the same order, a stretch lies within one turn, and the
 *   idle task has no stretches.
 * - Likely, and a cost where it is not so: a thread enters user code where it left it, a turn has a
 *   stretch, and a thread that was preempted left user code asynchronously.
 * - A stretch is given to a thread only when every other way to put the stretches around it costs a
 *   good deal more. The more turns a stretch may lie in, the larger the difference must be.
 * - An undecided stretch is not forgotten: each way that is left knows by itself how threads left
 *   user code on it, until one way is left.
 * - Before anything is decoded, the newest stretches of each CPU are compared with turns and
 *   mappings. Where many turns contradict them, and another offset of the sideband would explain
 *   that and contradict hardly anything, the offset is applied and reported. Candidates are the
 *   intervals of offsets that suit each stretch, added up; no grid is tried.
 * - Times and addresses are a stranger's: no question may go through all turns or births, searches
 *   are bounded, and numbers of a clock are computed with 128 bits and checked.
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

enum turns_how { TURNS_HOW_UNKNOWN, TURNS_HOW_SYSCALL, TURNS_HOW_ASYNC };

enum turns_call {
	TURNS_CALL_NONE,    /* no system call */
	TURNS_CALL_UNKNOWN, /* a system call of unknown number */
	TURNS_CALL_FORK,    /* a system call that makes a thread */
	TURNS_CALL_EXEC,
	TURNS_CALL_EXIT,
	TURNS_CALL_OTHER,
};

/* How a thread left user code, and thereby where it enters again. */
struct turns_left {
	uint64_t ip;	/* 0: not known; of a system call: behind it */
	uint64_t again; /* the system call itself, which may be restarted */
	/* ip and again of the code that a signal interrupted; 0: none is known. */
	uint64_t interrupted_ip, interrupted_again;
	uint64_t since;	  /* no earlier than that, perf ns; 0: not known */
	uint32_t context; /* number of the context that the thread was in; 0: not known */
	uint8_t how;	  /* enum turns_how */
	bool sigreturn;	  /* the system call ends a signal handler, and does not block */
};

/* Tells LEFT which signals have interrupted its thread: LEFT is of a stretch that began at ENTER,
 * and BEFORE is how the thread had left user code before that stretch (NULL: not known). */
void turns_carry_signals(const struct turns_left *before, uint64_t enter, struct turns_left *left);

struct turns_turn {
	uint64_t since, until;		      /* perf ns */
	const struct timeline_thread *thread; /* NULL: the idle task, unless it is uncertain */
	/* How the thread left user code last, as far as was decoded; while a thread's first turn
	 * has no stretch: where the system call that made the thread was. */
	struct turns_left left;
	/* The same thread's turn before, on any CPU; TURNS_NONE: none is known. */
	uint32_t before_cpu, before;
	/* The first turn of this CPU since which the thread ran on no other CPU. */
	uint32_t run;
	/* The first turn from this one on that a stretch may lie in, and the first such turn behind
	 * that one with another `run`. TURNS_NONE: there is none. */
	uint32_t open, other;
	bool uncertain, preempted;
	bool born;   /* the first turn of a thread whose making is known */
	bool silent; /* of a thread without user code, which has no stretches */
	bool noted;  /* it is in the CPU's list `noted` */
};

struct turns_cpu {
	struct turns_turn *list;
	size_t n;
	uint32_t passed; /* turns before this one are over: their `left` is final */
	uint32_t *noted; /* the turns whose `left` says something */
	size_t n_noted;
};

/* The first turn of a thread whose FORK is known. */
struct turns_birth {
	uint64_t time; /* of the FORK, perf ns */
	uint32_t pid, ppid;
	uint32_t cpu, turn;
};

struct turns {
	struct turns_cpu *cpus;
	size_t n_cpus;
	struct turns_birth *births; /* in order of time */
	size_t n_births;
	bool lossy;	  /* records were lost, so births may be missing */
	bool disbelieved; /* too many births at once in this replay: none is believed */
	/* Turns with and without a stretch, where that is certain. */
	uint64_t n_used, n_empty;
};

/* 0 or -ENOMEM; lists of N_CPUS CPUs, empty. */
int turns_init(struct turns *t, size_t n_cpus);
void turns_done(struct turns *t);
/* Takes all turns that TIMELINE has of CPU, as number INDEX. 0 or -ENOMEM. */
int turns_load(struct turns *t, size_t index, const struct timeline *timeline, uint32_t cpu);
/* The same, but THREAD has the CPU for ever. */
int turns_give(struct turns *t, size_t index, const struct timeline_thread *thread);
/* When all lists are full: finds before, run, open and other, and births. 0 or -ENOMEM. */
int turns_link(struct turns *t);

/* Before another replay: forgets what the last one learnt of turns as a whole. */
void turns_restart(struct turns *t);
/* CPU is to be decoded from its beginning: nothing is known of what was decoded there. */
void turns_forget(struct turns *t, size_t cpu);
/* The last turn of CPU that began at or before TIME; else the first turn. */
size_t turns_at(const struct turns_cpu *cpu, uint64_t time);

/* A stretch, as its packets show it. Intervals are wide enough for all rounding. */
struct turns_stretch {
	uint64_t enter_lo, enter_hi, leave_lo, leave_hi; /* perf ns */
	uint64_t enter;					 /* IP */
	struct turns_left left;
	bool broken; /* packets were lost before it */
};

/* The evidence of the code, if a stretch was executed in some turn. */
struct turns_proof {
	unsigned int cost;
	struct turns_left left; /* where the code leads, if that is a system call */
	uint8_t behind;		/* enum turns_call: what the stretch's first instruction follows */
	bool fresh;		/* a program began since the thread's turn before */
};
#define TURNS_COST_IMPOSSIBLE 8u /* the code does not fit */
#define TURNS_COST_ODD	      4u /* the code fits, but leaves user code by no system call */

/* How user code was left in a turn. */
struct turns_left_of {
	uint32_t turn;
	struct turns_left left;
};

#define TURNS_MAX_LEFTS 6u /* turns of which a way remembers how they were left */

/* One way to put a CPU's stretches so far into its turns: the last stretch into TURN. */
struct turns_past {
	uint32_t turn;
	unsigned int cost;
	struct turns_left before; /* how the thread had left user code before its last stretch */
	bool has_before;	  /* false: BEFORE is what the turns know */
	/* Turns about which not all ways agree, as this way knows them, oldest first. */
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
	uint64_t end; /* behind the last stretch nothing was executed up to then; 0: not known */
	/* The stretch that is asked for, as far as is known without looking ahead. */
	const struct turns_stretch *first;
	/* Called where FIRST leaves a choice: all of stretch I, where 0 is the one that is asked
	 * for. NULL: there is none. The result stays valid until the answer. */
	const struct turns_stretch *(*stretch)(void *userdata, size_t i);
	/* Called where time leaves a choice, once for each I and TURN. */
	void (*proof)(void *userdata, size_t i, uint32_t turn, struct turns_proof *ret);
	/* The system call that ends at LEFT. */
	enum turns_call (*call)(void *userdata, const struct turns_left *left);
	void *userdata;
};

struct turns_answer {
	const struct timeline_thread *thread; /* NULL: not decided */
	/* Not decided, but all candidates are threads of this one's process; NULL: they are not. */
	const struct timeline_thread *process;
	uint32_t first, last; /* the turns that the stretch may lie in; TURNS_NONE: none */
	/* Not decided, and how a thread left user code on another CPU would tell more. */
	bool wait;
	bool same;		  /* the question's state is that to go on from, else this is: */
	struct turns_state state; /* to go on from */
};

/* Decides which thread stretch 0 belongs to. Changes nothing: the caller takes over the answer's
 * state. */
void turns_decide(const struct turns_question *q, struct turns_answer *ret);
/* Where CPU stands when its trace begins within [LO, HI] (perf ns). */
void turns_begin(const struct turns *t, size_t cpu, uint64_t lo, uint64_t hi,
		 struct turns_state *ret);
/* CPU came from BEFORE to NOW and no packets were lost on the way: learns from that which turns
 * have stretches. */
void turns_count(struct turns *t, size_t cpu, const struct turns_state *before,
		 const struct turns_state *now);
/* The stretch of STATE, which began at ENTER, was left. LEFT NULL: its code was not walked, as the
 * thread is not known. */
void turns_leave(struct turns *t, size_t cpu, struct turns_state *state, uint64_t enter,
		 const struct turns_left *left);
/* The turn that the last stretch lies in; TURNS_NONE: not known, or several are possible. */
uint32_t turns_now(const struct turns_state *state);
/* The stretch of STATE was left between SINCE and UNTIL by a system call that may have made
 * threads, and user code was not entered again on that CPU before then: such threads enter where it
 * left. */
void turns_forked(struct turns *t, size_t cpu, const struct turns_state *state, uint64_t since,
		  uint64_t until);
/* Whether no stretch can lie in TURN. */
static inline bool turns_is_closed(const struct turns_turn *turn)
{
	return turn->silent || (!turn->thread && !turn->uncertain);
}
/* Whether a thread may have been made by a thread of process PID between SINCE and UNTIL, perf ns.
 */
bool turns_has_birth(const struct turns *t, uint32_t pid, uint64_t since, uint64_t until);
