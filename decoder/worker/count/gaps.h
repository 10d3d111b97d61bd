/*
 * What is missing: faults of the trace and of the recording, counted by kind and kept in a bounded
 * list.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "decoder/flow/flow.h"
#include "decoder/packet/fault.h"

#define GAPS_MAX    10000u /* in the list; all gaps are counted */
#define GAPS_NO_CPU UINT32_MAX

/* A uint64_t that is not known is MANIFEST_ABSENT. */
struct gap {
	enum fault kind;
	uint32_t cpu; /* GAPS_NO_CPU: the gap concerns no single CPU */
	size_t trace; /* whose trace has the gap: index into the manifest's CPUs; SIZE_MAX: none */
	uint64_t time_ns, tsc, offset, bytes, address, count;
	char *why; /* owned; NULL: fault_why */
};

struct gaps {
	struct gap *list; /* in the order in which gaps were found */
	size_t n, capacity;
	uint64_t counts[FAULT_N_];
	uint64_t total;
	uint64_t head_bytes; /* before the first PSBs: not a gap, the ring's oldest end */
};

void gaps_init(struct gaps *g);
void gaps_done(struct gaps *g);
/* A gap of KIND with all other fields absent, and count 1. */
struct gap gaps_blank(enum fault kind);
/* Counts GAP and, while there is room, lists it with a copy of WHY (may be NULL). 0 or -ENOMEM. */
int gaps_add(struct gaps *g, const struct gap *gap, const char *why);

struct replay;
/* Adds what the flow of a CPU could not decode. 0 or -ENOMEM. */
int gaps_add_flow(struct gaps *g, const struct replay *r, uint32_t cpu, const struct flow_gap *gap);
/* Adds a gap in which INSNS instructions were decoded whose thread is not known. 0 or -ENOMEM. */
int gaps_add_unowned(struct gaps *g, const struct replay *r, uint32_t cpu,
		     const struct flow_gap *gap, uint64_t insns);
/* Adds gaps that the trace itself does not show: the recorder's notes, the kernel's LOST and AUX
 * records, and sideband that cannot be read or does not reach back far enough. BEGIN_NS: for each
 * CPU of the manifest when its trace begins, MANIFEST_ABSENT where unknown. 0 or -ENOMEM. */
int gaps_add_recording(struct gaps *g, const struct replay *r, const uint64_t *begin_ns);
