/*
 * The results of one decode: the counts, the gaps and the marks of all CPUs.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decoder/worker/count/gaps.h"
#include "decoder/worker/count/marks.h"
#include "decoder/worker/count/steps.h"
#include "decoder/worker/count/tally.h"
#include "decoder/worker/replay/replay.h"

/* The numbers of one CPU that the tally does not have. */
struct decode_cpu {
	struct flow_stats stats;
	uint64_t head_bytes; /* before its first PSB */
	uint64_t hash;	     /* of the addresses of all instructions, if asked for */
	unsigned percent;    /* decoded so far */
};

/* Which part of the traces was decoded, if there was a deadline. */
struct decode_window {
	bool limited;  /* there was a deadline */
	bool complete; /* all that was asked for was decoded */
	uint64_t deadline_ns;
	uint64_t rounds; /* decodes, each of a part that begins earlier */
	uint64_t bytes;	 /* of the traces that were asked for */
	/* For each CPU the time (perf ns) since when its trace tells something, within what was
	 * asked for; MANIFEST_ABSENT: the trace tells nothing, or no time. Owned. */
	uint64_t *begins;
	uint64_t threads_left; /* threads outside the window that were not looked for */
};

/* Code of a process whose thread is not known; it becomes a gap when its end is seen. */
struct decode_unowned {
	bool open;
	bool found; /* ITEM is the first item; else the last item seen */
	size_t cpu; /* index into the manifest's CPUs */
	uint64_t insns;
	struct flow_item item;
};

/* What the report and the summary are written from. */
struct decode {
	struct replay *replay; /* borrowed */
	struct tally tally;
	struct tally
		past; /* the last stretches of threads that have no stretch within the window */
	struct decode_window window;
	struct gaps gaps;
	struct decode_unowned unowned;
	bool withheld;		   /* something was left out because it is not permitted */
	struct marks marks;	   /* only for the report */
	struct steps_count counts; /* only for the summary */
	struct decode_cpu *cpus;   /* in the manifest's order */
	uint64_t percents;	   /* the sum over all CPUs */
	/* How long each of several replays took. The results are those of the last replay. */
	const struct stopwatch *passes; /* borrowed */
	size_t n_passes;
};

/* D may be passed to decode_done even after a failure. REPLAY is borrowed. 0 or -ENOMEM. */
int decode_init(struct decode *d, struct replay *replay);
void decode_done(struct decode *d);

/* The sums over all CPUs. */
struct flow_stats decode_total(const struct decode *d);
/* DECODED in percent of BYTES, rounded down so that 100 means all; negative if BYTES is 0. */
double decode_percent(uint64_t decoded, uint64_t bytes);
