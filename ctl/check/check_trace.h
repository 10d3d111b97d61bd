/*
 * The self-test `ptsnapctl check --trace'.
 *
 * The self-test runs ptsnap-walk, a program whose every branch is known from a seed
 * (walk_program.S). The branches go through the rings, a snapshot and the decoder, and must come
 * out as the model (walk_model.c) computes them. check_trace.c runs the test in a child process.
 * check_trace_live.c starts a walk on each CPU of a running recorder; check_trace_emulated.c starts
 * a recorder with two walks. Both give a bundle. check_trace_decode.c has the bundle decoded and
 * assigns the branches to walks, which walk_match.c compares with the model. check_trace_result.c
 * prints the result.
 *
 * Decisions that govern the room:
 * - The test compares with a model and not with a checksum: a ring begins anywhere, and interrupts
 *   and gaps may come anywhere. The model says which branch is wrong, and what it should have been.
 * - A running recorder is not disturbed: the snapshot is not decoded there, and only the walks'
 *   CPUs and code are decoded here.
 * - The test runs in a child process in a directory of its own. Neither files nor processes are
 *   left behind, however the test ends.
 */
#pragma once

#include <stdint.h>

#include "ctl/base/option.h"

enum check_trace_source {
	CHECK_TRACE_AUTO = 0, /* intel_pt where this host has it, else emulated */
	CHECK_TRACE_INTEL_PT, /* of the running recorder, at the socket of the settings */
	CHECK_TRACE_EMULATED, /* of a recorder that is started for the test */
};

struct check_trace_options {
	const struct settings *settings; /* socket, json, timeout, quiet */
	enum check_trace_source source;
	uint64_t run_usec; /* how long the walks run before the snapshot; 0: the default */
	/* Programs. NULL: the installed ones, or those of the build tree. */
	const char *walk, *daemon, *worker;
};

/* Prints one page, or JSON with --json, on standard output. Returns an exit code: 0 if all branches
 * are equal, 1 after a difference or a failure, 6 if tracing is not possible, 124 after the
 * time-out, or another exit_code. The cause was printed. */
int check_trace(const struct check_trace_options *options);
