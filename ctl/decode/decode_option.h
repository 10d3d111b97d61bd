/*
 * The command line of `ptsnapctl decode'.
 */
#pragma once

#include "proto/decode_options.h"

#include "ctl/base/option.h"
#include "ctl/decode/raw.h"
#include "ctl/show/show_option.h"

#define DEBUG_FILES_MAX_DIRS 8u /* directories of --symbols */

struct decode_request {
	struct settings *settings;
	struct decode_options options; /* for ptsnap-decode; set by decode_request_parse() */
	const char *output, *worker;
	const char *bundle;  /* a bundle or a perf.data file; NULL: raw files */
	const char *sysroot; /* the root of a perf.data's files, or NULL */
	uint64_t max_errors; /* UINT64_MAX: no limit */
	struct show_options show;
	const char *symbols[DEBUG_FILES_MAX_DIRS]; /* directories */
	size_t n_symbols;
	bool debuginfod;
	struct raw raw;
};

void decode_request_init(struct decode_request *q, struct settings *s);
void decode_request_done(struct decode_request *q);
/* 0, or an exit code after a message. Checks nothing if --help or --version is given. */
int decode_request_parse(struct decode_request *q, int argc, char **argv);
