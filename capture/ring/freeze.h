/*
 * Stop all CPUs, copy the newest bytes, restart each behind its own copy; measures its own
 * darkness. Runs in the job thread, with a few threads that wait for it; nobody else touches the
 * events meanwhile.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "capture/ring/area.h"
#include "capture/ring/source.h"

struct freezer;

/* For sources of up to N_CPUS CPUs. COPIERS: how many copy at a time, the caller of freeze_snapshot
 * among them; 0: half of the CPUs that are online, rounded up, at most 8. Threads that cannot be
 * had are done without. 0 or -ENOMEM. */
int freezer_new(size_t n_cpus, unsigned copiers, struct freezer **ret);
/* Nothing is being frozen. */
void freezer_free(struct freezer *f);

#define FREEZE_ANY_CPU UINT32_MAX
struct freeze_wish {
	uint64_t bytes; /* the newest of each CPU; 0: all */
	bool resume;	/* false: leave the CPUs stopped (COMMAND has ended, last snapshot) */
	uint32_t cpu;	/* number of the CPU that is to stop first; FREEZE_ANY_CPU */
};

struct freeze_cpu {
	bool traced;	/* it was to be stopped; what follows is ABSENT or false where it was not */
	uint64_t bytes; /* copied, at offset in the area */
	uint64_t offset;
	uint64_t stop_order; /* 0: it was told to stop first */
	/* Perf clock before it was told to stop, and when it was seen to have stopped; ABSENT where
	 * there is no clock. */
	uint64_t asked_ns, stop_ns;
	uint64_t dark_ns; /* CLOCK_MONOTONIC from the call that stopped it to the one that restarted
			     it; ABSENT: that did not happen, or not in time */
	uint64_t copy_ns; /* ABSENT: nothing to copy */
	bool together;	  /* all were stopped by one call, within which it has no time */
	bool no_answer;	  /* to stop or restart, in time */
	bool not_stopped; /* disable failed: no bytes */
	bool not_restarted; /* enable failed */
};

/* When CPU stopped, perf clock: TOLD_NS, which is of the AUX record that the kernel wrote at a stop
 * (kernel/events/ring_buffer.c, perf_aux_output_end), if it was this one; else what was seen. */
uint64_t freeze_stop_ns(const struct freeze_cpu *cpu, uint64_t told_ns);

/* One frozen moment of S. CPUs that trace are stopped, copied and restarted; the rings of others
 * are copied as they are. AREA too small for a ring: its newest bytes. RET has s->n_cpus elements
 * and is filled in any case. 0 or the first -errno; what could be stopped is copied, and the CPUs
 * run again, in any case. One at a time. */
int freeze_snapshot(struct freezer *f, struct source *s, const struct freeze_wish *wish,
		    const struct area *area, struct freeze_cpu *ret);
