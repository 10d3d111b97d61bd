/*
 * Bytes as a trace, packet by packet. Invariants: a packet lies within the bytes, its name and text
 * exist, and cut short it needs more.
 */
#include <assert.h>
#include <string.h>

#include "decoder/packet.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct packet_cursor c = {.pos = data, .end = data + size};
	struct packet p, again;
	char line[128];

	while (c.pos < c.end) {
		const uint8_t *pos = c.pos;

		if (packet_next(&c, &p) != 0) {
			assert(c.pos == pos);
			c.pos++;
			continue;
		}
		assert(p.size > 0 && c.pos == pos + p.size && c.pos <= c.end);
		assert(strlen(packet_name(&p)) > 0);
		assert(packet_format(&p, (uint64_t)(pos - data), line, sizeof(line)) <
		       sizeof(line));
		if (p.type != PACKET_BIP)
			assert(packet_read(pos, c.pos - 1, &again) == PACKET_SHORT);
	}
	return 0;
}
