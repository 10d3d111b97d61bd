/*
 * A bundle's timeline and its traces decoded together: each stretch of executed code with the
 * thread that executed it, and the stretches of each thread in the order of its life.
 *
 * replay_load.c loads what a bundle holds, replay_kernel.c the kernel's text, replay_dumps.c the
 * code that just-in-time compilers wrote down. replay.c decodes all CPUs together, each by
 * cpu_replay.c: its flow's batches are cut where the thread changes. When a flow asks for a
 * context, whose.c answers: it decides which turn a stretch lies in, with what the code tells
 * (whose_code.c) and, where the kernel was traced, by the kernel's own switches (whose_kernel.c).
 * contexts.c numbers the states of address spaces. segment.c finds places in a trace by time, and
 * rounds.c divides a decode with a deadline into rounds. permit.c says of which processes a report
 * may tell.
 *
 * Decisions that govern the room:
 * - The CPU whose next stretch belongs to the earliest turn is decoded first, up to where another
 *   CPU's turn is earlier. A thread has one turn at a time, so its stretches come in order. A CPU
 *   that cannot tell yet which thread had it waits for the CPUs that are behind it.
 * - A thread is decided where the flow asks, at the packet with which a stretch begins. The answer
 *   holds to the end of the stretch, as no switch can happen within it.
 * - Where the kernel's code is at hand, a thread switch is the branch to __switch_to, in the order
 *   of the sideband's turns. Without that symbol, and behind gaps, time says which thread has the
 *   CPU.
 * - The replay decodes all of a bundle, whatever may be told. It drops what is not permitted before
 *   anything counts or names that: nobody can forget to hide what was never counted.
 * - With a deadline there are rounds, newest first. Each round decodes what happened since one
 *   moment, which is the same on all CPUs. Each round begins anew: only images, names and compiled
 *   code are kept.
 * - With --last=TIME the ring was copied whole, as the recorder does not parse PT. Decoding begins
 *   with the last PSB at or before that time.
 *
 * A struct replay borrows the bundle and owns everything that is loaded from it. One thread uses a
 * replay; the flows may have threads of their own, which never call back.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decoder/flow/flow.h"
#include "decoder/worker/replay/permit.h"
#include "decoder/worker/turns/shift.h"
#include "decoder/worker/turns/turns.h"
#include "proto/bundle/bundle.h"
#include "sideband/symbols/image.h"
#include "sideband/symbols/jitdump.h"
#include "sideband/symbols/symbols.h"
#include "sideband/timeline/timeline.h"

/* --- Contexts: numbers for the states of address spaces that executed, for flow --- */

/* Numbers that are no context: the thread, or what its process had mapped, is not known; or the
 * thread is not to be decoded (permit.h). */
#define CONTEXTS_THREAD_UNCERTAIN UINT32_MAX
#define CONTEXTS_IMAGE_UNCERTAIN  (UINT32_MAX - 1)
#define CONTEXTS_EXCLUDED	  (UINT32_MAX - 2)
#define CONTEXTS_NONE		  CONTEXTS_EXCLUDED /* the lowest of them */

struct context {
	const struct space *space; /* NULL: number 0, no process is known */
	uint64_t generation;
	uint64_t since; /* the newest of replay->unchanged; 0: none */
	/* Of a dump's code: the version that most likely holds, and the first and the last version
	 * that may hold. */
	struct context_versions {
		uint32_t likely, first, last;
	} versions;
	uint64_t time; /* mappings are looked up as of then, perf ns */
};

struct contexts {
	struct context *list; /* list[0]: no process */
	size_t n, capacity;
	uint32_t *slots; /* hash table: index into list, 0: free */
	size_t n_slots;
};

/* 0 or -ENOMEM. */
int contexts_init(struct contexts *c);
void contexts_done(struct contexts *c);
/* The number of SPACE as it was at TIME, new or known: equal numbers mean equal code. SINCE: which
 * memory of SPACE is known to be unchanged; VERSIONS: of its dump. 0 or -ENOMEM. */
int contexts_intern(struct contexts *c, const struct space *space, uint64_t time, uint64_t since,
		    struct context_versions versions, uint32_t *ret);

/* --- The replay --- */

/* A part of a CPU's trace: from the first PSB at or behind FROM (bytes; 0: all that was asked for,
 * or with WHOLE all of the trace), up to END (0: its size). */
struct replay_part {
	uint64_t from, end;
	bool whole;
};

/* Code that a context lacks may have been mapped by another thread while the context ran: before
 * UNTIL, and before FLOW's packet in hand. */
struct replay_late {
	uint64_t until;		    /* perf ns; 0: nothing is mapped late */
	const struct flow *flow;    /* NULL: UNTIL is the only limit */
	const struct tscmap *clock; /* of FLOW's CPU */
};

/* Some memory of SPACE is the same since NS, as it was read. */
struct replay_unchanged {
	const struct space *space;
	uint64_t ns;
};

/* How long the flows took, from packets to batches and with the questions which thread ran; what
 * is made of the branches does not count. All ns. */
struct stopwatch {
	uint64_t cpu, wall;		/* so far; processor time of all threads of this process */
	uint64_t cpu_since, wall_since; /* when it was started last */
};

struct replay {
	const struct bundle *bundle; /* borrowed */
	const struct manifest *manifest;
	struct tscmap clock;   /* with the shift of all CPUs */
	struct tscmap *clocks; /* of each CPU of the manifest, with its own shift */
	struct shift shift;    /* how the clocks were found */
	struct timeline *timeline;
	struct image_set *images;
	struct replay_unchanged *unchanged; /* by space, then by time */
	size_t n_unchanged;
	uint64_t begin_ns; /* perf ns; the traces tell nothing of what was before; 0: unknown */
	struct symbols *symbols;
	const struct permit *permit; /* borrowed; NULL: everything may be told */
	uint64_t bad_records;	     /* of the sideband, skipped */
	/* Settings of the flows that the consumer makes, all off at first, before a replay: steps,
	 * marks, ticks, guests, cut, resume_at_psb, resume_at_tip, retstack_libipt, retstack,
	 * threads, crew. Memory is the limit of this process. cpu_replay.c sets the other members.
	 */
	struct flow_config flow;
	/* The part of each CPU of the manifest that is decoded; borrowed. NULL: all that was asked
	 * for. */
	const struct replay_part *parts;
	struct stopwatch *watch; /* runs while the flows do; borrowed, may be NULL */
	/* Keeps the code, so that what is decoded again is compiled once; NULL before the
	 * first replay. */
	struct flow *code;
	struct contexts contexts;
	struct turns turns; /* of the manifest's CPUs, then of others in the sideband */
	/* Threads may have run, and mapped code, where no record tells. */
	bool partial;
	/* A thread of the only process with code, for CPUs without turns; may be NULL. */
	const struct timeline_thread *process;
	/* NULL: the kernel was not traced, or its code is not at hand. */
	struct kernel *kernel;
	uint64_t kernel_start;	 /* the kernel's first address */
	uint64_t switch_ip;	 /* the function in which the thread changes; 0: not known */
	struct flow_seam *seams; /* the manifest's, one for one */
	/* For the flow that asks for code; NULL: its context has no code that was mapped later. */
	const struct replay_late *late;
};

#define REPLAY_NAMED 8u

/* The threads that a stretch may belong to. */
struct replay_candidates {
	const struct timeline_thread *list[REPLAY_NAMED];
	size_t n; /* more than REPLAY_NAMED: not all are in the list; 0: any thread */
};

/* Consecutive items of one thread in one context. */
struct replay_stretch {
	const struct flow_item *items; /* borrowed until the consumer returns */
	size_t n_items;
	/* The gaps of these items, in order; an item's number counts from first_gap. */
	const struct flow_gap *gaps;
	size_t n_gaps, first_gap;
	/* The same for marks. */
	const struct flow_mark *marks;
	size_t n_marks, first_mark;
	const struct flow_batch *batch;	      /* for the walks of FLOW_STEPS items */
	struct flow *flow;		      /* for flow_run */
	size_t cpu;			      /* index into the manifest's CPUs */
	uint32_t context;		      /* number in replay->contexts */
	const struct timeline_thread *thread; /* NULL: unknown */
	/* Not NULL: some thread of this one's process, not known which. */
	const struct timeline_thread *process;
	const struct replay_candidates *candidates; /* with no thread; borrowed */
	bool switched; /* the thread gets the CPU here, without an item that says so */
	/* The stretch continues the CPU's last one, which ended only because a batch did. No
	 * stretch of another CPU comes between the two. */
	bool goes_on;
};

#define REPLAY_STOPPED 2

struct replay_consumer {
	/* Returns 0, or -errno, which ends the replay with that result. */
	int (*stretch)(void *userdata, const struct replay_stretch *s);
	/* At each CPU's new percent of its bytes; may be NULL. */
	void (*progress)(void *userdata, size_t cpu, unsigned percent);
	/* Before each batch; false ends the replay with REPLAY_STOPPED. May be NULL. */
	bool (*go_on)(void *userdata);
	void *userdata;
	struct flow_stats *stats; /* for each CPU of the manifest, set at the end; may be NULL */
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
/* The seams of the trace of CPU number INDEX, and their number; NULL: there are none. */
const struct flow_seam *replay_seams(const struct replay *r, size_t index, size_t *ret_n);
/* The context of SPACE as it was at TIME, for code that ran NO_EARLIER and NO_LATER (perf ns): of
 * memory, only what is unchanged since NO_EARLIER is known to be what ran, and of a dump only what
 * holds from then to NO_LATER. 0 or -ENOMEM. */
int replay_context(struct replay *r, const struct space *space, uint64_t time, uint64_t no_earlier,
		   uint64_t no_later, uint32_t *ret);
/* The code at ADDRESS in a context; results as of image_find. */
int replay_find(const struct replay *r, uint32_t context, uint64_t address, struct image_code *ret);
/* The function around ADDRESS, for which CODE was found: as symbols_find. */
void replay_symbol(const struct replay *r, uint64_t address, const struct image_code *code,
		   struct symbol *ret);
/* Copies up to SIZE bytes of code at ADDRESS, as far as they are there without a break. Returns
 * how many. */
size_t replay_read(const struct replay *r, uint32_t context, uint64_t address, uint8_t *to,
		   size_t size);
/* Whether ADDRESS is the kernel's, whose text is at hand. */
bool replay_is_kernel(const struct replay *r, uint64_t address);
/* From here on as if the kernel's text were not at hand. To be called before a replay. */
void replay_kernel_forget(struct replay *r);

/* --- FNV-1a, 64 bits, over instruction addresses: compares two streams without keeping them --- */

#define HASH_BASIS 0xcbf29ce484222325ull
#define HASH_PRIME 0x100000001b3ull

/* HASH, carried on over the 8 bytes of V, little-endian. */
static inline uint64_t hash_u64(uint64_t hash, uint64_t v)
{
	for (int shift = 0; shift < 64; shift += 8)
		hash = (hash ^ (v >> shift & 0xff)) * HASH_PRIME;
	return hash;
}
