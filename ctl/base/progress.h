/*
 * A line on standard error that says how far a decode is. Only one decode is shown at a time; the
 * decode may run in a thread of its own.
 */
#pragma once

#include <stdint.h>

/* A decode that is shorter shows nothing. */
#define PROGRESS_PATIENCE_NSEC UINT64_C(300000000)

/* A decode of NAME (untrusted, borrowed until the end) begins. Nothing is shown unless standard
 * error is a terminal, and nothing in the first PATIENCE_NSEC. */
void progress_begin(const char *name, uint64_t patience_nsec);
/* PERCENT of it are done. */
void progress_tell(unsigned percent);
/* The decode is done, or its lines begin to appear on the terminal: removes the line. */
void progress_end(void);
/* Shows no progress from now on: the decode writes to the terminal itself. */
void progress_never(void);
