/*
 * What a finished replay leaves: the counts, the gaps and the marks of all CPUs.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decoder/worker/count/gaps.h"
#include "decoder/worker/count/marks.h"
#include "decoder/worker/count/steps_count.h"
#include "decoder/worker/count/tally.h"
#include "decoder/worker/replay/replay.h"

/* One CPU's numbers besides the tally's. */
struct decode_cpu {
	struct flow_stats stats;
	uint64_t head_bytes; /* before its first PSB */
	uint64_t hash;	     /* of all its instruction addresses, when asked for */
	unsigned percent;    /* done */
};

/* Which part of the traces it is, where there was a deadline. */
struct decode_window {
	bool limited;  /* there was */
	bool complete; /* and it is all that was asked for */
	uint64_t deadline_ns;
	uint64_t rounds; /* each further back */
	uint64_t bytes;	 /* that were asked for */
	/* Of each CPU since when its trace tells something, as far as was asked for, perf ns;
	 * MANIFEST_ABSENT: it tells nothing, or no time. Owned. */
	uint64_t *begins;
	uint64_t threads_left; /* that did not run within it, and were not looked for */
};

/* Code of a process, of which thread is not known: what is told of it when its end was seen. */
struct decode_nobodys {
	bool open;
	bool found; /* ITEM is its first one; else the last one seen */
	size_t cpu; /* in the manifest */
	uint64_t insns;
	struct flow_item item;
};

/* All that a finished replay leaves; what the report and the summary are written from. */
struct decode {
	struct replay *replay; /* borrowed */
	struct tally tally;
	struct tally past; /* last stretches of threads that have none within the window */
	struct decode_window window;
	struct gaps gaps;
	struct decode_nobodys nobodys;
	bool withheld;		   /* there was something that is not permitted */
	struct marks marks;	   /* only for the report */
	struct steps_count counts; /* only for the summary */
	struct decode_cpu *cpus;   /* as the manifest's */
	uint64_t percents;	   /* sum over the CPUs */
	/* How long each of several replays took; the last one is what is here. */
	const struct stopwatch *passes; /* borrowed */
	size_t n_passes;
};

/* D is empty, and stays valid for decode_done. REPLAY is borrowed. 0 or -ENOMEM. */
int decode_init(struct decode *d, struct replay *replay);
void decode_done(struct decode *d);

/* Sums over the CPUs. */
struct flow_stats decode_total(const struct decode *d);
/* Decoded bytes in percent of BYTES, rounded down so that only all is 100; negative: of nothing. */
double decode_percent(uint64_t decoded, uint64_t bytes);
