/*
 * Looking ahead in a trace without decoding it: the stretches of user code that packets alone show,
 * each from where tracing goes on to where it goes off.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "decoder/flow/flow.h"
#include "decoder/packet/event.h"
#include "decoder/time/timing.h"

enum scan_end {
	SCAN_END_UNKNOWN, /* packets are missing, or the trace ends */
	SCAN_END_BRANCH,  /* by an instruction: a system call, in a trace of user code only */
	SCAN_END_ASYNC,	  /* in front of an instruction */
};

struct scan_stretch {
	uint64_t offset;	     /* of the packet with which it begins */
	uint64_t until;		     /* of the packet with which it ends */
	uint64_t ip;		     /* its first instruction */
	uint64_t enter_lo, enter_hi; /* TSC; 0 and UINT64_MAX where unknown */
	uint64_t leave_lo, leave_hi;
	uint64_t left; /* SCAN_END_ASYNC: the instruction that would have been next; 0: not known */
	uint8_t end;   /* enum scan_end */
	bool broken;   /* packets were lost before it: there may have been other stretches */
};

struct scan {
	struct event_reader reader;
	struct timing timing;
	bool done, broken;
	bool open; /* next has begun */
	bool guests;
	bool readers; /* are wanted */
	struct scan_stretch next;
	struct event_reader begin;  /* of it */
	struct event_reader *ended; /* to be set to that of the one that ends; or NULL */
};

/* Whether IP lies in the processor's canonical upper half. */
static inline bool scan_is_kernel(uint64_t ip)
{
	return ip >> 63;
}

/* From FIRST on, which begins with the packet for which F asks its context function; its offset,
 * ip, enter_lo, enter_hi and broken are given. */
void scan_begin(struct scan *s, const struct flow *f, const struct scan_stretch *first);
/* All by itself, in the bytes of CONFIG's trace from START (a PSB) to STOP; of CONFIG only the
 * trace, time and processor are looked at. */
void scan_start(struct scan *s, const struct flow_config *config, size_t start, size_t stop);
/* The next one; false: there is none. *ret_reader: of the packets behind its beginning; NULL: it is
 * not wanted, as it is never after scan_start. */
bool scan_next(struct scan *s, struct scan_stretch *ret, struct event_reader *ret_reader);
