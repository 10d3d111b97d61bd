/*
 * Whose stretch of user code it is. The sideband knows to the nanosecond who had a CPU from when to
 * when (turns); the trace knows exactly what was executed, and only about when (stretches). Order,
 * time and evidence put the ones into the others. Knows no packets and no code.
 *
 * What is certain: stretches and turns come in the same order; a stretch lies within one turn; the
 * idle task has none. What is likely, and counted as a cost where it is not so: a thread enters
 * user code where it left it, a turn has a stretch, one that was preempted left user code
 * asynchronously. A stretch is somebody's only when every other way to put the stretches around it
 * costs a good deal more.
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
	TURNS_CALL_UNKNOWN, /* one, of whatever kind */
	TURNS_CALL_FORK,    /* one that makes a thread */
	TURNS_CALL_EXEC,
	TURNS_CALL_EXIT,
	TURNS_CALL_OTHER,
};

/* How a thread left user code, so where it enters again. */
struct turns_left {
	uint64_t ip;	/* 0: not known; of a system call: behind it */
	uint64_t again; /* the system call itself, which may be restarted */
	/* The same of where a signal had interrupted it; 0: none is known of. */
	uint64_t interrupted_ip, interrupted_again;
	uint64_t since;	  /* not before that, perf ns; 0: not known */
	uint32_t context; /* number of the code it was in; 0: not known */
	uint8_t how;	  /* enum turns_how */
	bool sigreturn;	  /* the system call goes back to there, and does not block */
};

/* LEFT is of a stretch that began at ENTER, and BEFORE is how its thread had left user code before
 * that (NULL: not known): which signals have interrupted it. */
void turns_carry(const struct turns_left *before, uint64_t enter, struct turns_left *left);

struct turns_turn {
	uint64_t since, until;		      /* perf ns */
	const struct timeline_thread *thread; /* NULL: nobody, unless it is uncertain */
	/* Last, as far as was decoded; of a thread's first turn as long as it has no stretch: where
	 * the system call that made the thread was. */
	struct turns_left left;
	/* The same thread's turn before, on any CPU; TURNS_NONE: none is known. */
	uint32_t before_cpu, before;
	/* The first turn of this CPU since which the thread ran nowhere else. */
	uint32_t run;
	/* The first turn from this one on that a stretch may lie in, and the first one behind that
	 * has another run: TURNS_NONE: there is none. */
	uint32_t open, other;
	bool uncertain, preempted;
	bool born;   /* the first of a thread whose making is known */
	bool silent; /* a thread without user code: it has no stretches */
	bool noted;  /* it is among those of its CPU */
};

struct turns_cpu {
	struct turns_turn *list;
	size_t n;
	uint32_t passed; /* turns before this one are over: how they were left is final */
	uint32_t *noted; /* the turns that something is known of in `left` */
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
	bool disbelieved; /* in this replay there were too many at once for any to be believed */
	/* Turns with and without a stretch, where that is certain. */
	uint64_t n_used, n_empty;
};

/* 0 or -ENOMEM; lists of N_CPUS CPUs, empty. */
int turns_init(struct turns *t, size_t n_cpus);
void turns_done(struct turns *t);
/* All turns that TIMELINE has of CPU, as number INDEX. 0 or -ENOMEM. */
int turns_load(struct turns *t, size_t index, const struct timeline *timeline, uint32_t cpu);
/* The same, but THREAD has it for ever. */
int turns_give(struct turns *t, size_t index, const struct timeline_thread *thread);
/* When all lists are full: finds before, run, open and other, and births. 0 or -ENOMEM. */
int turns_link(struct turns *t);

/* Before another replay: what the last one learnt of turns as a whole is forgotten. */
void turns_restart(struct turns *t);
/* CPU is to be decoded from its beginning: nothing is known of what was decoded there. */
void turns_forget(struct turns *t, size_t cpu);
/* The last turn of CPU that began at or before TIME; else the first one. */
size_t turns_at(const struct turns_cpu *cpu, uint64_t time);

/* A stretch, as its packets show it. Intervals are wide enough for all rounding. */
struct turns_stretch {
	uint64_t enter_lo, enter_hi, leave_lo, leave_hi; /* perf ns */
	uint64_t enter;					 /* IP */
	struct turns_left left;
	bool broken; /* packets were lost before it */
};

/* What code says of it when it was executed in some turn. */
struct turns_proof {
	unsigned int cost;
	struct turns_left left; /* where the code leads, of a system call */
	uint8_t behind;		/* enum turns_behind: its first instruction */
	bool fresh;		/* a program began since the thread's turn before */
};
#define TURNS_COST_IMPOSSIBLE 8u /* the code does not fit */
#define TURNS_COST_ODD	      4u /* it fits, but leaves user code by no system call */

/* How user code was left in a turn. */
struct turns_place {
	uint32_t turn;
	struct turns_left left;
};

#define TURNS_MAX_LEFTS 6u /* turns of which a way remembers where they were left */

/* One way to put a CPU's stretches so far into its turns: the last one into this. */
struct turns_past {
	uint32_t turn;
	unsigned int cost;
	struct turns_left before; /* how the thread had left user code before its last stretch */
	bool has_before;	  /* else that is what the turns know */
	/* What ways do not agree in, oldest first: turns known to none but this way. */
	uint32_t n_lefts;
	struct turns_place lefts[TURNS_MAX_LEFTS];
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
	/* Called where that leaves a choice: stretch I, 0 the one that is asked for, all of
	 * it; NULL: there is none. It stays until the answer. */
	const struct turns_stretch *(*stretch)(void *userdata, size_t i);
	/* Called where time leaves a choice, once for each I and TURN. */
	void (*proof)(void *userdata, size_t i, uint32_t turn, struct turns_proof *ret);
	/* Which system call ends at LEFT. */
	enum turns_call (*call)(void *userdata, const struct turns_left *left);
	void *userdata;
};

struct turns_answer {
	const struct timeline_thread *thread; /* NULL: not decided */
	/* Not decided, but all that it may be are threads of this one's process; NULL: they are
	 * not. */
	const struct timeline_thread *process;
	uint32_t first, last; /* the turns that it may lie in; TURNS_NONE: none */
	/* Not decided, and where a thread left user code on another CPU would tell more. */
	bool wait;
	bool same;		  /* the question's state is that to go on from, else this is: */
	struct turns_state state; /* to go on from */
};

/* Whose is stretch 0? Changes nothing: the answer's state is for the caller to take over. */
void turns_decide(const struct turns_question *q, struct turns_answer *ret);
/* Where CPU stands when its trace begins within [LO, HI] (perf ns). */
void turns_begin(const struct turns *t, size_t cpu, uint64_t lo, uint64_t hi,
		 struct turns_state *ret);
/* A CPU came from BEFORE to NOW and nothing was lost on the way: which turns have stretches is
 * learnt from that. */
void turns_count(struct turns *t, size_t cpu, const struct turns_state *before,
		 const struct turns_state *now);
/* The stretch of STATE, which began at ENTER, was left; LEFT: NULL: its code was not walked, as it
 * is not known whose it is. */
void turns_leave(struct turns *t, size_t cpu, struct turns_state *state, uint64_t enter,
		 const struct turns_left *left);
/* The turn that the last stretch lies in; TURNS_NONE: it is not known, or may be several. */
uint32_t turns_now(const struct turns_state *state);
/* And user code was not entered again on that CPU before the time between SINCE and UNTIL was over:
 * who was made by its thread then enters where it left. */
void turns_bear(struct turns *t, size_t cpu, const struct turns_state *state, uint64_t since,
		uint64_t until);
/* Whether a stretch cannot lie in TURN. */
static inline bool turns_is_closed(const struct turns_turn *turn)
{
	return turn->silent || (turn->thread == NULL && !turn->uncertain);
}
/* Whether a thread may have been made by one of process PID between SINCE and UNTIL, perf ns. */
bool turns_has_birth(const struct turns *t, uint32_t pid, uint64_t since, uint64_t until);
