/*
 * A second reader of packets that follows the items. Called by views_ptxed.c and views_events.c.
 */
#include "decoder/worker/view/track.h"

#include "decoder/packet/event.h"
#include "decoder/packet/packet.h"

/* What belongs together stands near together. */
#define LOOK_AHEAD 64u

void track_init(struct track *t, const uint8_t *trace, size_t size, const struct errata *errata,
		const struct estimate_config *estimate)
{
	const uint8_t *end = trace + size, *psb = sync_find(trace, end);

	*t = (struct track){
		.trace = trace,
		.cursor = {.pos = psb != NULL ? psb : end,
			   .end = end,
			   .quirks = event_quirks(errata)},
		.timed = estimate != NULL,
	};
	if (estimate != NULL)
		estimate_init(&t->estimate, estimate);
}

/* Goes from bytes that are no packet to the next PSB, as the decoder does. */
static void skip_bad(struct track *t, int result)
{
	const uint8_t *psb =
		sync_find(t->cursor.pos + (result == PACKET_BAD ? 1 : 0), t->cursor.end);

	t->cursor.pos = psb != NULL ? psb : t->cursor.end;
	t->cursor.bip_bytes = 0;
	if (t->timed)
		estimate_reset(&t->estimate);
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

/* The next packet, and what it says of the place when it is one of those. False: the end. */
static bool next(struct track *t, struct track_packet *ret)
{
	struct packet p;
	int r;

	for (;;) {
		if (t->cursor.pos >= t->cursor.end)
			return false;
		*ret = (struct track_packet){.offset = (uint64_t)(t->cursor.pos - t->trace)};
		r = packet_next(&t->cursor, &p);
		if (r == 0)
			break;
		skip_bad(t, r);
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

/* Up to the end of the PSB+. */
static bool find_fup(struct track *t, uint64_t *ret_ip)
{
	unsigned left = LOOK_AHEAD;
	struct track_packet p;

	while (left-- > 0 && next(t, &p) && p.type != PACKET_PSBEND) {
		if (p.type == PACKET_FUP && p.has_ip) {
			*ret_ip = p.ip;
			return true;
		}
	}
	return false;
}

bool track_psb(struct track *t, uint64_t until, uint64_t *ret_ip)
{
	struct track_packet p;

	while ((uint64_t)(t->cursor.pos - t->trace) <= until && next(t, &p)) {
		if (p.type == PACKET_PSB && find_fup(t, ret_ip))
			return true;
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
	/* A timing packet is written with the time that it tells, a PSB with that behind it. */
	if ((uint64_t)(t->cursor.pos - t->trace) == offset && next(&ahead, &p) &&
	    p.type == PACKET_PSB)
		while (ahead.estimate.in_psb && left-- > 0 && next(&ahead, &p))
			;
	return estimate_tsc(&ahead.estimate, ret) == ESTIMATE_OK;
}
