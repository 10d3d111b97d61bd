/*
 * ptsnapctl check --trace: ptsnap-walk runs, its branches go through the rings, a snapshot and the
 * decoder, and must come out as the model (walk_model.h) says. Called by cmd_check.c.
 */
#pragma once

#include <stdint.h>

#include "ctl/base/option.h"

enum check_trace_source {
	CHECK_TRACE_AUTO = 0, /* intel_pt where this host has it, else emulated */
	CHECK_TRACE_INTEL_PT, /* a running recorder's, at the settings' socket */
	CHECK_TRACE_EMULATED, /* a recorder of one's own, for as long as it takes */
};

struct check_trace_options {
	const struct settings *settings; /* socket, json, timeout, quiet */
	enum check_trace_source source;
	uint64_t run_usec; /* how long the walks run before the snapshot; 0: the default */
	/* Programs; NULL: the installed ones, or the build tree's. */
	const char *walk, *daemon, *worker;
};

/* Prints one page (or, as the settings say, JSON) on standard output. An exit code: 0 all equal, 1
 * a difference or a failure, 6 tracing is not possible, 124 not done in time, or another one of
 * exit_code.h; what it means was said. No file and no process is left behind. */
int check_trace(const struct check_trace_options *options);
