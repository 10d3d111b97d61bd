/*
 * Other programs that use perf events beside the recorder, for feeder.c. All functions return an
 * exit status.
 */
#pragma once

/* Opens intel_pt on CPU and traces, prints "held", and waits for a terminating signal. */
int stranger_hold(unsigned cpu);
/* Enables an event on CPU, and runs a task with a pinned event of its own there. */
int stranger_disturb(unsigned cpu);
/* Tests on CPU the kernel behaviour that the recorder relies on, and prints one line each; 1: the
 * kernel behaves differently. */
int stranger_facts(unsigned cpu);
