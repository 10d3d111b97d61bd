/*
 * One decode: replay every CPU of a bundle into what the view needs, and write it.
 */
#pragma once

#include <stdint.h>

#include "decoder/worker/count/gaps.h"
#include "decoder/worker/count/marks.h"
#include "decoder/worker/count/steps_count.h"
#include "decoder/worker/count/tally.h"
#include "decoder/worker/replay/replay.h"
#include "decoder/worker/replay/stopwatch.h"
#include "proto/worker.h"

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

/* All that a finished replay leaves; what the report and the summary are written from. */
/* Code of a process, of which thread is not known: what is told of it when its end was seen. */
struct decode_nobodys {
	bool open;
	bool found; /* ITEM is its first one; else the last one seen */
	size_t cpu; /* in the manifest */
	uint64_t insns;
	struct flow_item item;
};

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

struct decode_sink {
	int fd; /* borrowed; where the view goes */
	const char *version;
	/* May be NULL. */
	void (*progress)(void *userdata, enum worker_phase phase, unsigned percent);
	/* Of an image that lies elsewhere these bytes were needed: 0 or -errno. May be NULL. */
	int (*keep)(void *userdata, uint32_t image, uint64_t offset, uint64_t size);
	/* How long ago the request came, ns; NULL: no time passes. */
	uint64_t (*elapsed)(void *userdata);
	void *userdata;
	const struct image_loader *loader; /* of such images; may be NULL */
	struct crew *crew;		   /* of threads; NULL: they are started */
};

/* OPTIONS are sound (decode_options_are_sound). *ret_faults: gaps found. 0 or -errno: -ENODATA a
 * gap that is not there, -ENOMEM, -E2BIG a report that does not fit its limit even when all is cut,
 * or of the output. */
int decode_run(const struct bundle *bundle, const struct decode_options *options,
	       const struct decode_sink *sink, uint64_t *ret_faults);

/* Sums over the CPUs. */
struct flow_stats decode_total(const struct decode *d);
/* Decoded bytes in percent of BYTES, rounded down so that only all is 100; negative: of nothing. */
double decode_percent(uint64_t decoded, uint64_t bytes);
