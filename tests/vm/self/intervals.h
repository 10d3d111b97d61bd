/*
 * When instructions executed: what the decoder claims, and what the log says.
 *
 * The trace unit reads the clock every INTERVALS_LOOK instructions at the latest, and all that
 * executes until then has the time of the last look in the trace. An instruction therefore never
 * executed before the begin of the decoder's interval. The interval's end is no earlier than the
 * time of an instruction INTERVALS_LOOK instructions before. The trace unit also reads the clock
 * where user code begins behind kernel code that is not traced, a moment before the log does: there
 * the interval's end is no earlier than the time at which user code began the time before.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* 64 blocks (retire.h, RETIRE_BUDGET) of 512 instructions, which is QEMU's limit. */
#define INTERVALS_LOOK 32768u
/* Of a place between two packets, ticks. */
#define INTERVALS_SLOP 200u

/* The entries of a stream from number AT on: between LO and HI, TSC ticks. */
struct interval {
	size_t at;
	uint64_t lo, hi;
	bool enters; /* of the log: user code begins */
};

struct intervals {
	struct interval *v; /* by `at` */
	size_t n, capacity;
};

void intervals_append(struct intervals *t, size_t at, uint64_t lo, uint64_t hi, bool enters);
void intervals_done(struct intervals *t);

/* The last instruction of the log, at or before POS, at which entry AT of CLAIMED can have
 * executed, and 1 more: later ones executed behind the claimed interval. */
size_t intervals_not_after(const struct intervals *claimed, size_t at, const struct intervals *real,
			   size_t pos);

struct intervals_result {
	uint64_t within; /* the true time is in the decoder's interval */
	uint64_t behind; /* behind the interval, as the unit's clock stood still */
	uint64_t wrong;	 /* cannot be */
	uint64_t wide;	 /* known intervals: their widths together, ticks */
	uint64_t known;
};

/* Compares the times CLAIMED with those of the log, REAL (lo == hi), for the entries from FROM to
 * TO of the decoder's stream. MATCH: of each entry, the number of its instruction in the log, and 1
 * more; 0: it has none. TELL: prints the first wrong ones. */
struct intervals_result intervals_compare(const struct intervals *claimed,
					  const struct intervals *real, const uint32_t *match,
					  size_t from, size_t to, bool tell);
