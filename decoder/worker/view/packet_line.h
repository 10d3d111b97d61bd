/*
 * One packet of a trace as a line of libipt's ptdump, with what is known behind the packets before
 * it: the last IP, the estimated time. Part of views_packets.c.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decoder/packet/packet.h"
#include "decoder/time/estimate.h"
#include "decoder/worker/view/lines.h"
#include "decoder/worker/view/pevent.h"

struct packet_line {
	struct lines *lines;
	uint64_t show;	       /* WORKER_SHOW_* */
	struct pevent *pevent; /* borrowed; NULL: there is none */
	bool timed;	       /* something needs the time */
	bool hidden;	       /* the packets so far are only looked at */
	struct estimate estimate;
	uint64_t last_tsc, last_length; /* shown before, for --time-delta */
	uint64_t ip;
	bool have_ip;
};

void packet_line_init(struct packet_line *pl, uint64_t show, const struct estimate_config *config,
		      struct lines *l);
/* At an error of the trace: what was known is not any more. */
void packet_line_reset(struct packet_line *pl);
/* The packet P at OFFSET, which lies at BYTES. Before it, lines about what is wrong with it, and
 * the sideband records that are due. */
void packet_line_write(struct packet_line *pl, const struct packet *p, const uint8_t *bytes,
		       uint64_t offset);
/* "[OFFSET: WHAT: WHY]" or "[OFFSET: WHAT]" (WHY is NULL). */
void packet_line_say(const struct packet_line *pl, uint64_t offset, const char *what,
		     const char *why);
