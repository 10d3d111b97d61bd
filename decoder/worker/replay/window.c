/*
 * Finds where to begin when the last N seconds were asked for: the recorder copies the whole ring,
 * as it does not parse PT. Looks at the PSB+ headers only. Called by replay.c.
 */
#include "decoder/worker/replay/window.h"

#include <string.h>

#include "decoder/packet/packet.h"
#include "proto/perf/ptpacket.h"

#define PSB_TEXT "\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82"
/* A PSB+ is a dozen packets (SDM volume 3, "PSB": TSC, TMA, PIP, VMCS, CBR, MODE, FUP, PSBEND). */
#define HEADER_PACKETS 32

/* The TSC in the PSB+ that begins at POS; 0: none. */
static uint64_t header_tsc(const uint8_t *pos, const uint8_t *end)
{
	struct packet p;
	int i;

	for (i = 0; i < HEADER_PACKETS && packet_read(pos, end, &p) == 0; i++) {
		if (p.type == PACKET_TSC)
			return p.u.tsc.value;
		if (p.type == PACKET_PSBEND || p.type == PACKET_OVF)
			return 0;
		pos += p.size;
	}
	return 0;
}

uint64_t window_begin(const uint8_t *trace, size_t size, uint64_t tsc)
{
	const uint8_t *end = trace + size, *pos = trace;
	uint64_t begin = 0;

	while (pos < end) {
		uint64_t at;

		pos = memmem(pos, (size_t)(end - pos), PSB_TEXT, PT_PSB_SIZE);
		if (pos == NULL)
			break;
		at = header_tsc(pos, end);
		if (at > tsc)
			break;
		if (at > 0)
			begin = at;
		pos += PT_PSB_SIZE;
	}
	return begin;
}
