/*
 * Work that a stranger can hold up for ever, done by a thread that can be left behind: tasks go to
 * it and come back through two bounded queues.
 */
#pragma once

#include <stdint.h>

/* Tasks that may be asked for at once. */
#define ASIDE_ROOM 1024u
/* Threads that stand in a task for good, beyond which nothing is done. */
#define ASIDE_STUCK_MAX 6u

#define ASIDE_FULL 1

struct aside;

/* Begins what the caller allocates. */
struct aside_task {
	uint64_t tag; /* the caller's; not changed once it was asked for */
};

/* All but run() are called by whoever is the last to need it. */
struct aside_ops {
	/* What a thread works with, for itself alone. 0 or -errno. */
	int (*context_new)(const char *proc, void **ret);
	void (*context_free)(void *context);
	/* In the thread: touches nothing but these two. */
	void (*run)(void *context, struct aside_task *task);
	/* TASK may have been run. */
	void (*task_free)(struct aside_task *task);
	/* TASK waited behind one that was given up, and goes to another thread: N_STUCK stand now.
	 * NULL: that changes nothing. */
	void (*moved)(struct aside_task *task, unsigned int n_stuck);
};

/* OPS is borrowed for ever, PROC copied. The thread begins with the first task. 0 or -errno. */
int aside_new(const struct aside_ops *ops, const char *proc, struct aside **ret);
/* Waits for no thread: one that stands in a task goes when that returns. */
void aside_free(struct aside *a);
/* Readable when a task has been done; borrowed. */
int aside_fd(const struct aside *a);
/* Until another one has been done. Take all after it, not before. */
void aside_clear(struct aside *a);
/* 0: TASK is taken over. ASIDE_FULL: not now, others must be taken first. -EAGAIN: too many
 * threads stand. -errno: there is no thread to be had. */
int aside_ask(struct aside *a, struct aside_task *task);
/* One that has been done, the caller's again; NULL: none. */
struct aside_task *aside_take(struct aside *a);
/* Waits at most NS for one that has been done. 0, also when there is none; -errno: there is no
 * thread. */
int aside_wait(struct aside *a, uint64_t ns);
/* Tasks that were neither taken nor given up. */
unsigned int aside_pending(const struct aside *a);
/* When all that was done has been taken: leaves a thread that has been at one task for more than NS
 * to itself; another goes on with the tasks behind it. Gives that task, which is still taken when
 * it is done one day: until then only what run() does not change is to be read or written. NULL:
 * there is none. */
struct aside_task *aside_give_up(struct aside *a, uint64_t ns);
/* Threads that stand. */
unsigned int aside_stuck(struct aside *a);
