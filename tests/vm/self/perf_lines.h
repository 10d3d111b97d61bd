/*
 * What `perf script --itrace=i0nsbe -F cpu,tid,event,flags,ip,addr' prints: a line for each
 * instruction, each branch, and each error of perf's decoder.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum perf_line_kind {
	PERF_LINE_INSTRUCTION,
	PERF_LINE_BRANCH, /* taken; comes behind its instruction, if that executed */
	PERF_LINE_ERROR,
};

/* The errors are numbers of perf's tools/perf/util/intel-pt-decoder/intel-pt-decoder.h, less than
 * this. */
#define PERF_LINE_ERRORS 16u

struct perf_line {
	enum perf_line_kind kind;
	uint32_t cpu, tid; /* the idle thread is 0 */
	uint64_t ip;	   /* of a branch: where it came from; 0: from what was not traced */
	bool interrupt;	   /* of a branch: by an interrupt or a fault; IP did not execute */
	bool edge;	   /* of a branch: tracing begins or ends */
	unsigned int error;
};

/* Calls FN for each line of FROM. 0; -EBADMSG: a line of another kind, which is printed. */
int perf_lines_read(FILE *from, void (*fn)(void *userdata, const struct perf_line *line),
		    void *userdata);
