/*
 * Finding PSBs: the only place where a trace is read without knowing where its packets begin.
 */
#include "decoder/packet/sync.h"

#include <string.h>

#include "decoder/packet/packet.h"
#include "proto/perf/ptpacket.h"

static const uint8_t psb[PT_PSB_SIZE] = {0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82,
					 0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82};

const uint8_t *sync_find(const uint8_t *pos, const uint8_t *end)
{
	const uint8_t *found;

	if (pos >= end)
		return NULL;
	found = memmem(pos, (size_t)(end - pos), psb, sizeof(psb));
	if (found == NULL)
		return NULL;
	/* When the packet before the PSB ends with 02 82 the pattern is found too early: no packet
	 * that may follow a PSB begins with these bytes. */
	while (end - found >= PT_PSB_SIZE + 2 && memcmp(found + PT_PSB_SIZE, psb, 2) == 0)
		found += 2;
	return found;
}

bool sync_tsc(const uint8_t *pos, const uint8_t *end, uint64_t *ret_tsc)
{
	struct packet_cursor c = {.pos = pos, .end = end};
	struct packet p;

	if (packet_next(&c, &p) != 0)
		return false;
	while (packet_next(&c, &p) == 0) {
		if (p.type == PACKET_PSBEND || p.type == PACKET_OVF || p.type == PACKET_PSB)
			return false;
		if (p.type == PACKET_TSC) {
			*ret_tsc = p.u.tsc.value;
			return true;
		}
	}
	return false;
}

const uint8_t *sync_find_tsc(const uint8_t *pos, const uint8_t *end, uint64_t tsc)
{
	uint64_t found;

	for (pos = sync_find(pos, end); pos != NULL; pos = sync_find(pos + PT_PSB_SIZE, end)) {
		if (sync_tsc(pos, end, &found) && found >= tsc)
			return pos;
	}
	return NULL;
}
