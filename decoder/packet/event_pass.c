/*
 * Passing by branches in user code, and by MTCs. Part of the reader (event_private.h). Branches are
 * passed by for whoever wants to know where a stay in user code ends and nothing of what is done
 * there, as decoder/worker/turns/scan.c does; MTCs always, as little else is written while tracing
 * is off. That is a good deal quicker than packet after packet.
 */
#include <string.h>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "decoder/packet/event_private.h"
#include "proto/perf/ptpacket.h"

/* No packet that is passed by is longer. */
#define LONGEST 8

#ifdef __SSE2__
#define AT_ONCE 16

static bool are_mtcs(const uint8_t *pos)
{
	const __m128i v = _mm_loadu_si128((const __m128i *)(const void *)pos);
	const __m128i mtc = _mm_cmpeq_epi8(v, _mm_set1_epi8(PT_OPC_MTC));

	return (_mm_movemask_epi8(mtc) & 0x5555) == 0x5555;
}
#else
#define AT_ONCE 2

static bool are_mtcs(const uint8_t *pos)
{
	return pos[0] == PT_OPC_MTC;
}
#endif

void event_pass_mtcs(struct event_reader *r)
{
	const uint8_t *pos = r->c.pos;

	/* Within a block they are read one by one: to look at all of them each time would be
	 * quadratic. */
	if (r->c.bip_bytes != 0)
		return;
	while (r->stop - pos >= AT_ONCE && r->c.end - pos >= AT_ONCE && are_mtcs(pos))
		pos += AT_ONCE;
	if (pos == r->c.pos)
		return;
	r->counts.packets += (uint64_t)(pos - r->c.pos) / 2;
	r->order = ORDER_OTHER;
	r->timed = true;
	r->at = pos - 2;
	r->c.pos = pos;
}

/* Nothing waits for a TIP or TNT, and all that these say is where execution is. Whether deferred
 * TIPs are to be feared must be known, as that is seen in their order. */
static bool is_plain(const struct event_reader *r)
{
	return r->queue_n == 0 && r->n_waits == 0 && !r->mode_waits && !r->fup_owed && r->prompt &&
	       !r->guest && r->c.bip_bytes == 0 && r->last_ip >> 63 == 0;
}

static uint64_t number(const uint8_t *pos, size_t n)
{
	uint64_t value = 0;

	memcpy(&value, pos, n);
	return value;
}

/* The sizes of what is passed by; 0: it is not. */
static size_t pass_long_tnt(struct event_reader *r, const uint8_t *pos)
{
	uint64_t payload = number(pos + 2, 6);

	if (pos[1] != PT_EXT_TNT64 || payload < 2)
		return 0;
	r->order = payload >> PT_TNT64_MAX == 1 || payload >> PT_TNT8_MAX == 1 ? ORDER_FULL
									       : ORDER_PARTIAL;
	r->timed = false;
	return 8;
}

/* Its highest bit stands before the branches: all six, or fewer. */
static size_t pass_tnt(struct event_reader *r, uint8_t byte)
{
	if (byte == PT_OPC_PAD)
		return 1;
	r->order = byte >> (PT_TNT8_MAX + 1) == 1 ? ORDER_FULL : ORDER_PARTIAL;
	r->timed = false;
	return 1;
}

static size_t pass_tip(struct event_reader *r, const uint8_t *pos)
{
	size_t size;

	switch (pos[0] >> 5) {
	case PT_IPB_SUPPRESSED: size = 1; break;
	case PT_IPB_UPDATE16:
		r->last_ip = (r->last_ip & ~UINT64_C(0xffff)) | number(pos + 1, 2);
		size = 3;
		break;
	case PT_IPB_UPDATE32:
		r->last_ip = (r->last_ip & ~UINT64_C(0xffffffff)) | number(pos + 1, 4);
		size = 5;
		break;
	case PT_IPB_SEXT48:
		if (pos[6] >> 7 == 1)
			return 0;
		r->last_ip = number(pos + 1, 6);
		size = 7;
		break;
	default: return 0;
	}
	if (r->order == ORDER_FULL)
		r->order = ORDER_FULL_TIP;
	else if (r->order == ORDER_PARTIAL)
		r->order = ORDER_PARTIAL_TIP;
	r->timed = false;
	return size;
}

static size_t pass_timing(struct event_reader *r, uint8_t byte)
{
	if (byte == PT_OPC_MTC) {
		r->order = ORDER_OTHER;
		r->timed = true;
		return 2;
	}
	if ((byte & PT_OPC_CYC_MASK) != PT_OPC_CYC || (byte & PT_CYC_MORE) != 0)
		return 0;
	r->timed = true;
	return 1;
}

static size_t pass_packet(struct event_reader *r, const uint8_t *pos)
{
	if (pos[0] == PT_OPC_EXT)
		return pass_long_tnt(r, pos);
	if ((pos[0] & 1) == 0)
		return pass_tnt(r, pos[0]);
	if ((pos[0] & PT_OPC_IP_MASK) == PT_OPC_TIP)
		return pass_tip(r, pos);
	return pass_timing(r, pos[0]);
}

void event_pass_branches(struct event_reader *r)
{
	size_t size;

	if (!is_plain(r))
		return;
	while (r->c.pos < r->stop && r->c.end - r->c.pos >= LONGEST &&
	       (size = pass_packet(r, r->c.pos)) != 0) {
		r->at = r->c.pos;
		r->c.pos += size;
		r->counts.packets++;
	}
}
