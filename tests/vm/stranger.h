/*
 * Other programs that use perf events, as they may run beside the recorder. Called by feeder.c. All
 * return an exit status.
 */
#pragma once

/* Opens intel_pt on CPU and traces, prints "held", waits for a signal that ends it. */
int stranger_hold(unsigned cpu);
/* Enables an event there, and lets a task with a pinned event of its own come and go there.
 */
int stranger_disturb(unsigned cpu);
/* Tries on CPU what the recorder relies on, each with a line; 1: the kernel does otherwise. */
int stranger_facts(unsigned cpu);
