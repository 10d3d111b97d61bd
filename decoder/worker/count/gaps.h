/*
 * What is missing, by kind and as a bounded list: faults of the trace and of the recording.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "decoder/flow/flow.h"
#include "decoder/packet/fault.h"

#define GAPS_MAX    10000u /* listed; all are counted */
#define GAPS_NO_CPU UINT32_MAX

/* A u64 is MANIFEST_ABSENT where it is not known. */
struct gap {
	enum fault kind;
	uint32_t cpu; /* GAPS_NO_CPU: of no one CPU */
	size_t trace; /* index into the manifest's CPUs of the trace it is in; SIZE_MAX: in none */
	uint64_t time_ns, tsc, offset, bytes, address, count;
	char *why; /* owned; NULL: fault_why */
};

struct gaps {
	struct gap *list; /* in order of finding */
	size_t n, capacity;
	uint64_t counts[FAULT_N_];
	uint64_t total;
	uint64_t head_bytes; /* before the first PSBs: not a gap, the ring's oldest end */
};

void gaps_init(struct gaps *g);
void gaps_done(struct gaps *g);
/* All fields absent, one of KIND. */
struct gap gaps_blank(enum fault kind);
/* Counts GAP and, while there is room, lists it with a copy of WHY (may be NULL). 0 or -ENOMEM. */
int gaps_add(struct gaps *g, const struct gap *gap, const char *why);

struct replay;
/* What the flow of a CPU could not decode. 0 or -ENOMEM. */
int gaps_add_flow(struct gaps *g, const struct replay *r, uint32_t cpu, const struct flow_gap *gap);
/* INSNS instructions were decoded there, and it is not known whose. 0 or -ENOMEM. */
int gaps_add_nobodys(struct gaps *g, const struct replay *r, uint32_t cpu,
		     const struct flow_gap *gap, uint64_t insns);
/* What recorder, kernel and timeline know to be missing. BEGIN_NS: for each CPU of the manifest
 * when its trace begins, MANIFEST_ABSENT where unknown. 0 or -ENOMEM. */
int gaps_add_recording(struct gaps *g, const struct replay *r, const uint64_t *begin_ns);
