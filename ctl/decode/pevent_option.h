/*
 * The --pevent:... options: files of perf records, laid out as somebody else's perf_event_attr
 * says, under the names that libipt's ptdump and ptxed give them.
 */
#pragma once

#include <getopt.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PEVENT_OPTIONS_MAX 12u

struct pevent_file {
	char *path;	     /* owned */
	uint64_t begin, end; /* of the file, in bytes; end 0: to its end */
	bool secondary;	     /* of another CPU than the trace */
	uint64_t sample_type, time_zero, tsc_offset;
	uint32_t time_shift, time_mult;
};

/* Options say how the files behind them are laid out. */
struct pevent_options {
	struct pevent_file layout; /* of the next file */
	struct pevent_file *files;
	size_t n_files;
	const char *sysroot;   /* borrowed; NULL: none */
	uint64_t kernel_start; /* 0: not given */
};

void pevent_options_init(struct pevent_options *p);
void pevent_options_done(struct pevent_options *p);
/* The options for getopt_long, the first with the value FIRST; returns how many. */
size_t pevent_option_table(struct option to[static PEVENT_OPTIONS_MAX], int first);
/* The option of that place in the table with its VALUE. False: a message was printed. */
bool pevent_option_take(struct pevent_options *p, size_t index, const char *value);
