/*
 * The views that are lines: branches, instructions, events.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "decoder/worker/replay/replay.h"
#include "decoder/worker/view/lines.h"
#include "proto/decode_options.h"

#define VIEWS_HASH_BASIS HASH_BASIS

struct views_ptxed;

/* Whose lines the last ones were. */
struct views_whose {
	bool known;
	size_t cpu;
	const struct timeline_thread *thread, *process;
};

/* A decode that is written as lines. */
struct views {
	const struct decode_options *options; /* borrowed */
	const struct replay *replay;	      /* borrowed */
	struct lines lines;
	bool plain; /* there is but one thread on one CPU, which need not be said */
	struct views_whose whose;
	struct views_ptxed *ptxed; /* one for each of N_PTXED CPUs; NULL: another view */
	size_t n_ptxed;
};

/* Lines go to FD (borrowed). 0 or -ENOMEM; views_done is to be called in either case. */
int views_init(struct views *v, const struct decode_options *options, int fd);
void views_done(struct views *v);
/* Before a replay. PLAIN: there is nothing to tell apart. 0 or -ENOMEM. */
int views_begin(struct views *v, const struct replay *r, bool plain);
/* Sets in FLOW what the lines need besides branches, and how libipt's tools decode. */
void views_configure(const struct views *v, struct flow_config *flow);
/* The lines of S, of any of these views but packets. 0 or the sticky error of the lines. */
int views_stretch(struct views *v, const struct replay_stretch *s);
/* Behind the last stretch. 0 or the first error of the lines. */
int views_end(struct views *v);

/* A line an executed instruction, as above. */
int views_insns(struct lines *l, const struct replay_stretch *s, bool gaps);
/* The hashes of a CPU and of a thread, carried on over the addresses of all executed instructions.
 */
void views_hash_two(uint64_t *cpu, uint64_t *thread, const struct replay_stretch *s);
/* One hash, carried on. */
uint64_t views_hash(uint64_t hash, const struct replay_stretch *s);
