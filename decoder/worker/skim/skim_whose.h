/*
 * Whose a sample is, by time alone: the turn of its CPU that it lies in.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decoder/worker/replay/replay.h"
#include "decoder/worker/skim/skim_read.h"

struct skim_owner {
	const struct timeline_thread *thread; /* NULL: nobody, or not known */
	/* Not NULL: one of this one's process, of which one is not known. */
	const struct timeline_thread *process;
	uint32_t context; /* number in replay->contexts */
	bool guest;	  /* a virtual machine's: none of the code here is its */
};

struct skim_whose {
	struct replay *replay; /* borrowed */
	size_t index;	       /* of the CPU in the manifest */
	bool guests;	       /* nothing tells a virtual machine's code from a process' */
	struct skim_owner owner;
	/* The last question's. Samples between two packets of time all have the same. */
	bool asked, kernel;
	uint64_t tsc_lo, tsc_hi;
	bool known;	       /* OWNER holds for such addresses ... */
	uint64_t since, until; /* ... within these times, perf ns */
};

void skim_whose_init(struct skim_whose *w, struct replay *r, size_t index);
/* Whose S is, valid until the next call. Calls for one CPU come in the order of its trace. 0 or
 * -ENOMEM. */
int skim_whose(struct skim_whose *w, const struct skim_sample *s, const struct skim_owner **ret);
