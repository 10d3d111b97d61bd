/*
 * For how long each CPU has been traced without a break, as far as anybody looked: what a ring can
 * reach back at the most.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "capture/ring/source.h"

struct fill {
	const struct source *source; /* borrowed */
	uint64_t *since_ns;	     /* owned, one a CPU; 0: it is not traced */
	uint64_t started_ns;
};

/* NOW_NS, here and below: CLOCK_MONOTONIC. 0 or -ENOMEM. */
int fill_init(struct fill *f, const struct source *source, uint64_t now_ns);
void fill_done(struct fill *f);
/* Looks which CPUs are traced now. A break between two looks is not seen. */
void fill_look(struct fill *f, uint64_t now_ns);
/* How long CPU has been traced; where it is not, or CPU is ENTRY_NO_CPU, the longest of all; where
 * none is, how long the recorder has been at it. */
uint64_t fill_ns(const struct fill *f, uint32_t cpu, uint64_t now_ns);
