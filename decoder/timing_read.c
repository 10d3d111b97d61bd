/*
 * Packet by packet to those of time. Part of timing.c's work: a trace is read by it up to three
 * times, so what is of no interest is passed by quickly.
 */
#include <string.h>

#include "decoder/sync.h"
#include "decoder/timing_private.h"
#include "proto/ptpacket.h"

static size_t long_tnt_size(const uint8_t *pos, size_t left)
{
	uint64_t payload = 0;

	if (left < 8 || pos[0] != PT_OPC_EXT || pos[1] != PT_EXT_TNT64)
		return 0;
	memcpy(&payload, pos + 2, 6);
	return payload > 1 ? 8 : 0;
}

/* The size of a packet that begins with BYTE and tells of branches, of no time; 0: of another. */
static size_t branch_size(uint8_t byte)
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
		size = branch_size(*c->pos);
		if (size == 0)
			size = long_tnt_size(c->pos, (size_t)(c->end - c->pos));
		if (size == 0 || size > (size_t)(c->end - c->pos))
			break;
		c->pos += size;
	}
	return c->pos > begin;
}

enum timing_step timing_next_packet(struct packet_cursor *c, struct packet *p)
{
	const uint8_t *psb;

	if (c->pos >= c->end)
		return TIMING_END;
	if (packet_next(c, p) == 0)
		return TIMING_PACKET;
	psb = sync_find(c->pos + 1, c->end);
	c->pos = psb != NULL ? psb : c->end;
	c->bip_bytes = 0;
	return TIMING_LOSS;
}
