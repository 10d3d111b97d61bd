/*
 * Work that a stranger can hold up for ever, done by a thread that can be left behind.
 *
 * The loop asks for tasks and takes them when they have been run; it never waits for a thread that
 * hangs. All functions are for the loop's thread, except that run() and context_free() are called
 * by the other one.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Tasks that may be pending at once. */
#define ASIDE_ROOM 1024u
/* When this many threads hang, no more are started before one comes back. */
#define ASIDE_STUCK_MAX 6u

#define ASIDE_FULL 1

struct aside;

/* The beginning of a task, which the caller allocates. */
struct aside_task {
	uint64_t tag;  /* the caller's; run() must not change it */
	bool given_up; /* by aside_give_up() */
	/* Private to aside.c: */
	struct aside_task *next;
};

struct aside_ops {
	/* Make and free what a thread works with, for itself alone. May both be NULL. 0 or -errno.
	 */
	int (*context_new)(const char *proc, void **ret);
	void (*context_free)(void *context);
	/* Runs TASK, in the thread. Touches nothing but its arguments. */
	void (*run)(void *context, struct aside_task *task);
	/* Frees TASK, which may have been run. Called by the last thread that has it. */
	void (*task_free)(struct aside_task *task);
	/* TASK waits behind one that was given up, and another thread will run it: N_STUCK threads
	 * hang now. May be NULL. */
	void (*moved)(struct aside_task *task, unsigned int n_stuck);
};

/* OPS must be static. PROC, for context_new(), is copied. The thread starts with the first task. 0
 * or -errno. */
int aside_new(const struct aside_ops *ops, const char *proc, struct aside **ret);
/* Frees all tasks. Does not wait: a thread that hangs ends when its task returns. */
void aside_free(struct aside *a);
/* A descriptor that is readable when a task has been run. Borrowed. */
int aside_fd(const struct aside *a);
/* Makes the descriptor unreadable until another task has been run. Take all tasks after this call.
 */
void aside_clear(struct aside *a);
/* Asks for TASK. 0: it is taken over. ASIDE_FULL: take tasks first. -EAGAIN: too many threads hang.
 * -errno: no thread can be started. */
int aside_ask(struct aside *a, struct aside_task *task);
/* Returns a task that has been run and is the caller's again. NULL: none. */
struct aside_task *aside_take(struct aside *a);
/* Waits at most NS for a task that has been run. 0, also if there is none; -errno: there is no
 * thread. */
int aside_wait(struct aside *a, uint64_t ns);
/* Tasks that were neither taken nor given up. */
unsigned int aside_pending(const struct aside *a);
/*
 * Call it when all tasks that have been run are taken. If the thread has been in one task for more
 * than NS, leaves the thread behind, and another one goes on with the tasks behind it. Returns the
 * task; NULL: none. When the task returns one day, aside_take() returns it, with given_up set.
 * Until then the caller may touch only what run() does not change.
 */
struct aside_task *aside_give_up(struct aside *a, uint64_t ns);
/* The number of threads that hang. */
unsigned int aside_stuck(struct aside *a);
