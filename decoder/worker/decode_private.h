/*
 * Inside of decode.h: decode.c (from a request to its view), decode_stretch.c (what a view makes of
 * a stretch), decode_rounds.c (newest first, within a time), decode_last.c (of threads that ran
 * before).
 */
#pragma once

#include "decoder/worker/count/decoded.h"
#include "decoder/worker/decode.h"
#include "decoder/worker/view/views.h"

/* One request on its way. */
struct decode_job {
	struct decode *d;
	const struct decode_options *options;
	const struct decode_sink *sink;
	struct views views;	   /* where the view is lines */
	struct stopwatch *passes;  /* owned by decode_flow; NULL */
	uint64_t until;		   /* a round is given up then: ns since the request */
	struct replay_part *parts; /* of the round; of each CPU */
};

/* Replays all that job->d->replay is to walk into job->d, which is empty. 0 or -errno;
 * REPLAY_STOPPED where GO_ON (as in struct replay_consumer) said so. */
int decode_pass(struct decode_job *job, bool (*go_on)(void *userdata));

/* Replays as much of the newest as can be done by the request's deadline into job->d, which is
 * empty. 0 or -errno. */
int decode_rounds(struct decode_job *job);
/* For struct replay_consumer, USERDATA is the job: whether it is not yet job->until. */
bool decode_go_on(void *userdata);
/* The last stretches of threads that have none in job->d, into job->d->past, by job->until; those
 * that are there are not looked for again. 0 or -errno. */
int decode_last(struct decode_job *job);
/* For struct replay_consumer. */
int decode_stretch(void *userdata, const struct replay_stretch *s);
/* Behind the last one: what was left open is told. 0 or -ENOMEM. */
int decode_settle(struct decode *d);
