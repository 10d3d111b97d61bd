/*
 * Places in a trace, found by time or by distance without reading the trace from its beginning.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A PSB. */
struct segment_psb {
	uint64_t offset;
	uint64_t tsc; /* of its PSB+; 0: it has none */
};

/* The first PSB at or behind FROM and before UNTIL (bytes); false: there is none. */
bool segment_next(const uint8_t *trace, uint64_t from, uint64_t until, struct segment_psb *ret);
/* The last PSB before UNTIL, no more than REACH bytes away; false: there is none. */
bool segment_before(const uint8_t *trace, uint64_t until, uint64_t reach, struct segment_psb *ret);
/* The last PSB of a trace of SIZE bytes whose TSC is not after TSC, where times rise; false: there
 * is none. Takes the time of looking at a few hundred kilobytes where PSBs are as dense as usual.
 */
bool segment_find(const uint8_t *trace, uint64_t size, uint64_t tsc, struct segment_psb *ret);
/* The TSC of the last PSB that lies before the first one whose TSC is after TSC: decoding from
 * there has everything that happened since TSC. 0: there is none, the whole trace is newer. Reads
 * the headers of all PSBs up to there. */
uint64_t segment_window(const uint8_t *trace, size_t size, uint64_t tsc);
