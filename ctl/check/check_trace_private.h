/*
 * The state of one self-test, and the steps that the files of this room do with it, in this order.
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
#define CHECK_WALKS_MAX	   256u /* the lowest byte of the seed numbers the walks */
#define CHECK_GAPS_MAX	   32u
#define CHECK_WINDOW_BYTES (1u << 20) /* of each CPU's trace */

struct check_walk {
	pid_t pid;    /* 0: not started, or reaped */
	pid_t tid;    /* of its only thread; stays when the process is reaped */
	uint32_t cpu; /* the CPU that the process is bound to */
};

struct check_gap {
	char kind[32];
	uint64_t n;
};

/* One CPU of the bundle. */
struct check_cpu {
	bool walked; /* the trace must show a walk */
	struct walk_tally tally;
	struct walk_difference difference;
	uint64_t tsc_first, tsc_last; /* of all its branches; 0: not known */
	uint64_t bytes; /* of trace from the first PSB on; a ring may be empty before that */
	uint64_t psbs;	/* number of PSBs */
	uint64_t psb_sum, psb_max; /* bytes from the first PSB to the last, largest distance */
};

struct check {
	const struct check_trace_options *options;
	const char *dir;	       /* an empty directory, which the parent process removes */
	uint64_t seed;		       /* lowest byte 0 */
	bool live;		       /* with the running recorder */
	char *walk_path, *worker_path; /* owned */
	struct check_walk walks[CHECK_WALKS_MAX];
	size_t n_walks;
	int bundle_fd;			       /* owned */
	struct bundle *bundle;		       /* owned */
	struct check_cpu *cpus;		       /* owned; one for each CPU of the manifest */
	struct check_gap gaps[CHECK_GAPS_MAX]; /* in the threads of walks */
	size_t n_gaps;
	struct json_object *report; /* owned; of the first CPU's trace; NULL: none */
};

/* Functions that return int return an exit code, and have printed the cause if it is not 0. */

/* Kills and reaps all walks. */
void check_walks_end(struct check *c);
/* Returns the walk that is thread TID, NULL if there is none. */
const struct check_walk *check_walks_find(const struct check *c, uint32_t tid);
/* Lets the walks run for --for=, or DEFAULT_USEC. */
void check_sleep(const struct check *c, uint64_t default_usec);

/* Get a bundle of walks, from the running recorder or from a recorder of the test's own. */
int check_live(struct check *c);
int check_emulated(struct check *c);
/* Takes a snapshot, and ends the walks once the recorder has copied its rings. SETTINGS say where
 * the recorder is, and how long to wait for it. */
int check_snapshot(struct check *c, const struct settings *settings);

/* Decodes the bundle, and compares its branches with the model. */
int check_decode(struct check *c);

/* Print the result. Return 0 if all branches are equal, or the exit code that says what is wrong.
 */
int check_page(const struct check *c);
int check_json(const struct check *c);
