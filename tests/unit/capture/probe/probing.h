/*
 * For tests of probes: arms one, keeps its events, and runs children that make events.
 *
 * An event is in the ring before the system call, the signal or the breakpoint that made it
 * returns. So a test waits for its child and reads the ring once; no test waits for a time.
 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "capture/probe/probe.h"

struct seen {
	struct probe_event events[64];
	unsigned n; /* events beyond the array are counted only */
};

/* Arms a probe whose events go to SEEN. Skips the test where this process may not load BPF, or the
 * build has none; fails the test for any other error. */
struct probe *arm(const struct probe_spec *spec, struct seen *seen);
/* Expects that probe_arm() fails with ERROR and a sentence that holds TEXT. Skips likewise. */
void expect_refusal(const struct probe_spec *spec, int error, const char *text);
/* Reads the ring, expects that nothing was lost, and returns the number of events so far. */
unsigned collect(struct probe *p, struct seen *seen);

struct child {
	pid_t pid;
	int go;
};
/* A child that calls RUN(ARG) once child_run() lets it, and exits with 0 if RUN returns. */
struct child child_new(void (*run)(void *arg), void *arg);
/* Lets the child run, waits for its end, and returns its wait status. */
int child_run(struct child *c);
/* The same without letting it run; a child that nothing ends exits by itself. */
int child_wait(struct child *c);
