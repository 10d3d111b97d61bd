/*
 * Sideband as libipt's tools show it: the files of perf records that the bundle has besides its own
 * sideband (manifest_pevent), printed when the time of the trace reaches theirs. For the views of
 * packets and of ptxed's lines; what the records mean for the decoding is the timeline's business.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "decoder/worker/view/lines.h"
#include "proto/bundle/bundle.h"
#include "proto/decode_options.h"

struct pevent;

/* Where execution is after an event of the trace. */
struct pevent_event {
	uint64_t tsc;
	enum {
		PEVENT_NOWHERE,	      /* the event does not say */
		PEVENT_AT,	      /* at IP */
		PEVENT_ACROSS,	      /* from where it was to the other of user and kernel */
		PEVENT_ACROSS_FROM,   /* the same, from IP */
		PEVENT_LIKELY_KERNEL, /* what only a kernel does */
	} where;
	uint64_t ip;
};

/* Of OPTIONS show and kernel_start are used. *ret is NULL where the bundle has no such
 * file. All is borrowed until pevent_free. 0 or -ENOMEM. */
int pevent_new(const struct bundle *b, const struct decode_options *options, struct lines *l,
	       struct pevent **ret);
void pevent_free(struct pevent *p);
void pevent_freep(struct pevent **p);
/* Prints the records up to TSC, of all files together, in the order of time. P may be NULL. */
void pevent_until(struct pevent *p, uint64_t tsc);
/* The same with what ptxed does besides: warnings about what a record means for the decoding (with
 * WORKER_SHOW_SB_WARN; errors always), and with WORKER_SHOW_SB_SWITCH "[context: pid-N]" when the
 * primary files' next context is taken, which waits for the kernel. To be called at every event,
 * behind its own line. P may be NULL. */
void pevent_event(struct pevent *p, const struct pevent_event *event);
