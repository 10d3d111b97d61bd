/*
 * The command line of `ptsnapctl decode'.
 */
#pragma once

#include <getopt.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/decode_options.h"

#include "ctl/base/option.h"
#include "ctl/decode/raw.h"

/* --- The options that choose how lines look, under the names that libipt's ptdump and ptxed give
 * them --- */

#define SHOW_OPTIONS_MAX 48u

struct show_options {
	uint64_t show;	/* WORKER_SHOW_* */
	uint64_t given; /* bit I: option I of the table was given */
};

/* Writes the options for getopt_long(3) to TO; option I of the table has the value FIRST + I.
 * Returns the number of options. */
size_t show_option_table(struct option to[static SHOW_OPTIONS_MAX], int first);
/* Notes that option INDEX of the table was given. */
void show_option_take(struct show_options *s, size_t index);
/* Returns whether all given options are valid for VIEW and with each other; prints a message if
 * not. */
bool show_option_check(const struct show_options *s, enum worker_view view);

/* --- All options --- */

#define DECODE_MAX_SYMBOLS 8u /* directories of --symbols */

struct decode_request {
	struct settings *settings;
	struct decode_options options; /* for ptsnap-decode; set by decode_request_parse() */
	const char *output, *worker;
	const char *bundle;  /* a bundle or a perf.data file; NULL: raw files */
	const char *sysroot; /* the root of a perf.data's files, or NULL */
	uint64_t max_errors; /* UINT64_MAX: no limit */
	struct show_options show;
	const char *symbols[DECODE_MAX_SYMBOLS]; /* directories */
	size_t n_symbols;
	bool has_report_size;
	bool not_installed; /* files that are installed on this host are not looked for */
	bool debuginfod;
	bool no_pager;
	struct raw raw;
};

void decode_request_init(struct decode_request *q, struct settings *s);
void decode_request_done(struct decode_request *q);
/* 0, or an exit code after a message. Checks nothing if --help or --version is given. */
int decode_request_parse(struct decode_request *q, int argc, char **argv);
