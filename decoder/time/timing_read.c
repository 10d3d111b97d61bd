/*
 * Finds timing packets among the others, quickly, as the bytes of a trace are read up to three
 * times.
 */
#include <string.h>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "decoder/packet/packet.h"
#include "decoder/time/timing_private.h"
#include "proto/base.h"
#include "proto/perf/ptpacket.h"

/* The size of a long TNT at POS, with LEFT bytes to the end; 0: another packet. */
static size_t long_tnt_size(const uint8_t *pos, size_t left)
{
	uint64_t payload = 0;

	if (left < 8 || pos[0] != PT_OPC_EXT || pos[1] != PT_EXT_TNT64)
		return 0;
	memcpy(&payload, pos + 2, 6);
	return payload > 1 ? 8 : 0;
}

/* The size of a packet of branches that begins with BYTE; 0: another packet. */
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

	/* Between BBP and BEP the same bytes mean other packets. */
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

/* The size of a CYC of one or two bytes, as nearly all are. 0: not a CYC, or a CYC that
 * packet_next() must read. */
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
	c->pos = psb ? psb : c->end;
	c->bip_bytes = 0;
	return TIMING_LOSS;
}

/*
 * --- Runs: where the MTCs are among packets of branches ---
 *
 * Most of a trace is such runs, and each of their bytes is read up to twice before the walk comes
 * there. The reader therefore takes 64 bytes of a run at a time. It looks at each byte as if a
 * packet began there, which gives sets of places as bits of a number. A packet begins where no
 * packet that begins earlier reaches to. The reader starts with all places; each of its passes over
 * the whole block makes at least one more packet right, from the lowest place on. Mostly one pass
 * is enough, as few payloads look like packets.
 */

#define BLOCK 64u
/* How many MTCs a block has at most, and how many are added at once. */
#define BLOCK_MTCS 32u
#define AT_ONCE	   4u
/* The places of MTCs are 16-bit numbers. */
#define LONGEST (UINT16_MAX - 2 * BLOCK)

/* The size of the packet at POS. 0: the packet does not belong in a run, or goes on behind END. */
static size_t size_within(const uint8_t *pos, const uint8_t *end)
{
	size_t size = branch_size(*pos);

	if (*pos == PT_OPC_PAD)
		size = 1;
	else if (*pos == PT_OPC_MTC)
		size = 2;
	else if (*pos == PT_OPC_EXT)
		size = long_tnt_size(pos, (size_t)(end - pos));
	return size <= (size_t)(end - pos) ? size : 0;
}

/* Whether the run, which has come to POS, has room for another block. */
static bool has_room(const struct timing_run *r, const uint8_t *begin, const uint8_t *pos)
{
	return r->n + BLOCK_MTCS <= TIMING_RUN_MTCS && (size_t)(pos - begin) < LONGEST;
}

/* Reads packet by packet, from POS on. */
static const uint8_t *read_slowly(struct timing_run *r, const uint8_t *begin, const uint8_t *pos,
				  const uint8_t *end)
{
	size_t size;

	while (pos < end && has_room(r, begin, pos) && (size = size_within(pos, end)) != 0) {
		if (*pos == PT_OPC_MTC)
			r->mtcs[r->n++] = (uint16_t)(pos - begin);
		pos += size;
	}
	return pos;
}

#ifdef __SSE2__
/* No packet of a run has more bytes behind its first byte. */
#define REACH 8u

/* 64 bytes. */
struct block {
	__m128i a, b, c, d;
};

static inline struct block load(const uint8_t *pos)
{
	const __m128i *from = (const __m128i *)(const void *)pos;

	return (struct block){_mm_loadu_si128(from), _mm_loadu_si128(from + 1),
			      _mm_loadu_si128(from + 2), _mm_loadu_si128(from + 3)};
}

static inline struct block both(struct block x, struct block y)
{
	return (struct block){_mm_and_si128(x.a, y.a), _mm_and_si128(x.b, y.b),
			      _mm_and_si128(x.c, y.c), _mm_and_si128(x.d, y.d)};
}

static inline struct block any(struct block x, struct block y)
{
	return (struct block){_mm_or_si128(x.a, y.a), _mm_or_si128(x.b, y.b),
			      _mm_or_si128(x.c, y.c), _mm_or_si128(x.d, y.d)};
}

/* Y and not X. */
static inline struct block without(struct block x, struct block y)
{
	return (struct block){_mm_andnot_si128(x.a, y.a), _mm_andnot_si128(x.b, y.b),
			      _mm_andnot_si128(x.c, y.c), _mm_andnot_si128(x.d, y.d)};
}

static inline struct block all(uint8_t value)
{
	const __m128i v = _mm_set1_epi8((char)value);

	return (struct block){v, v, v, v};
}

/* All ones in the bytes that equal VALUE, zero in the others. */
static inline struct block equal(struct block x, uint8_t value)
{
	const __m128i v = _mm_set1_epi8((char)value);

	return (struct block){_mm_cmpeq_epi8(x.a, v), _mm_cmpeq_epi8(x.b, v),
			      _mm_cmpeq_epi8(x.c, v), _mm_cmpeq_epi8(x.d, v)};
}

static inline uint64_t two(__m128i low, __m128i high)
{
	return (unsigned int)_mm_movemask_epi8(high) << 16 | (unsigned int)_mm_movemask_epi8(low);
}

/* Bit n of the result is bit 7 of byte n. */
static inline uint64_t bits_of(struct block x)
{
	return two(x.c, x.d) << 32 | two(x.a, x.b);
}

/* Bit n of the result is bit 7 - BY of byte n. */
static inline uint64_t bits_below(struct block x, int by)
{
	return bits_of((struct block){_mm_slli_epi16(x.a, by), _mm_slli_epi16(x.b, by),
				      _mm_slli_epi16(x.c, by), _mm_slli_epi16(x.d, by)});
}

/* The number of the lowest bit that is set; 63 if there is none. */
static inline unsigned int first_bit(uint64_t bits)
{
	return (unsigned int)__builtin_ctzll(bits | UINT64_C(1) << 63);
}

/* Bit n set: byte n would be the first byte of a packet */
struct places {
	uint64_t to2, to4, to6, to8; /* with so many bytes behind its first byte, or more */
	uint64_t tnt;		     /* that is a long TNT: 7 bytes behind the first */
	uint64_t mtc;		     /* that is an MTC */
	uint64_t other; /* that belongs in no run; or a long TNT that may have no branches */
};

/* Finds packets with an IP, whose bits 3:0 are 0001 or 1101. Bits 7:5 are enum pt_ipbytes, of which
 * 5 and 7 are reserved. */
static inline void find_ips(const struct block *x, struct places *p)
{
	const struct block low = both(*x, all(0x0f));
	uint64_t bit5 = bits_below(*x, 2), bit6 = bits_below(*x, 1), bit7 = bits_of(*x);
	uint64_t ip = bits_of(any(equal(low, 0x01), equal(low, 0x0d))) & ~(bit7 & bit5);

	p->to2 = ip & (bit5 | bit6 | bit7);
	p->to4 = ip & (bit6 | bit7);
	p->to6 = ip & ((bit5 & bit6) | bit7);
	p->to8 = ip & bit6 & bit7;
	p->other = bits_below(*x, 7) & ~ip;
}

static inline struct places find_places(const uint8_t *pos)
{
	const struct block x = load(pos), ext = equal(x, PT_OPC_EXT);
	const struct block tnt = both(ext, equal(load(pos + 1), PT_EXT_TNT64));
	/* Some of the bits that are zero in a TNT without branches. */
	const struct block payload =
		any(both(load(pos + 2), all(0xfe)), any(load(pos + 3), load(pos + 7)));
	struct places p;

	find_ips(&x, &p);
	p.tnt = bits_of(tnt);
	p.to2 |= p.tnt;
	p.to4 |= p.tnt;
	p.to6 |= p.tnt;
	p.mtc = bits_of(equal(x, PT_OPC_MTC));
	p.other = (p.other & ~p.mtc) | bits_of(without(without(equal(payload, 0), tnt), ext));
	return p;
}

/* The bytes behind the first byte of packets that begin in STARTS. */
static uint64_t covered(const struct places *p, uint64_t starts)
{
	uint64_t tnt = p->tnt & starts, to8 = p->to8 & starts;
	uint64_t to6 = (p->to6 & starts) | to8 << 2;
	uint64_t to4 = (p->to4 & starts) | to6 << 2, to2 = (p->to2 & starts) | to4 << 2;

	return to2 << 1 | to2 << 2 | tnt << 7 | (p->mtc & starts) << 1;
}

/* The bytes of the next block that belong to a packet that begins in STARTS, as the lowest bits. */
static uint64_t carried(const struct places *p, uint64_t starts)
{
	uint64_t last = (p->to8 & starts) >> 56 | (p->tnt & starts) >> 57 |
			(p->to6 & starts) >> 58 | (p->to4 & starts) >> 60 |
			(p->to2 & starts) >> 62 | (p->mtc & starts) >> 63;

	last |= last >> 1;
	last |= last >> 2;
	return last | last >> 4;
}

/* Where packets begin. The bytes CARRY belong to a packet of the block before. */
static uint64_t find_starts(const struct places *p, uint64_t carry)
{
	uint64_t starts = ~carry, before;

	do {
		before = starts;
		starts = ~(carry | covered(p, before));
	} while (((before ^ starts) & (p->to2 | p->mtc)) != 0);
	return starts;
}

/* The first packet in STARTS that does not belong in a run; BLOCK: there is none. */
static unsigned int find_other(const struct places *p, const uint8_t *pos, uint64_t starts)
{
	for (uint64_t bits = p->other & starts; bits != 0; bits &= bits - 1) {
		unsigned int at = first_bit(bits);

		if (long_tnt_size(pos + at, REACH) == 0)
			return at;
	}
	return BLOCK;
}

/* Adds the MTCs that begin at the set BITS behind FROM. If they are few, as usual, this does not
 * branch. */
static void add_mtcs(struct timing_run *r, size_t from, uint64_t bits)
{
	uint32_t n = r->n;

	do {
#pragma GCC unroll 4
		for (unsigned int i = 0; i < AT_ONCE; i++) {
			r->mtcs[n] = (uint16_t)(from + first_bit(bits));
			n += bits != 0;
			bits &= bits - 1;
		}
	} while (bits != 0);
	r->n = n;
}

/* Adds a block that consists of MTCs only, as while tracing is off: then each second byte is an
 * opcode. False: the block is another one. */
static bool add_mtcs_only(struct timing_run *r, const uint8_t *pos, size_t from, uint64_t carry)
{
	const uint64_t each = UINT64_C(0x5555555555555555) << (carry & 1);

	if (carry > 1 || (bits_of(equal(load(pos), PT_OPC_MTC)) & each) != each)
		return false;
	for (unsigned int i = 0; i < BLOCK_MTCS; i++)
		r->mtcs[r->n + i] = (uint16_t)(from + carry + (size_t)2 * i);
	r->n += BLOCK_MTCS;
	return true;
}

/* Reads the block at POS. The lowest bytes as in *CARRY belong to a packet of the block before; on
 * return *CARRY is the same for the next block. Returns how many bytes of the block belong to the
 * run. */
static unsigned int read_block(struct timing_run *r, const uint8_t *pos, size_t from,
			       uint64_t *carry)
{
	const struct places p = find_places(pos);
	uint64_t starts = find_starts(&p, *carry), mtcs = p.mtc & starts;
	unsigned int other = find_other(&p, pos, starts);

	if (other < BLOCK)
		mtcs &= (UINT64_C(1) << other) - 1;
	add_mtcs(r, from, mtcs);
	*carry = carried(&p, starts);
	return other;
}

/* Reads blocks as long as there are enough bytes for a packet that crosses the end of a block. */
static const uint8_t *read_blocks(struct timing_run *r, const uint8_t *begin, const uint8_t *end)
{
	const uint8_t *pos = begin;
	uint64_t carry = 0;

	while (has_room(r, begin, pos) && (size_t)(end - pos) >= BLOCK + REACH) {
		size_t from = (size_t)(pos - begin);

		if (!add_mtcs_only(r, pos, from, carry)) {
			unsigned int n = read_block(r, pos, from, &carry);

			if (n < BLOCK)
				return pos + n;
		}
		pos += BLOCK;
	}
	return carry != 0 ? pos + 64 - __builtin_clzll(carry) : pos;
}
#else
static const uint8_t *read_blocks(struct timing_run *r, const uint8_t *begin, const uint8_t *end)
{
	(void)r;
	(void)end;
	return begin;
}
#endif

bool timing_run_read(struct timing_run *r, const uint8_t *trace, const struct packet_cursor *c)
{
	const uint8_t *pos = c->pos;

	r->from = r->to = (uint64_t)(pos - trace);
	r->n = r->next = 0;
	/* Between BBP and BEP the same bytes mean other packets. */
	if (c->bip_bytes != 0 || pos >= c->end || size_within(pos, c->end) == 0)
		return false;
	pos = read_blocks(r, pos, c->end);
	pos = read_slowly(r, c->pos, pos, c->end);
	r->to = (uint64_t)(pos - trace);
	return true;
}
