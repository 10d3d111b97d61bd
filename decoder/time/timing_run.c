/*
 * Where the MTCs are in a run of packets that tell of branches. Part of timing.c's work: most of a
 * trace is such runs, and each byte of them is looked at up to twice before the walk comes there.
 *
 * 64 bytes at a time: each byte is looked at as if a packet began with it, which gives sets of
 * places as bits of a number. A packet begins where none of those that do begin reaches to. That
 * settles itself from the lowest place on: what is found of all places at once is right at least
 * one packet further each time, and mostly at once, as few payloads look like packets.
 */
#include <string.h>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "decoder/time/timing_private.h"
#include "proto/base.h"
#include "proto/perf/ptpacket.h"

#define BLOCK 64u
/* MTCs in a block at most; and how many are taken at once. */
#define BLOCK_MTCS 32u
#define AT_ONCE	   4u
/* Their places are numbers of 16 bits. */
#define LONGEST (UINT16_MAX - 2 * BLOCK)

/* The size of the packet at POS if a run may hold it; 0: it may not, or END comes before. */
static size_t size_within(const uint8_t *pos, const uint8_t *end)
{
	size_t size = timing_branch_size(*pos);

	if (*pos == PT_OPC_PAD)
		size = 1;
	else if (*pos == PT_OPC_MTC)
		size = 2;
	else if (*pos == PT_OPC_EXT)
		size = timing_long_tnt_size(pos, (size_t)(end - pos));
	return size <= (size_t)(end - pos) ? size : 0;
}

/* Whether the run may go on by a block, up to POS by now. */
static bool has_room(const struct timing_run *r, const uint8_t *begin, const uint8_t *pos)
{
	return r->n + BLOCK_MTCS <= TIMING_RUN_MTCS && (size_t)(pos - begin) < LONGEST;
}

/* Packet by packet, from POS on. */
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
/* No packet of a run is longer than this much behind its first byte. */
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

/* Y but not X. */
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

/* All ones in the bytes that are VALUE. */
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

/* Bit n: the highest one of byte n. */
static inline uint64_t bits_of(struct block x)
{
	return two(x.c, x.d) << 32 | two(x.a, x.b);
}

/* Bit n: bit 7 - BY of byte n. */
static inline uint64_t bits_below(struct block x, int by)
{
	return bits_of((struct block){_mm_slli_epi16(x.a, by), _mm_slli_epi16(x.b, by),
				      _mm_slli_epi16(x.c, by), _mm_slli_epi16(x.d, by)});
}

/* The lowest bit that is set; without one any. */
static inline unsigned int first_bit(uint64_t bits)
{
	return (unsigned int)__builtin_ctzll(bits | UINT64_C(1) << 63);
}

static unsigned int last_bit(uint64_t bits)
{
	return 63u - (unsigned int)__builtin_clzll(bits);
}

/* Bit n: byte n would be the first one of a packet ... */
struct places {
	uint64_t to2, to4, to6, to8; /* that reaches so many bytes further, or more */
	uint64_t tnt;		     /* a long TNT: 7 bytes */
	uint64_t mtc;
	uint64_t other; /* that no run holds; or a long TNT that may have no branches */
};

/* With the opcode of a packet with an IP: bits 3:0 are 0001 or 1101. Its payload by bits 7:5 is
 * enum pt_ipbytes, of which 5 and 7 are reserved. */
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
	/* Some of what is zero where there are no branches. */
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

/* The places behind the first byte of a packet, of those that begin in STARTS. */
static uint64_t covered(const struct places *p, uint64_t starts)
{
	uint64_t tnt = p->tnt & starts, to8 = p->to8 & starts;
	uint64_t to6 = (p->to6 & starts) | to8 << 2;
	uint64_t to4 = (p->to4 & starts) | to6 << 2, to2 = (p->to2 & starts) | to4 << 2;

	return to2 << 1 | to2 << 2 | tnt << 7 | (p->mtc & starts) << 1;
}

/* So many of the next 64 bytes belong to a packet that begins in these: as their lowest bits. */
static uint64_t carried(const struct places *p, uint64_t starts)
{
	uint64_t last = (p->to8 & starts) >> 56 | (p->tnt & starts) >> 57 |
			(p->to6 & starts) >> 58 | (p->to4 & starts) >> 60 |
			(p->to2 & starts) >> 62 | (p->mtc & starts) >> 63;

	last |= last >> 1;
	last |= last >> 2;
	return last | last >> 4;
}

/* Where packets begin; the bytes CARRY belong to one that began before. */
static uint64_t find_starts(const struct places *p, uint64_t carry)
{
	uint64_t starts = ~carry, before;

	do {
		before = starts;
		starts = ~(carry | covered(p, before));
	} while (((before ^ starts) & (p->to2 | p->mtc)) != 0);
	return starts;
}

/* The first packet of those that begin in STARTS that a run does not hold; BLOCK: there is none. */
static unsigned int find_other(const struct places *p, const uint8_t *pos, uint64_t starts)
{
	for (uint64_t bits = p->other & starts; bits != 0; bits &= bits - 1) {
		unsigned int at = first_bit(bits);

		if (timing_long_tnt_size(pos + at, REACH) == 0)
			return at;
	}
	return BLOCK;
}

/* MTCs begin at these BITS behind FROM. Mostly they are few; then this does not branch. */
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

/* MTCs one behind the other, as while tracing is off: then each second byte is an opcode. */
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

/* The packets that begin in the block at POS, of which the lowest bytes of *CARRY belong to one
 * before; then that is so of the next one. Returns how many of its bytes the run holds. */
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

/* As long as there are enough bytes, and a packet that crosses their end is whole. */
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
	return carry != 0 ? pos + last_bit(carry) + 1 : pos;
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
	/* Between BBP and BEP the same bytes are others. */
	if (c->bip_bytes != 0 || pos >= c->end || size_within(pos, c->end) == 0)
		return false;
	pos = read_blocks(r, pos, c->end);
	pos = read_slowly(r, c->pos, pos, c->end);
	r->to = (uint64_t)(pos - trace);
	return true;
}
