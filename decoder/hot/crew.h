/*
 * Threads that exist before they are needed. Where a process may not start threads any more, as in
 * the worker's sandbox, the threads that it has can still be given work: to walk ahead (ahead.c),
 * or to wait for a channel's end (worker/main.c). The owner calls all functions, from one thread at
 * a time.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* At most 64 threads that walk ahead (ahead.c), and one that waits for something else. */
#define CREW_MAX_THREADS 65u

struct crew;
struct crew_thread;

/* Starts THREADS threads, or as many as can be had. When this returns each waits for work, and from
 * then on asks the kernel for nothing but to wait. 0 or -ENOMEM. */
int crew_new(uint32_t threads, struct crew **ret);
/* To be called behind crew_finish() for all that was started. C may be NULL. */
void crew_free(struct crew *c);
/* The number of threads that have nothing to do. */
uint32_t crew_idle(struct crew *c);
/* Has an idle thread call FN(USERDATA). NULL: no thread is idle. */
struct crew_thread *crew_start(struct crew *c, void (*fn)(void *userdata), void *userdata);
/* Waits until FN has returned: the thread is idle then. */
void crew_finish(struct crew_thread *t);
