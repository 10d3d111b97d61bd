/*
 * The packets of one CPU's trace beside its items: an item names the packet that decided it by its
 * offset only, and the views that show events want to know which packet that was, what else it
 * said, and what libipt's tools would say of the time.
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
	struct estimate estimate; /* when timed: at the cursor */
};

/* A packet of those that say where execution is (PSB, OVF, FUP, TIP, TIP.PGE, TIP.PGD). */
struct track_packet {
	uint8_t type; /* enum packet_type; PACKET_PAD: there is none */
	bool has_ip;
	uint64_t ip, offset;
};

/* The packet at an offset, or the first such one behind it, and the next such one. */
struct track_pair {
	struct track_packet first, second;
};

/* ESTIMATE: how to tell the time; NULL: not at all. */
void track_init(struct track *t, const uint8_t *trace, size_t size, const struct errata *errata,
		const struct estimate_config *estimate);
/* Offsets must not fall from call to call of this and of track_time(): what lies before OFFSET is
 * passed. */
void track_look(struct track *t, uint64_t offset, struct track_pair *ret);
/* The next PSB up to UNTIL, which is passed, that says where execution is. False: there is none. */
bool track_psb(struct track *t, uint64_t until, uint64_t *ret_ip);
/* The time when the packet at OFFSET was written. False: none is known. */
bool track_time(struct track *t, uint64_t offset, uint64_t *ret);
