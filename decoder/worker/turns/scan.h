/*
 * Looks ahead in a trace without decoding it: finds the stretches of user code that packets alone
 * show, each from where tracing goes on to where it goes off.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "decoder/flow/flow.h"
#include "decoder/packet/event.h"
#include "decoder/time/timing.h"

enum scan_end {
	SCAN_END_UNKNOWN, /* packets are missing, or the trace ends */
	SCAN_END_BRANCH,  /* by an instruction; in a trace of user code only, a system call */
	SCAN_END_ASYNC,	  /* in front of an instruction */
};

struct scan_stretch {
	uint64_t offset;	     /* of the packet with which the stretch begins */
	uint64_t until;		     /* of the packet with which the stretch ends */
	uint64_t ip;		     /* its first instruction */
	uint64_t enter_lo, enter_hi; /* TSC; 0 and UINT64_MAX where unknown */
	uint64_t leave_lo, leave_hi;
	/* SCAN_END_ASYNC: the instruction that would have been next; SCAN_END_BRANCH: the target of
	 * a branch out of what is traced; 0: not known. */
	uint64_t left;
	uint8_t end; /* enum scan_end */
	bool broken; /* packets were lost before it, so other stretches may be missing */
};

struct scan {
	struct event_reader reader;
	struct timing timing;
	bool done, broken;
	bool open;    /* `next` has begun */
	bool guests;  /* code of virtual machines counts */
	bool readers; /* scan_next's ret_reader is wanted */
	struct scan_stretch next;
	struct event_reader begin;  /* at the beginning of `next` */
	struct event_reader *ended; /* gets `begin` of the stretch that ends; NULL: not wanted */
};

/* Whether IP lies in the processor's canonical upper half. */
static inline bool scan_is_kernel(uint64_t ip)
{
	return ip >> 63;
}

/* Starts with FIRST, which begins with the packet for which F asks its context function. The caller
 * sets FIRST's offset, ip, enter_lo, enter_hi and broken. */
void scan_begin(struct scan *s, const struct flow *f, const struct scan_stretch *first);
/* Starts without a flow, in the bytes of CONFIG's trace from START (a PSB) to STOP. Only CONFIG's
 * trace, time and processor are used. */
void scan_start(struct scan *s, const struct flow_config *config, size_t start, size_t stop);
/* The next stretch; false: there is none. *ret_reader reads the packets behind its beginning; it
 * must be NULL after scan_start. */
bool scan_next(struct scan *s, struct scan_stretch *ret, struct event_reader *ret_reader);
