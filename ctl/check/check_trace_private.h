/*
 * What the parts of check_trace hand to each other, in this order: walks (check_trace_walks.c)
 * under a recorder, running (check_trace_live.c) or one's own (check_trace_emulated.c) -> a bundle
 * -> decoded (check_trace_decode.c), its lines compared (check_trace_lines.c) -> the page
 * (check_trace_page.c, check_trace_json.c).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include <json-c/json.h>

#include "proto/bundle/bundle.h"

#include "ctl/check/check_trace.h"
#include "ctl/check/walk_match.h"

#define CHECK_WALK_NAME	   "ptsnap-walk"
#define CHECK_WALKS_MAX	   256u /* the seed's lowest byte tells them apart */
#define CHECK_GAPS_MAX	   32u
#define CHECK_WINDOW_BYTES (1u << 20) /* of each CPU's trace */

struct check_walk {
	pid_t pid;    /* and its thread's tid; 0: not started, or reaped */
	pid_t tid;    /* as the trace has it; stays */
	uint32_t cpu; /* where it may run */
};

struct check_gap {
	char kind[32];
	uint64_t n;
};

/* One CPU of the bundle. */
struct check_cpu {
	bool walked; /* a walk was meant to be seen here */
	struct walk_tally tally;
	struct walk_difference difference;
	uint64_t tsc_first, tsc_last; /* of all its branches; 0: not known */
	uint64_t bytes; /* of its trace, from the first PSB on: before that a ring may be empty */
	uint64_t psbs, psb_sum, psb_max; /* PSBs; bytes between the first and the last, at most */
};

struct check {
	const struct check_trace_options *options;
	const char *dir; /* an empty one of our own, removed afterwards */
	uint64_t seed;	 /* lowest byte 0 */
	bool live;
	char *walk_path, *worker_path; /* owned, as the others */
	struct check_walk walks[CHECK_WALKS_MAX];
	size_t n_walks;
	int bundle_fd; /* owned */
	struct bundle *bundle;
	struct check_cpu *cpus;		       /* as the manifest's */
	struct check_gap gaps[CHECK_GAPS_MAX]; /* within the walks' threads */
	size_t n_gaps;
	struct json_object *report; /* of the first CPU's trace; NULL */
};

/* All of these give an exit code, and have said what is wrong when it is not 0. */

/* Starts a walk, pinned to CPU. */
int check_walks_start(struct check *c, uint32_t cpu);
/* Ends and reaps all. */
void check_walks_end(struct check *c);
/* The walk of that thread; NULL: none. */
const struct check_walk *check_walks_find(const struct check *c, uint32_t tid);
void check_sleep(const struct check *c, uint64_t default_usec);

/* Both fill in walks and bundle. */
int check_live(struct check *c);
int check_emulated(struct check *c);
/* A snapshot of what CLIENT's recorder has; ends the walks when it has the copy. SETTINGS: where
 * the recorder is, and how long to wait for it. */
int check_snapshot(struct check *c, const struct settings *settings);

/* Decodes and compares. */
int check_decode(struct check *c);
/* Lines of the worker, of CPUs that are all in the bundle. */
int check_lines_read(struct check *c, FILE *lines);

/* What is to be said of CPU INDEX: "yes", "NO", ... ; CHECK_VERDICT_OTHER: nothing to compare. */
enum check_verdict {
	CHECK_VERDICT_EQUAL = 0,
	CHECK_VERDICT_DIFFERENT,
	CHECK_VERDICT_NOTHING, /* traced and walked, but no round was found */
	CHECK_VERDICT_OTHER,   /* not traced, or nothing was to be seen there */
};
enum check_verdict check_verdict(const struct check *c, size_t index);
/* The last line, and the exit code. */
int check_sentence(const struct check *c, char *ret, size_t size);
int check_page(const struct check *c);
int check_json(const struct check *c);
/* Numbers for both; NAN where not known. */
double check_mb_per_second(const struct check *c, size_t index);
double check_interval_ns(const struct check *c);
double check_bytes_per_branch(const struct check *c, size_t index);
/* KEY of /proc/cpuinfo's first processor, "" where it is not told. */
void check_cpuinfo(const char *key, char *ret, size_t size);
const char *check_walk_kind(uint8_t kind);
