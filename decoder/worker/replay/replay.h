/*
 * Timeline and flow together: the traces of all CPUs, decoded, each piece with the thread whose it
 * is, and the pieces of each thread in the order of its life.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decoder/flow/flow.h"
#include "decoder/worker/replay/contexts.h"
#include "decoder/worker/replay/permit.h"
#include "decoder/worker/replay/stopwatch.h"
#include "decoder/worker/turns/shift.h"
#include "decoder/worker/turns/tscmap.h"
#include "decoder/worker/turns/turns.h"
#include "proto/bundle/bundle.h"
#include "sideband/symbols/image.h"
#include "sideband/symbols/symbols.h"
#include "sideband/timeline/timeline.h"

/* A part of a CPU's trace: from the first PSB at or behind FROM (bytes; 0: all), up to END (0: its
 * size). */
struct replay_part {
	uint64_t from, end;
};

/* Code that a context lacks may have been mapped by another thread while the context ran: before
 * UNTIL, and before FLOW's packet in hand. */
struct replay_late {
	uint64_t until;		    /* perf ns; 0: nothing is mapped late */
	const struct flow *flow;    /* NULL: UNTIL is the only limit */
	const struct tscmap *clock; /* of FLOW's CPU */
};

struct replay {
	const struct bundle *bundle; /* borrowed */
	const struct manifest *manifest;
	struct tscmap clock;   /* with the shift of all CPUs */
	struct tscmap *clocks; /* of each CPU of the manifest, with its own */
	struct shift shift;    /* how they were found */
	struct timeline *timeline;
	struct image_set *images;
	struct symbols *symbols;
	const struct permit *permit; /* of whom may be told; borrowed, NULL: of all */
	uint64_t bad_records;	     /* of the sideband, skipped */
	/* What the consumer wants of the flows, all off at first; to be set before a replay: steps,
	 * marks, ticks, guests, cut, resume_at_psb, resume_at_tip, retstack_libipt, threads, crew.
	 * Memory is the limit of this process. cpu_replay.c sets the other members. */
	struct flow_config flow;
	/* What is decoded, of each CPU of the manifest; borrowed. NULL: all that was asked for. */
	const struct replay_part *parts;
	struct stopwatch *watch; /* runs while the flows do; borrowed, NULL: nobody wants to know */
	/* Keeps the code, so that what is decoded again is compiled once; NULL before the first
	 * replay. */
	struct flow *code;
	struct contexts contexts;
	struct turns turns; /* of the manifest's CPUs */
	/* One of the threads of the only process, for CPUs of which there are no turns; may be
	 * NULL.
	 */
	const struct timeline_thread *process;
	/* The kernel's code, where it was traced and is at hand; NULL. */
	struct kernel *kernel;
	uint64_t kernel_start; /* its first address */
	uint64_t switch_ip;    /* of the function in which the thread changes; 0: not known */
	/* Of the flow that asks for code; NULL: only what its context has from the beginning. */
	const struct replay_late *late;
};

/* Consecutive items of one thread in one context. */
struct replay_stretch {
	const struct flow_item *items; /* borrowed until the consumer returns */
	size_t n_items;
	/* Those of the items' gaps, in order; an item's number counts from first_gap. */
	const struct flow_gap *gaps;
	size_t n_gaps, first_gap;
	/* So for marks. */
	const struct flow_mark *marks;
	size_t n_marks, first_mark;
	const struct flow_batch *batch;	      /* for the walks of FLOW_STEPS items */
	struct flow *flow;		      /* for flow_run */
	size_t cpu;			      /* index into the manifest's */
	uint32_t context;		      /* number in replay->contexts */
	const struct timeline_thread *thread; /* NULL: unknown */
	/* Not NULL: of which of this one's process' threads is not known. */
	const struct timeline_thread *process;
	bool switched; /* it gets the CPU here, without an item that says so */
	/* It goes on with the CPU's last one, which only ended where a batch did: that is not the
	 * trace's doing. Nothing of another CPU comes between two such. */
	bool goes_on;
};

#define REPLAY_STOPPED 2

struct replay_consumer {
	/* 0; -errno ends the replay with that result. */
	int (*stretch)(void *userdata, const struct replay_stretch *s);
	/* At each CPU's new percent of its bytes; may be NULL. */
	void (*progress)(void *userdata, size_t cpu, unsigned percent);
	/* Before each batch; false ends the replay with REPLAY_STOPPED. May be NULL. */
	bool (*go_on)(void *userdata);
	void *userdata;
	struct flow_stats
		*stats; /* one for each CPU of the manifest, set at the end; may be NULL */
};

/* BUNDLE is borrowed until replay_free. LOADER brings images that lie elsewhere; NULL: they are
 * missing. 0 or -ENOMEM. */
int replay_new(const struct bundle *bundle, const struct image_loader *loader, struct replay **ret);
/* The same, but r->shift and r->clocks are what CLOCKS makes of all the rest: 0 or -ENOMEM. */
int replay_new_with(const struct bundle *bundle, const struct image_loader *loader,
		    int (*clocks)(struct replay *r), struct replay **ret);
void replay_free(struct replay *r);
void replay_freep(struct replay **r);
/* Decodes all CPUs of the manifest together: a thread's stretches come in the order in which it had
 * the CPUs. 0, -ENOMEM, REPLAY_STOPPED, or what the consumer returned. May be called again: nothing
 * is remembered but code. */
int replay_all(struct replay *r, const struct replay_consumer *consumer);
/* Only CPU number INDEX; what only other CPUs tell is then not known. *ret is always set. Results
 * as of replay_all. */
int replay_cpu(struct replay *r, size_t index, const struct replay_consumer *consumer,
	       struct flow_stats *ret);
/* The TSC from which on CPU number INDEX was asked for; 0: from its beginning. */
uint64_t replay_asked_since(const struct replay *r, size_t index);
/* The code at ADDRESS in a context; results as of image_find. */
int replay_find(const struct replay *r, uint32_t context, uint64_t address, struct image_code *ret);
/* The function around ADDRESS, for which CODE was found: as symbols_find. */
void replay_symbol(const struct replay *r, uint64_t address, const struct image_code *code,
		   struct symbol *ret);
/* As many of the SIZE bytes of code at ADDRESS as there are without a break: their number. */
size_t replay_read(const struct replay *r, uint32_t context, uint64_t address, uint8_t *to,
		   size_t size);
