/*
 * Finds packets that are earlier than packets before them.
 *
 * The TSC of one processor never runs backwards, so a TSC that is earlier than one before it says
 * that the bytes are not what the processor wrote, one after the other: bytes are there twice, or
 * old bytes stand behind new ones. Nothing says where between the two TSCs such bytes begin. What
 * the reader does:
 *
 * - At each PSB it looks at the next PSB. If that one is earlier, the segment between them is
 *   doubted before anything in it is claimed. If it is the same PSB+ once more, byte for byte, so
 * is the first of the two segments: no processor writes that many packets at one time.
 * - Doubt lasts up to the first PSB that is later than all that was claimed before: what was there
 *   twice is then claimed once. The time where doubt begins does not count: that PSB+ may be cut,
 *   and the bytes behind be taken for its time. If there is no such PSB, one TSC may be wrong by
 *   itself, and the next PSB fits to those before; else the rest of the trace is doubted.
 * - A TSC outside of PSB+ that is earlier than the TSC before it is found where it stands. Doubt
 *   begins there; the time of what stands between the two TSCs is unknown (decoder/time).
 *
 * What is no contradiction: the TSC packet has 56 bits and wraps; in a virtual machine the TSC may
 * have an offset, so its TSCs are compared with nothing (SDM volume 3, edition 083, 33.5.1
 * "VMX-Specific Packets and VMCS Controls").
 *
 * Work stays linear: bytes are searched for the next PSB once more, and for the end of doubt up to
 * SEARCHES times.
 */
#include <string.h>

#include "decoder/packet/event_read.h"
#include "proto/base.h"
#include "proto/perf/ptpacket.h"

#define WRAP	 (UINT64_C(1) << 55) /* half of what a TSC packet holds */
#define SEARCHES 16u		     /* that come to the end of the trace without a result */

bool event_is_earlier(uint64_t tsc, uint64_t than)
{
	return tsc < than && than - tsc <= WRAP;
}

/* The time in a PSB+. */
struct stamp {
	bool known, guest;
	uint64_t tsc;
	size_t size; /* bytes up to the end of PSBEND; 0: there is none */
};

/* GUEST: whether a virtual machine runs, if the PSB+ does not say. */
static struct stamp read_stamp(const struct event_reader *r, const uint8_t *psb, bool guest)
{
	struct packet_cursor c = {.pos = psb, .end = r->c.end, .quirks = r->c.quirks};
	struct stamp s = {.guest = guest};
	struct packet p;

	if (packet_next(&c, &p) != 0)
		return s;
	while (packet_next(&c, &p) == 0 && p.type != PACKET_OVF && p.type != PACKET_PSB) {
		if (p.type == PACKET_PSBEND) {
			s.size = (size_t)(c.pos - psb);
			break;
		}
		if (p.type == PACKET_PIP)
			s.guest = p.u.pip.nr != 0;
		if (p.type == PACKET_TSC) {
			s.known = true;
			s.tsc = p.u.tsc.value;
		}
	}
	s.known = s.known && !s.guest;
	return s;
}

/* Whether the PSB+ at NEXT, whose time is THEN, is the one at the reader's place once more, whose
 * time is NOW. */
static bool is_copy(const struct event_reader *r, const struct stamp *now, const uint8_t *next,
		    const struct stamp *then)
{
	return now->size != 0 && now->size == then->size && now->tsc == then->tsc &&
	       memcmp(r->at, next, now->size) == 0;
}

/* The PSB where doubt ends, from PSB on (NULL: there is none). NOW: the time where doubt begins, if
 * nothing was claimed before. FITS: PSB itself fits to what was before the doubt. NULL: doubt does
 * not end. */
static const uint8_t *find_end(struct event_reader *r, const uint8_t *psb, uint64_t now, bool fits)
{
	const uint8_t *first = psb;

	for (; psb && r->searches < SEARCHES; psb = sync_find(psb + PT_PSB_SIZE, r->c.end)) {
		struct stamp s = read_stamp(r, psb, r->guest);

		if (s.known && (r->time != 0 ? event_is_earlier(r->time, s.tsc)
					     : !event_is_earlier(s.tsc, now)))
			return psb;
	}
	if (r->searches == SEARCHES)
		return NULL;
	r->searches++;
	r->time = 0;
	return fits ? first : NULL;
}

/* Makes E a gap up to END; NULL: up to the end of the trace. */
static void doubt(struct event_reader *r, const uint8_t *end, struct event *e)
{
	e->kind = EVENT_BAD;
	e->fault = FAULT_TIME_BACKWARDS;
	e->has_from = e->has_to = false;
	r->mode_known = r->iflag_known = r->back = false;
	r->c.bip_bytes = 0;
	r->c.pos = end ? MIN_OF(end, r->stop) : r->stop;
	event_finish(r, e);
}

void event_note_before(struct event_reader *r, const uint8_t *start)
{
	const uint8_t *psb = sync_find(r->trace, start);

	for (; psb; psb = sync_find(psb + PT_PSB_SIZE, start)) {
		struct stamp s = read_stamp(r, psb, false);

		if (s.known && !event_is_earlier(s.tsc, r->time))
			r->time = r->psb_time = s.tsc;
	}
}

/* Whether the reader's PSB, with time NOW, is in doubt; NEXT is the PSB behind it, with time THEN.
 */
static bool is_doubtful(const struct event_reader *r, const struct stamp *now, const uint8_t *next,
			const struct stamp *then)
{
	/* Where bytes begin to be there twice, they may cut off the PSB+ within or before its time.
	 */
	if (!now->guest && then->known && event_is_earlier(then->tsc, r->time))
		return true;
	return now->known && (event_is_earlier(now->tsc, r->time) ||
			      (then->known && (event_is_earlier(then->tsc, now->tsc) ||
					       is_copy(r, now, next, then))));
}

bool event_doubt_psb(struct event_reader *r)
{
	const struct stamp now = read_stamp(r, r->at, r->guest);
	const uint8_t *next = sync_find(r->c.pos, r->c.end);
	struct stamp then = next ? read_stamp(r, next, now.guest) : (struct stamp){0};
	bool fits;

	if (!is_doubtful(r, &now, next, &then)) {
		if (now.known)
			r->time = r->psb_time = now.tsc;
		return false;
	}
	fits = then.known && !event_is_earlier(then.tsc, r->psb_time);
	doubt(r, find_end(r, next, now.tsc, fits), event_push(r, EVENT_BAD));
	return true;
}

void event_doubt_tsc(struct event_reader *r, struct event *e)
{
	const uint8_t *next = sync_find(r->c.pos, r->c.end);
	struct stamp then = next ? read_stamp(r, next, r->guest) : (struct stamp){0};

	event_forget(r);
	doubt(r, find_end(r, next, 0, then.known && !event_is_earlier(then.tsc, r->psb_time)), e);
}
