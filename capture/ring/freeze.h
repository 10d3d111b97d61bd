/*
 * Copies all rings at one moment: the memory for the copies, and the threads that copy.
 *
 * A snapshot stops all CPUs, copies the newest bytes of each, and restarts each CPU behind its own
 * copy. It measures for how long each CPU was not traced (its dark time), and adds that time to the
 * CPU's list (dark.h) for the snapshots that follow.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "capture/ring/source.h"

/*
 * Memory for one copy of all rings: a slice for each CPU, on the CPU's NUMA node, since copying
 * between nodes costs half the speed. All pages are touched before anything is frozen, so that the
 * kernel allocates no page while the CPUs stand still.
 */

/* A value; all zero is an empty area. */
struct area {
	uint8_t *base;	/* owned; NULL: no memory */
	uint64_t slice; /* bytes per CPU, whole pages; CPU INDEX's slice begins at INDEX * slice */
	size_t n_cpus;
};

/* The bytes that the largest copy of a CPU of S takes if WANTED bytes (0: all) are asked for. */
uint64_t area_slice(const struct source *s, uint64_t wanted);
/* Allocates slices of that size, and touches those of CPUs that have a ring. *ret is empty if no
 * CPU has a ring. 0 or -ENOMEM. */
int area_make(const struct source *s, uint64_t wanted, struct area *ret);
/* Whether WANTED bytes of every ring of S fit. */
bool area_holds(const struct area *a, const struct source *s, uint64_t wanted);
/* Touches slices as area_make() does, for rings that were added since. Keeps the contents. */
void area_touch(const struct area *a, const struct source *s);
void area_done(struct area *a);
/* Makes the kernel take the pages of [START, START + SIZE), which are page-aligned and not yet
 * touched, from NODE while the node has any (mbind(2), MPOL_PREFERRED). NODE below 0: does nothing.
 * 0 or -errno; on an error the pages come from any node. */
int area_prefer_node(void *start, size_t size, int node);

struct freezer;

/* Makes a freezer for S, or for sources with at most as many CPUs. COPIERS: the number of threads
 * that copy at a time, including the caller of freeze_snapshot(); 0: as many as suit the host
 * (copiers.h). If threads cannot be started, fewer threads copy. 0 or -ENOMEM. */
int freezer_new(const struct source *s, unsigned copiers, struct freezer **ret);
/* Must not be called during freeze_snapshot(). */
void freezer_free(struct freezer *f);

#define FREEZE_ANY_CPU UINT32_MAX
struct freeze_wish {
	uint64_t bytes; /* the newest of each CPU; 0: all */
	bool resume;	/* false: leave the CPUs stopped (COMMAND has ended, last snapshot) */
	uint32_t cpu;	/* number of the CPU to stop first, or FREEZE_ANY_CPU */
};

/* A CPU that was not to be stopped has traced false, times ABSENT and flags false. */
struct freeze_cpu {
	bool traced;	     /* the CPU was to be stopped */
	uint64_t bytes;	     /* copied to the area */
	uint64_t offset;     /* in the area */
	uint64_t stop_order; /* 0: the first CPU that was told to stop */
	/* Perf clock before the CPU was told to stop, and when it was seen to have stopped; ABSENT
	 * without a clock. */
	uint64_t asked_ns, stop_ns;
	/* CLOCK_MONOTONIC from the call that stopped the CPU to the call that restarted it; ABSENT:
	 * one of them failed or timed out. */
	uint64_t dark_ns;
	uint64_t copy_ns;   /* how long the copy took; ABSENT: nothing to copy */
	bool together;	    /* one call stopped all CPUs; stop_ns is the end of that call */
	bool no_answer;	    /* the CPU did not stop or restart in time */
	bool not_stopped;   /* disable failed: no bytes */
	bool not_restarted; /* enable failed: the CPU is dark until the source has mended it */
};

/* When CPU stopped, by the perf clock. TOLD_NS is the time of the AUX record that the kernel wrote
 * at a stop (kernel/events/ring_buffer.c, perf_aux_output_end). Returns TOLD_NS if it is within
 * this CPU's stop, else stop_ns. */
uint64_t freeze_stop_ns(const struct freeze_cpu *cpu, uint64_t told_ns);

/* Copies all rings of S into AREA. CPUs that trace are stopped, copied and restarted; rings of
 * other CPUs are copied as they are. If AREA is too small for a ring, the ring's newest bytes are
 * copied. RET has s->n_cpus elements and is filled in any case. Returns 0 or the first -errno of a
 * CPU; even then all CPUs that could be stopped are copied, and all CPUs are restarted. Runs in the
 * caller's thread (a job's) and the freezer's, which have real-time priority while CPUs are stopped
 * where that is permitted (realtime.h); nothing else may use the events meanwhile. One call at a
 * time. */
int freeze_snapshot(struct freezer *f, struct source *s, const struct freeze_wish *wish,
		    const struct area *area, struct freeze_cpu *ret);
