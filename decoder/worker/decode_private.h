/*
 * Inside of a decode: what decode.c (from a request to its view), decode_stretch.c (what a view
 * makes of a stretch), decode_rounds.c (within a deadline) and decode_slice.c (a part of it) share.
 */
#pragma once

#include "decoder/worker/calltree/calltree.h"
#include "decoder/worker/count/decoded.h"
#include "decoder/worker/decode.h"
#include "decoder/worker/listing/listing.h"
#include "decoder/worker/view/views.h"

/* One request while it is decoded. */
struct decode_job {
	struct decode *d;
	const struct decode_options *options;
	const struct decode_sink *sink;
	struct views views;	   /* if the view is lines */
	struct calltree *calls;	   /* owned; if the view is calls */
	struct listing *listing;   /* owned; if the view is an execution stream */
	size_t recording;	   /* the gaps from this number on have no place in a trace */
	struct stopwatch *passes;  /* owned; NULL: no times were asked for */
	uint64_t until;		   /* when a round is given up: ns since the request */
	struct replay_part *parts; /* of the round, for each CPU */
	struct replay_part *slice; /* owned; for each CPU; NULL: all that was asked for */
};

/* Replays what job->d->replay has to decode into job->d, which is empty. GO_ON as in struct
 * replay_consumer; may be NULL. 0 or -errno; REPLAY_STOPPED if GO_ON said so. */
int decode_pass(struct decode_job *job, bool (*go_on)(void *userdata));

/* Replays as much of the newest part as the request's deadline allows into job->d, which is empty;
 * and the last stretches of threads that have none there into job->d->past. 0 or -errno. */
int decode_rounds(struct decode_job *job);

/* Behind decode_pass() for a window of time, or a slice that ends with the trace: decodes the last
 * stretches of threads that did not run within the window into job->d->past, as far as the whole
 * trace has them. Nothing for a window that is the whole trace. 0 or -errno. */
int decode_before(struct decode_job *job);

/* Limits the replay of job->d to the span of time of the request's slice, and says in
 * job->d->window which one that is. 0; -ERANGE: the traces have nothing of the span; -ENOTSUP: they
 * have no times; -ENOMEM. */
int decode_slice_open(struct decode_job *job);
/* Whether S is of the CPU, process, thread and name of the request's slice. */
bool decode_slice_has(const struct decode_job *job, const struct replay_stretch *s);

/* For struct replay_consumer: takes a stretch into the view. */
int decode_stretch(void *userdata, const struct replay_stretch *s);
/* Behind the last stretch: adds the gap that is still open. 0 or -ENOMEM. */
int decode_settle(struct decode *d);
