/*
 * Checks that pieces of decoded addresses occur in order in the executed ones, by thread and CPU (a
 * lane). For test programs: out of memory ends the process.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Addresses by number (subset.numbers), because a test has many instructions but few addresses. */
struct subset_ips {
	uint32_t *ids;
	size_t n, room;
};

struct subset_lane {
	uint32_t pid, tid, cpu;
	struct subset_ips truth; /* what was executed, in order */
	struct subset_ips piece; /* decoded since the CPU's last gap */
	size_t pos;		 /* in truth: behind the last piece */
	uint64_t gaps;		 /* of the CPU, counted when the last piece ended */
	uint64_t total, pieces;	 /* decoded */
	char wrong[512];	 /* the first error; "": none */
};

struct subset {
	struct subset_lane **lanes;
	size_t n_lanes;
	struct {
		uint64_t *ips; /* open addressing, by hash; 0: free */
		uint32_t *ids;
		size_t n, room;
	} numbers;
	uint64_t *by_id;    /* addresses */
	uint64_t gaps[256]; /* by CPU, modulo */
};

/* Finds or adds the lane; valid until subset_done. */
struct subset_lane *subset_lane(struct subset *s, uint32_t pid, uint32_t tid, uint32_t cpu);
/* Call executed for everything that was executed, before decoded. */
void subset_executed(struct subset *s, struct subset_lane *l, uint64_t ip);
void subset_decoded(struct subset *s, struct subset_lane *l, uint64_t ip);
/* Reports a gap on CPU: the pieces of all its lanes end here. */
void subset_gap(struct subset *s, uint32_t cpu);
/* Call at the end: checks the last piece of every lane. */
void subset_end(struct subset *s);
void subset_done(struct subset *s);
