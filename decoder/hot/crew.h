/*
 * Threads that are there before they are needed. Where a process may start none any more, as in the
 * worker's sandbox, those that it has can still be given work: to walk ahead (ahead.c), to look at
 * a channel (worker/main.c). Whoever owns them calls all of this, one thread at a time.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Those that walk ahead, at most 64 (ahead.c), and one that waits for something else. */
#define CREW_MAX_THREADS 65u

struct crew;
struct crew_thread;

/* As many of THREADS as there can be; each waits for work when this returns, and starts nothing and
 * asks the kernel for nothing but to wait from then on. 0 or -ENOMEM. */
int crew_new(uint32_t threads, struct crew **ret);
/* Behind crew_finish() of all that was started. NULL: nothing. */
void crew_free(struct crew *c);
/* Threads that have nothing to do. */
uint32_t crew_idle(struct crew *c);
/* One of them that has nothing to do calls FN(USERDATA). NULL: there is none. */
struct crew_thread *crew_start(struct crew *c, void (*fn)(void *userdata), void *userdata);
/* Until FN has returned: the thread has nothing to do any more. */
void crew_finish(struct crew_thread *t);
