/*
 * Packet by packet to those of time. Part of timing.c's work: a trace is read by it up to three
 * times, so what is of no interest is passed by quickly.
 */
#include <string.h>

#include "decoder/packet/packet.h"
#include "decoder/time/timing_private.h"
#include "proto/perf/ptpacket.h"

size_t timing_long_tnt_size(const uint8_t *pos, size_t left)
{
	uint64_t payload = 0;

	if (left < 8 || pos[0] != PT_OPC_EXT || pos[1] != PT_EXT_TNT64)
		return 0;
	memcpy(&payload, pos + 2, 6);
	return payload > 1 ? 8 : 0;
}

size_t timing_branch_size(uint8_t byte)
{
	static const uint8_t ip_bytes[8] = {
		[PT_IPB_UPDATE16] = 2, [PT_IPB_UPDATE32] = 4, [PT_IPB_SEXT48] = 6,
		[PT_IPB_UPDATE48] = 6, [PT_IPB_FULL] = 8,     [5] = UINT8_MAX,
		[7] = UINT8_MAX};
	uint8_t opcode = byte & 0x1f, n = ip_bytes[byte >> 5];

	if ((byte & 1) == 0)
		return byte != PT_OPC_PAD && byte != PT_OPC_EXT;
	if (opcode != PT_OPC_TIP && opcode != PT_OPC_TIP_PGE && opcode != PT_OPC_TIP_PGD &&
	    opcode != PT_OPC_FUP)
		return 0;
	return n != UINT8_MAX ? 1u + n : 0;
}

bool timing_skip_branches(struct packet_cursor *c)
{
	const uint8_t *begin = c->pos;
	size_t size;

	/* Between BBP and BEP the same bytes are others. */
	while (c->bip_bytes == 0 && c->pos < c->end) {
		size = timing_branch_size(*c->pos);
		if (size == 0)
			size = timing_long_tnt_size(c->pos, (size_t)(c->end - c->pos));
		if (size == 0 || size > (size_t)(c->end - c->pos))
			break;
		c->pos += size;
	}
	return c->pos > begin;
}

/* A CYC of up to two bytes, as nearly all are. 0: it is none, or it is one for packet_next. */
static size_t short_cyc(const struct packet_cursor *c, uint64_t *ret)
{
	const uint8_t *pos = c->pos;

	if (c->end - pos < 2 || (pos[0] & PT_OPC_CYC_MASK) != PT_OPC_CYC)
		return 0;
	*ret = pos[0] >> 3;
	if ((pos[0] & PT_CYC_MORE) == 0)
		return 1;
	if ((pos[1] & PT_CYC_MORE_YET) != 0 || (c->quirks & PACKET_SKD007) != 0)
		return 0;
	*ret |= (uint64_t)(pos[1] >> 1) << 5;
	return 2;
}

void timing_skip_cycles(struct packet_cursor *c)
{
	uint64_t value;
	size_t size;

	while (timing_skip_branches(c), (size = short_cyc(c, &value)) != 0)
		c->pos += size;
}

enum timing_step timing_next_packet(struct packet_cursor *c, struct packet *p)
{
	const uint8_t *psb;
	uint64_t value;
	size_t size;

	if (c->pos >= c->end)
		return TIMING_END;
	size = short_cyc(c, &value);
	if (size != 0) {
		*p = (struct packet){.type = PACKET_CYC, .size = (uint8_t)size};
		p->u.cyc.value = value;
		c->pos += size;
		return TIMING_PACKET;
	}
	if (packet_next(c, p) == 0)
		return TIMING_PACKET;
	psb = sync_find(c->pos + 1, c->end);
	c->pos = psb != NULL ? psb : c->end;
	c->bip_bytes = 0;
	return TIMING_LOSS;
}
