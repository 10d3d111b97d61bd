/*
 * Reads the samples of a trace; passes bytes without an address at the speed of memory.
 *
 * The event reader reads each PSB+, as in a decode: it knows the FUPs of a PSB+ that processors
 * with errata make up. Between two PSBs, each address in a packet is a sample.
 */
#include "decoder/worker/skim/skim_read.h"

#include <endian.h>
#include <string.h>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "decoder/packet/event.h"
#include "decoder/packet/packet.h"
#include "proto/base.h"
#include "proto/perf/ptpacket.h"

#define FAST_BYTES 16	      /* that must follow, to read a packet without checks */
#define FIRST_TAIL (1u << 16) /* bytes at the end that are searched first for a TSC */

void skim_counts_add(struct skim_counts *to, const struct skim_counts *c)
{
	to->head += c->head;
	to->psbs += c->psbs;
	to->samples += c->samples;
	to->overflows += c->overflows;
	to->bad_packets += c->bad_packets;
	to->bad_bytes += c->bad_bytes;
	to->backwards += c->backwards;
	to->backwards_bytes += c->backwards_bytes;
	to->seams += c->seams;
	if (to->tsc_first == 0 || (c->tsc_first != 0 && c->tsc_first < to->tsc_first))
		to->tsc_first = c->tsc_first;
	to->tsc_last = MAX_OF(to->tsc_last, c->tsc_last);
}

static size_t end_of_piece(const struct skim_reader *r)
{
	const struct skim_config *c = &r->config;

	return r->next_seam < c->n_seams ? (size_t)c->seams[r->next_seam].offset : c->size;
}

void skim_reader_init(struct skim_reader *r, const struct skim_config *config)
{
	static const uint8_t nothing[1];
	const uint8_t *trace = config->size > 0 ? config->trace : nothing;

	*r = (struct skim_reader){.config = *config};
	r->config.trace = trace;
	r->c.pos = trace + config->start;
	r->next_seam = FIRST_WHERE(i, config->n_seams, config->seams[i].offset > config->start);
	r->c.end = trace + end_of_piece(r);
	r->c.quirks = event_quirks(&config->errata);
}

static uint64_t offset_of(const struct skim_reader *r)
{
	return (uint64_t)(r->c.pos - r->config.trace);
}

/* Goes to the next PSB at or behind POS, or to the end. */
static void seek(struct skim_reader *r, const uint8_t *pos)
{
	const uint8_t *psb = sync_find(pos, r->c.end);

	r->c.pos = psb ? psb : r->c.end;
	r->c.bip_bytes = 0;
}

static void resync(struct skim_reader *r, int result)
{
	uint64_t from = offset_of(r);

	seek(r, r->c.pos + (result == PACKET_BAD ? 1 : 0));
	/* The end of a trace mostly cuts off a packet; that is no error. */
	if (result == PACKET_SHORT && r->c.pos == r->c.end)
		return;
	r->counts.bad_packets++;
	r->counts.bad_bytes += offset_of(r) - from;
	r->lost_at = from;
}

/* Reads the PSB+ at the cursor. False: it is no sample, as it cannot be read or is doubted. */
static bool read_psb(struct skim_reader *r, struct skim_sample *s)
{
	const struct skim_config *config = &r->config;
	struct event_reader reader;
	struct event e;
	uint64_t tsc;

	event_reader_init(&reader, config->trace, end_of_piece(r), (size_t)offset_of(r),
			  end_of_piece(r), config->errata);
	reader.time = r->time;
	reader.psb_time = r->psb_time;
	reader.searches = r->searches;
	/* If only PSBs are read, nothing says whether a virtual machine still runs. */
	reader.guest = r->guest && !config->psb_only;
	event_next(&reader, &e);
	tsc = reader.counts.tsc_first;
	*s = (struct skim_sample){
		.offset = e.offset,
		.ip = e.from,
		.kind = SKIM_PSB,
		.mode = reader.mode,
		.mode_known = reader.mode_known,
		.has_ip = e.kind == EVENT_PSB && e.has_from,
		.guest = e.guest,
	};
	if (tsc != 0) {
		s->tsc_lo = s->tsc_hi = tsc;
		if (r->counts.tsc_first == 0)
			r->counts.tsc_first = tsc;
		r->counts.tsc_last = tsc;
	} else if (config->psb_only) {
		s->tsc_hi = UINT64_MAX;
	} else {
		timing_at(&r->timing, s->offset, &s->tsc_lo, &s->tsc_hi);
	}
	r->counts.psbs++;
	r->counts.samples += s->has_ip;
	if (e.kind == EVENT_BAD && e.fault == FAULT_TIME_BACKWARDS) {
		r->counts.backwards++;
		r->counts.backwards_bytes += e.end - e.offset;
		r->lost_at = e.offset;
	} else if (e.kind == EVENT_BAD) {
		r->counts.bad_packets++;
		r->counts.bad_bytes += e.end - e.last;
		r->lost_at = e.last;
	}
	r->time = reader.time;
	r->psb_time = reader.psb_time;
	r->searches = reader.searches;
	r->c.pos = reader.c.pos;
	r->c.bip_bytes = 0;
	r->last_ip = reader.last_ip;
	r->guest = reader.guest;
	return e.kind != EVENT_BAD;
}

static void take_address(struct skim_reader *r, uint8_t type, uint64_t offset, uint64_t ip,
			 struct skim_sample *s)
{
	static const uint8_t kinds[] = {[PACKET_TIP] = SKIM_TIP,
					[PACKET_TIP_PGE] = SKIM_ENABLE,
					[PACKET_TIP_PGD] = SKIM_DISABLE,
					[PACKET_FUP] = SKIM_FUP};

	if (offset >= r->ask_from) {
		timing_at(&r->timing, offset, &r->tsc_lo, &r->tsc_hi);
		r->ask_from = timing_until(&r->timing);
		r->ask_from += r->ask_from < UINT64_MAX;
	}
	*s = (struct skim_sample){
		.offset = offset,
		.ip = ip,
		.tsc_lo = r->tsc_lo,
		.tsc_hi = r->tsc_hi,
		.kind = kinds[type],
		.has_ip = true,
		.guest = r->guest,
	};
	r->counts.samples++;
}

/* True: the packet P at OFFSET is the sample *S. */
static bool on_packet(struct skim_reader *r, const struct packet *p, uint64_t offset,
		      struct skim_sample *s)
{
	uint64_t ip;

	switch (p->type) {
	case PACKET_TIP:
	case PACKET_TIP_PGE:
	case PACKET_TIP_PGD:
	case PACKET_FUP:
		if (!packet_ip(p, &r->last_ip, &ip))
			return false;
		take_address(r, p->type, offset, ip, s);
		return true;
	case PACKET_PSB: r->c.pos = r->config.trace + offset; return read_psb(r, s);
	case PACKET_OVF:
		r->last_ip = 0;
		r->counts.overflows++;
		r->lost_at = offset;
		return false;
	case PACKET_PIP: r->guest = p->u.pip.nr != 0; return false;
	case PACKET_CFE:
		if (p->u.cfe.type == PT_CFE_VMENTRY)
			r->guest = true;
		else if (p->u.cfe.type == PT_CFE_VMEXIT || p->u.cfe.type == PT_CFE_VMEXIT_INTR)
			r->guest = false;
		return false;
	default: return false;
	}
}

/* The size of the packet at POS if it has no address and can be passed without being read; else 0.
 */
static size_t passed_size(const uint8_t *pos)
{
	uint64_t payload;

	switch (pos[0]) {
	case PT_OPC_PAD: return 1;
	case PT_OPC_MTC: return 2;
	case PT_OPC_TSC: return 1 + PT_TSC_BYTES;
	case PT_OPC_EXT:
		memcpy(&payload, pos, sizeof(payload));
		payload = le64toh(payload) >> 16;
		return pos[1] == PT_EXT_TNT64 && payload > 1 ? 8 : 0;
	default: break;
	}
	if ((pos[0] & 1) == 0)
		return 1;
	/* A CYC of one byte. */
	return (pos[0] & (PT_OPC_CYC_MASK | 4)) == PT_OPC_CYC;
}

/* How many of the FAST_BYTES bytes at POS, from the first on, are short TNTs or PADs. */
static size_t count_short(const uint8_t *pos)
{
#ifdef __SSE2__
	const __m128i v = _mm_loadu_si128((const __m128i *)(const void *)pos);
	const __m128i ext = _mm_cmpeq_epi8(v, _mm_set1_epi8(PT_OPC_EXT));
	/* The lowest bit of each byte becomes its highest. */
	unsigned int other =
		(unsigned int)_mm_movemask_epi8(_mm_or_si128(_mm_slli_epi16(v, 7), ext));

	return (size_t)__builtin_ctz(other | 1u << FAST_BYTES);
#else
	size_t n = 0;

	while (n < FAST_BYTES && (pos[n] & 1) == 0 && pos[n] != PT_OPC_EXT)
		n++;
	return n;
#endif
}

/* Passes packets that hold only decisions and time. */
static void pass_by(struct skim_reader *r)
{
	const uint8_t *pos = r->c.pos;
	size_t size = FAST_BYTES;

	/* Between BBP and BEP, bytes have other meanings. */
	while (r->c.bip_bytes == 0 && size > 0 && r->c.end - pos >= FAST_BYTES) {
		size = count_short(pos);
		if (size == 0)
			size = passed_size(pos);
		pos += size;
	}
	r->c.pos = pos;
}

/* True: the packet at the cursor was read, and its address is the sample *S. Other packets are left
 * to packet_next(). */
static bool read_quickly(struct skim_reader *r, struct skim_sample *s)
{
	static const uint64_t masks[8] = {[PT_IPB_UPDATE16] = 0xffff,
					  [PT_IPB_UPDATE32] = 0xffffffff,
					  [PT_IPB_SEXT48] = UINT64_MAX,
					  [PT_IPB_UPDATE48] = 0xffffffffffff,
					  [PT_IPB_FULL] = UINT64_MAX};
	static const uint8_t sizes[8] = {[PT_IPB_UPDATE16] = 3,
					 [PT_IPB_UPDATE32] = 5,
					 [PT_IPB_SEXT48] = 7,
					 [PT_IPB_UPDATE48] = 7,
					 [PT_IPB_FULL] = 9};
	const uint8_t *pos = r->c.pos;
	uint64_t raw, mask;
	uint8_t type;

	if (r->c.bip_bytes != 0 || r->c.end - pos < FAST_BYTES)
		return false;
	mask = masks[pos[0] >> 5];
	switch (pos[0] & PT_OPC_IP_MASK) {
	case PT_OPC_TIP: type = PACKET_TIP; break;
	case PT_OPC_TIP_PGE: type = PACKET_TIP_PGE; break;
	case PT_OPC_TIP_PGD: type = PACKET_TIP_PGD; break;
	case PT_OPC_FUP: type = PACKET_FUP; break;
	default: return false;
	}
	if (mask == 0)
		return false;
	memcpy(&raw, pos + 1, sizeof(raw));
	raw = le64toh(raw);
	if (pos[0] >> 5 == PT_IPB_SEXT48)
		raw = (uint64_t)((int64_t)(raw << 16) >> 16);
	r->last_ip = (r->last_ip & ~mask) | (raw & mask);
	take_address(r, type, offset_of(r), r->last_ip, s);
	r->c.pos = pos + sizes[pos[0] >> 5];
	return true;
}

/* Goes to the first PSB of the piece at hand, from where the cursor stands. */
static void begin_piece(struct skim_reader *r)
{
	const struct skim_config *config = &r->config;

	seek(r, r->c.pos);
	r->ask_from = r->last_ip = 0;
	r->guest = false;
	if (!config->psb_only)
		timing_init(&r->timing, config->trace, end_of_piece(r), (size_t)offset_of(r),
			    &config->timing);
}

/* Goes behind the seam at which the cursor stands. False: there is none. */
static bool pass_seam(struct skim_reader *r)
{
	const struct skim_config *config = &r->config;

	if (r->next_seam == config->n_seams)
		return false;
	r->counts.seams++;
	r->lost_at = config->seams[r->next_seam++].offset;
	r->c.pos = r->c.end;
	r->c.end = config->trace + end_of_piece(r);
	begin_piece(r);
	return true;
}

bool skim_reader_next(struct skim_reader *r, struct skim_sample *ret)
{
	bool done = false;

	if (!r->begun) {
		uint64_t start = offset_of(r);

		/* Packets before the first PSB cannot be read. */
		begin_piece(r);
		r->counts.head = offset_of(r) - start;
		r->begun = true;
	}
	if (r->config.psb_only)
		seek(r, r->c.pos);
	while (!done && (r->c.pos < r->c.end || pass_seam(r))) {
		uint64_t offset;
		struct packet p;
		int result;

		pass_by(r);
		if (read_quickly(r, ret))
			return true;
		offset = offset_of(r);
		result = packet_next(&r->c, &p);
		if (result != 0)
			resync(r, result);
		else
			done = on_packet(r, &p, offset, ret);
	}
	return done;
}

static bool last_tsc(const uint8_t *pos, const uint8_t *end, uint64_t *ret)
{
	bool found = false;

	for (pos = sync_find(pos, end); pos; pos = sync_find(pos + PT_PSB_SIZE, end))
		found |= sync_tsc(pos, end, ret);
	return found;
}

bool skim_span(const uint8_t *trace, size_t size, size_t start, uint64_t *ret_first,
	       uint64_t *ret_last)
{
	const uint8_t *end = trace + size, *psb;
	size_t tail, left = size - start;

	if (left == 0)
		return false;
	psb = sync_find(trace + start, end);
	while (psb && !sync_tsc(psb, end, ret_first))
		psb = sync_find(psb + PT_PSB_SIZE, end);
	if (!psb)
		return false;
	for (tail = FIRST_TAIL; tail < left; tail *= 2)
		if (last_tsc(end - tail, end, ret_last))
			return true;
	return last_tsc(trace + start, end, ret_last);
}
