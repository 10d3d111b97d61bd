/*
 * Follows the items with a second reader of packets, for the view of ptxed.
 */
#include "decoder/worker/view/views_ptxed.h"

#include "decoder/packet/event.h"
#include "decoder/packet/packet.h"

#define LOOK_AHEAD 64u /* packets: those of one event are close together */

void track_init(struct track *t, const uint8_t *trace, size_t size, const struct errata *errata,
		const struct estimate_config *estimate)
{
	const uint8_t *end = trace + size, *psb = sync_find(trace, end);

	*t = (struct track){
		.trace = trace,
		.cursor = {.pos = psb ? psb : end, .end = end, .quirks = event_quirks(errata)},
		.timed = estimate,
	};
	if (estimate)
		estimate_init(&t->estimate, estimate);
}

static bool is_place(uint8_t type)
{
	switch (type) {
	case PACKET_PSB:
	case PACKET_OVF:
	case PACKET_FUP:
	case PACKET_TIP:
	case PACKET_TIP_PGE:
	case PACKET_TIP_PGD: return true;
	default: return false;
	}
}

/* The next packet; *ret is complete if the packet says where execution is. False: the end. Bytes
 * that are no packet are skipped up to the next PSB, as the decoder does. */
static bool next(struct track *t, struct track_packet *ret)
{
	const uint8_t *psb;
	struct packet p;
	int r;

	for (;;) {
		if (t->cursor.pos >= t->cursor.end)
			return false;
		*ret = (struct track_packet){.offset = (uint64_t)(t->cursor.pos - t->trace)};
		r = packet_next(&t->cursor, &p);
		if (r == 0)
			break;
		psb = sync_find(t->cursor.pos + (r == PACKET_BAD), t->cursor.end);
		t->cursor.pos = psb ? psb : t->cursor.end;
		t->cursor.bip_bytes = 0;
		if (t->timed)
			estimate_reset(&t->estimate);
	}
	ret->type = p.type;
	if (t->timed)
		estimate_packet(&t->estimate, &p);
	if (p.type == PACKET_PSB)
		t->last_ip = 0;
	else if (p.type != PACKET_OVF && is_place(p.type))
		ret->has_ip = packet_ip(&p, &t->last_ip, &ret->ip) != 0;
	return true;
}

static void next_place(struct track *t, unsigned *left, struct track_packet *ret)
{
	while (*left > 0 && next(t, ret)) {
		if (is_place(ret->type))
			return;
		(*left)--;
	}
	*ret = (struct track_packet){.type = PACKET_PAD};
}

static void pass(struct track *t, uint64_t offset)
{
	struct track_packet p;

	while ((uint64_t)(t->cursor.pos - t->trace) < offset && next(t, &p))
		;
}

void track_look(struct track *t, uint64_t offset, struct track_pair *ret)
{
	struct track ahead;
	unsigned left = LOOK_AHEAD;

	pass(t, offset);
	ahead = *t;
	ahead.timed = false;
	next_place(&ahead, &left, &ret->first);
	next_place(&ahead, &left, &ret->second);
}

bool track_psb(struct track *t, uint64_t until, uint64_t *ret_ip)
{
	struct track_packet p;

	while ((uint64_t)(t->cursor.pos - t->trace) <= until && next(t, &p)) {
		unsigned left = LOOK_AHEAD;

		if (p.type != PACKET_PSB)
			continue;
		/* The FUP of the PSB+. */
		while (left-- > 0 && next(t, &p) && p.type != PACKET_PSBEND) {
			if (p.type == PACKET_FUP && p.has_ip) {
				*ret_ip = p.ip;
				return true;
			}
		}
	}
	return false;
}

bool track_time(struct track *t, uint64_t offset, uint64_t *ret)
{
	unsigned left = LOOK_AHEAD;
	struct track_packet p;
	struct track ahead;

	pass(t, offset);
	ahead = *t;
	/* A timing packet was written at the time that it tells; a PSB, at the time that its PSB+
	 * tells. */
	if ((uint64_t)(t->cursor.pos - t->trace) == offset && next(&ahead, &p) &&
	    p.type == PACKET_PSB)
		while (ahead.estimate.in_psb && left-- > 0 && next(&ahead, &p))
			;
	return estimate_tsc(&ahead.estimate, ret) == ESTIMATE_OK;
}
