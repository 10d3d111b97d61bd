/*
 * Timeline and flow, step by step: tells the flow of each CPU whose code it walks, and its consumer
 * whose branches they are.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "decoder/flow.h"
#include "decoder/worker/contexts.h"
#include "decoder/worker/tscmap.h"
#include "proto/bundle.h"
#include "sideband/image.h"
#include "sideband/symbols.h"
#include "sideband/timeline.h"

struct replay {
	const struct bundle *bundle; /* borrowed */
	const struct manifest *manifest;
	struct tscmap clock;
	struct timeline *timeline;
	struct image_set *images;
	struct symbols *symbols;
	uint64_t bad_records; /* of the sideband, skipped */
	struct contexts contexts;
};

/* Consecutive items of one thread in one context. */
struct replay_stretch {
	const struct flow_item *items; /* borrowed until the consumer returns */
	size_t n_items;
	const struct flow_gap *gaps; /* found since the last stretch; borrowed */
	size_t n_gaps;
	struct flow *flow;		      /* for flow_run */
	size_t cpu;			      /* index into the manifest's */
	uint32_t context;		      /* number in replay->contexts */
	const struct timeline_thread *thread; /* NULL: unknown */
};

struct replay_consumer {
	/* 0; anything else ends the replay with that result. */
	int (*stretch)(void *userdata, const struct replay_stretch *s);
	/* At each CPU's new percent of its bytes; may be NULL. */
	void (*progress)(void *userdata, size_t cpu, unsigned percent);
	void *userdata;
};

/* BUNDLE is borrowed until replay_free. 0 or -ENOMEM. */
int replay_new(const struct bundle *bundle, struct replay **ret);
void replay_free(struct replay *r);
void replay_freep(struct replay **r);
/* Decodes the trace of the manifest's CPU number INDEX. *ret is always set. 0, -ENOMEM, or what the
 * consumer returned. */
int replay_cpu(struct replay *r, size_t index, const struct replay_consumer *consumer,
	       struct flow_stats *ret);
/* The code at ADDRESS in a context; results as of image_find. */
int replay_find(const struct replay *r, uint32_t context, uint64_t address, struct image_code *ret);
