/*
 * A part of a call stream: of some threads, of a span of time, of one CPU, of some functions.
 *
 * The slicer takes items and hands on those of the slice, so that the result is a call stream
 * again: what is open when the slice begins is FOUND there (a frame without a function keeps its
 * kind), and what is open when it ends is OPEN there. Its instructions count where a frame ends:
 * all of them behind the begin of the slice, none at its end. Numbers of threads and functions
 * stay; those of other threads are missing.
 */
#pragma once

#include <getopt.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ctl/calls/calls.h"
#include "proto/decode_options.h"

/* A place in time, as the user gave it. */
struct slice_time {
	bool given, before_trigger;
	uint64_t ns; /* before the trigger, or from the begin of the trace */
};

/* Zero: everything. Texts are borrowed from the command line. */
struct slice {
	struct slice_time from, to;
	bool has_cpu, has_pid, has_tid;
	uint32_t cpu, pid, tid;
	const char *comm, *function, *image; /* patterns of fnmatch(3) */
};

/* --- Options: --from, --to, --cpu, --pid, --tid, --comm, --function, --image --- */

#define SLICE_OPTIONS 8u
#define SLICE_TID     4u /* the index of --tid */

/* Writes the options for getopt_long(3) to TO; they have the values FIRST, FIRST + 1, ... */
void slice_option_table(struct option to[static SLICE_OPTIONS], int first);
/* Takes the value of option INDEX. 0, or an exit code after a message. */
int slice_option_take(struct slice *s, size_t index, const char *value);
bool slice_is_given(const struct slice *s);
/* The times of S, outside of which nothing is decoded. Calls that are open when S begins are known
 * only if what was before is decoded, too. */
struct decode_slice slice_decode_span(const struct slice *s);
struct decode_slice slice_decode_until(const struct slice *s);
/* The span, and CPU, process, thread and name of S. 0, or an exit code after a message: the
 * decoder's pattern of a name has a limit. */
int slice_decode_all(const struct slice *s, struct decode_slice *ret);

/* The span of time of S in a stream with this head. 0, or -EINVAL: its begin is not before its
 * end. */
int slice_span(const struct slice *s, const struct callstream_item *head, uint64_t *ret_from,
	       uint64_t *ret_to);

/* --- Slicing --- */

struct slicer;

/* SLICE is borrowed. FN gets the items of the slice. 0 or -ENOMEM. */
int slicer_new(const struct slice *slice, calls_fn fn, void *userdata, struct slicer **ret);
void slicer_freep(struct slicer **s);
/* Takes the next item of a stream as calls_read() hands it out; SLICER is a struct slicer. 0; the
 * result of FN if that was not 0; -ENOMEM; -EINVAL: the slice is empty: its begin is not before
 * its end. */
int slicer_take(void *slicer, const struct callstream_item *item);
