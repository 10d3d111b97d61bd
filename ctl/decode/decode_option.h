/*
 * The command line of `ptsnapctl decode'.
 */
#pragma once

#include "proto/decode_options.h"

#include "ctl/base/option.h"
#include "ctl/decode/debug_files.h"
#include "ctl/decode/raw.h"
#include "ctl/show/show_option.h"

struct decode_request {
	struct settings *settings;
	struct decode_options options; /* for the worker; complete behind decode_request_parse */
	const char *output, *worker;
	const char *bundle;  /* or perf.data; NULL: the raw form */
	const char *sysroot; /* where a perf.data's files are; NULL: where it says */
	uint64_t max_errors; /* UINT64_MAX: any number */
	struct show_options show;
	const char *symbols[DEBUG_FILES_MAX_DIRS]; /* directories */
	size_t n_symbols;
	bool debuginfod;
	struct raw raw;
};

void decode_request_init(struct decode_request *q, struct settings *s);
void decode_request_done(struct decode_request *q);
/* 0, or an exit code after a message. Nothing is checked when help or version are asked for. */
int decode_request_parse(struct decode_request *q, int argc, char **argv);
