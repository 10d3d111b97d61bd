/*
 * A second reader of one CPU's packets, which follows the items.
 *
 * An item names the packet that decided it by its offset alone. The views of events also need to
 * know which packet that was, what else the packet says, and which time libipt's tools would give
 * it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decoder/packet/errata.h"
#include "decoder/packet/packet.h"
#include "decoder/time/estimate.h"

struct track {
	const uint8_t *trace; /* borrowed */
	struct packet_cursor cursor;
	uint64_t last_ip;
	bool timed;
	struct estimate estimate; /* if timed: the time at the cursor */
};

/* A packet that says where execution is: PSB, OVF, FUP, TIP, TIP.PGE or TIP.PGD. */
struct track_packet {
	uint8_t type; /* enum packet_type; PACKET_PAD: there is no such packet */
	bool has_ip;
	uint64_t ip, offset;
};

/* The first such packet at or behind an offset, and the next one. */
struct track_pair {
	struct track_packet first, second;
};

/* ESTIMATE: how to estimate the time; NULL: no time is needed. */
void track_init(struct track *t, const uint8_t *trace, size_t size, const struct errata *errata,
		const struct estimate_config *estimate);
/* From call to call of this function and of track_time(), offsets must not fall: the packets before
 * OFFSET are passed. */
void track_look(struct track *t, uint64_t offset, struct track_pair *ret);
/* Passes the next PSB up to UNTIL that says where execution is: *ret_ip. False: there is none. */
bool track_psb(struct track *t, uint64_t until, uint64_t *ret_ip);
/* The time when the packet at OFFSET was written. False: unknown. */
bool track_time(struct track *t, uint64_t offset, uint64_t *ret);
