/*
 * Fuzzes the packet reader. Invariants: a packet lies within the bytes, has a name and a text, and
 * a truncated packet asks for more bytes; the time estimate accepts any numbers.
 */
#include <assert.h>
#include <string.h>

#include "decoder/packet/packet.h"
#include "decoder/time/estimate.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The part of the state that the first bytes set. */
static void begin(struct estimate *e, const uint8_t *data, size_t size)
{
	struct estimate_config config = {.mtc_period = 3};

	if (size >= 8)
		config = (struct estimate_config){
			.mtc_period = data[0],
			.max_nonturbo_ratio = data[1],
			.tsc_art_num = (uint32_t)data[2] << (data[3] & 31),
			.tsc_art_den = data[4],
			.cyc_lost_at_psb = data[5] & 1,
			.no_calibration = data[5] & 2,
			.no_cyc = data[5] & 4,
			.keep_calibration = data[5] & 8,
		};
	estimate_init(e, &config);
}

static void check_estimate(struct estimate *e, const struct packet *p)
{
	struct estimate_faults faults = estimate_packet(e, p);
	uint64_t v;

	assert(strlen(estimate_text(faults.point)) > 0);
	assert(strlen(estimate_text(faults.calibration)) > 0);
	assert(estimate_tsc(e, &v) == ESTIMATE_NO_TIME || e->have_tsc);
	if (estimate_length(e, &v) == ESTIMATE_OK)
		assert(e->cal.min <= v && v <= e->cal.max);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct packet_cursor c = {.pos = data, .end = data + size};
	struct estimate e;
	struct packet p, again;
	char line[128];

	begin(&e, data, size);
	if (size >= 8)
		c.quirks = data[6] & (PACKET_SKD007 | PACKET_SKZ84);
	while (c.pos < c.end) {
		const uint8_t *pos = c.pos;

		if (packet_next(&c, &p) != 0) {
			assert(c.pos == pos);
			assert(strlen(packet_why(pos, c.end)) > 0);
			c.pos++;
			continue;
		}
		assert(p.size > 0 && c.pos == pos + p.size && c.pos <= c.end);
		assert(strlen(packet_name(&p)) > 0);
		assert(packet_format(&p, (uint64_t)(pos - data), line, sizeof(line)) <
		       sizeof(line));
		check_estimate(&e, &p);
		if (p.type != PACKET_BIP && c.quirks == 0)
			assert(packet_read(pos, c.pos - 1, &again) == PACKET_SHORT);
	}
	return 0;
}
