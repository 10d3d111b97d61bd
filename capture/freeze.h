/*
 * Stop all CPUs, copy the newest bytes, restart; measures its own darkness. The caller provides the
 * copy area, allocated and touched before. Runs in the job thread; nobody else touches the events
 * meanwhile.
 */
#pragma once

#include <stdint.h>

#include "capture/source.h"

struct freeze_cpu {
	uint64_t bytes; /* copied, at offset in the area */
	uint64_t offset;
	uint64_t stop_ns; /* perf clock at which it was stopped, ABSENT where there is no clock */
	uint64_t dark_ns; /* CLOCK_MONOTONIC from the call that stopped it to the one that restarted
			     it; ABSENT: that did not happen, or not in time */
	uint64_t copy_ns;
	bool no_answer;	    /* to stop or restart, in time */
	bool not_stopped;   /* disable failed: no bytes */
	bool not_restarted; /* enable failed */
};

/* Bytes of copy area that source S needs for WANTED bytes a CPU (0: all). */
uint64_t freeze_area_size(const struct source *s, uint64_t wanted);
/* RET has s->n_cpus elements and is filled in any case. RESUME false: leave the CPUs stopped
 * (COMMAND has ended, last snapshot). 0 or the first -errno; what could be stopped is copied, and
 * the CPUs run again, in any case. */
int freeze_snapshot(struct source *s, uint64_t wanted, bool resume, uint8_t *area,
		    struct freeze_cpu *ret);
