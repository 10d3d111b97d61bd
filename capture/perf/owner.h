/*
 * A thread that does what others ask, one thing at a time, and waits otherwise. Perf events belong
 * to the thread that opened them; this one opens all PT events and no others, so that one prctl
 * stops them all (kernel/events/core.c, perf_event_task_disable).
 */
#pragma once

struct owner;

/* It runs with the real-time priority 1 where that is permitted: what it does is short, and what
 * waits for it are CPUs to be stopped at a moment. 0 or -errno. */
int owner_new(struct owner **ret);
/* Ends the thread; the events that it opened stay open. */
void owner_free(struct owner *o);
/* Runs FN(ARG) in the thread and waits for its end. From any thread; calls wait for each other. */
void owner_run(struct owner *o, void (*fn)(void *arg), void *arg);
