/*
 * decoder/worker/skim_read: the addresses of packets, against packets read one by one.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "decoder/code/insn.h"
#include "decoder/worker/skim/skim_read.h"
#include "proto/base.h"

#define PSB    2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82
#define PSBEND 2, 0x23
#define MAX    64u

struct read {
	struct skim_sample list[MAX];
	size_t n;
	struct skim_counts counts;
};

static struct read read_all(const uint8_t *trace, size_t size, bool psb_only)
{
	const struct skim_config config = {
		.trace = trace,
		.size = size,
		.psb_only = psb_only,
		.timing = {.mtc_period = UINT32_MAX},
	};
	struct read read = {.n = 0};
	struct skim_reader r;

	skim_reader_init(&r, &config);
	while (skim_reader_next(&r, &read.list[read.n]))
		assert_true(++read.n < MAX);
	assert_false(skim_reader_next(&r, &read.list[read.n]));
	read.counts = r.counts;
	return read;
}

static void expect(const struct skim_sample *s, enum skim_kind kind, uint64_t offset, uint64_t ip)
{
	assert_int_equal(s->kind, kind);
	assert_int_equal(s->offset, offset);
	assert_true(s->has_ip);
	assert_int_equal(s->ip, ip);
}

/* clang-format off */
static const uint8_t every_form[] = {
	0xff, 0x7f, 0xff,				/* a head */
	PSB,						/* 3 */
	0x19, 0x10, 0x20, 0, 0, 0, 0, 0,		/* 13: TSC 2010 */
	0x99, 0x01,					/* 1b: MODE.Exec, 64 bits */
	0x7d, 0, 0x10, 0x40, 0, 0, 0,			/* 1d: FUP 401000 */
	PSBEND,						/* 24 */
	0x06, 0x0e, 0x00,				/* 26: TNTs, PAD */
	0x2d, 0x22, 0x11,				/* 29: TIP 401122 */
	0x06,						/* 2c */
	0x4d, 0x44, 0x33, 0x22, 0x11,			/* 2d: TIP 11223344 */
	2, 0xa3, 1, 2, 3, 4, 5, 6,			/* 32: a long TNT */
	0x3d, 0x01, 0x00,				/* 3a: FUP 11220001 */
	0x01,						/* 3d: TIP.PGD, suppressed */
	0x71, 0, 0, 0, 0, 0, 0x80,			/* 3e: TIP.PGE ffff800000000000 */
	0x8d, 1, 0, 0, 0, 0, 0x7f,			/* 45: TIP ffff7f0000000001 */
	0xcd, 1, 2, 3, 4, 5, 6, 7, 8,			/* 4c: TIP 807060504030201 */
	0x21, 0, 0,					/* 55: TIP.PGD 807060504030000 */
};
/* clang-format on */

static void skim_reader_every_form_is_decompressed(void **state)
{
	struct read r = read_all(every_form, sizeof(every_form), false);

	(void)state;
	assert_int_equal(r.n, 8);
	expect(&r.list[0], SKIM_PSB, 0x3, 0x401000);
	expect(&r.list[1], SKIM_TIP, 0x29, 0x401122);
	expect(&r.list[2], SKIM_TIP, 0x2d, 0x11223344);
	expect(&r.list[3], SKIM_FUP, 0x3a, 0x11220001);
	expect(&r.list[4], SKIM_ENABLE, 0x3e, 0xffff800000000000);
	expect(&r.list[5], SKIM_TIP, 0x45, 0xffff7f0000000001);
	expect(&r.list[6], SKIM_TIP, 0x4c, 0x0807060504030201);
	expect(&r.list[7], SKIM_DISABLE, 0x55, 0x0807060504030000);
	assert_int_equal(r.counts.head, 3);
	assert_int_equal(r.counts.samples, 8);
	assert_int_equal(r.counts.psbs, 1);
	assert_int_equal(r.counts.bad_packets, 0);
	assert_int_equal(r.list[1].tsc_lo, 0x2010);
	assert_int_equal(r.list[1].tsc_hi, UINT64_MAX);
}

static void skim_reader_psbs_alone_say_address_time_and_mode(void **state)
{
	struct read r = read_all(every_form, sizeof(every_form), true);

	(void)state;
	assert_int_equal(r.n, 1);
	expect(&r.list[0], SKIM_PSB, 3, 0x401000);
	assert_int_equal(r.list[0].tsc_lo, 0x2010);
	assert_int_equal(r.list[0].tsc_hi, 0x2010);
	assert_true(r.list[0].mode_known);
	assert_int_equal(r.list[0].mode, INSN_MODE_64);
	assert_int_equal(r.counts.tsc_first, 0x2010);
	assert_int_equal(r.counts.tsc_last, 0x2010);
}

/* Each tells its address against the one before: what stands behind lost packets is not told so. */
static void skim_reader_overflow_and_psb_begin_anew(void **state)
{
	/* clang-format off */
	static const uint8_t trace[] = {
		PSB, PSBEND,				/* 0 */
		0x71, 0, 0x10, 0x40, 0, 0, 0,		/* 12: TIP.PGE 401000 */
		2, 0xf3,				/* 19: OVF */
		0x3d, 0x34, 0x12,			/* 1b: FUP 1234 */
		0x4d, 1, 0, 2, 0,			/* 1e: TIP 20001 */
		PSB, PSBEND,				/* 23 */
		0x2d, 0x78, 0x56,			/* 35: TIP 5678 */
	};
	/* clang-format on */
	struct read r = read_all(trace, sizeof(trace), false);

	(void)state;
	assert_int_equal(r.n, 6);
	assert_int_equal(r.list[0].kind, SKIM_PSB);
	assert_false(r.list[0].has_ip);
	expect(&r.list[2], SKIM_FUP, 0x1b, 0x1234);
	expect(&r.list[3], SKIM_TIP, 0x1e, 0x20001);
	assert_false(r.list[4].has_ip);
	expect(&r.list[5], SKIM_TIP, 0x35, 0x5678);
	assert_int_equal(r.counts.overflows, 1);
	assert_int_equal(r.counts.psbs, 2);
	assert_int_equal(r.counts.samples, 4);
}

static void skim_reader_bytes_that_are_no_packet_end_at_the_next_psb(void **state)
{
	/* clang-format off */
	static const uint8_t trace[] = {
		PSB, PSBEND,				/* 0 */
		0x2d, 1, 0,				/* 12: TIP 1 */
		2, 0xff,				/* 15: no packet */
		0x2d, 2, 0,				/* 17: lost */
		PSB, PSBEND,				/* 1a */
		0x2d, 3, 0,				/* 2c: TIP 3 */
		PSB, 0xad,				/* 2f: within a PSB+, too */
		PSB, PSBEND,				/* 40 */
		0x2d, 4, 0,				/* 52: TIP 4 */
		0x71, 0, 0,				/* 55: cut off */
	};
	/* clang-format on */
	struct read r = read_all(trace, sizeof(trace), false);

	(void)state;
	/* The PSB+ that cannot be read is no sample. */
	assert_int_equal(r.n, 6);
	expect(&r.list[1], SKIM_TIP, 0x12, 1);
	assert_int_equal(r.list[2].offset, 0x1a);
	expect(&r.list[3], SKIM_TIP, 0x2c, 3);
	assert_int_equal(r.list[4].offset, 0x40);
	expect(&r.list[5], SKIM_TIP, 0x52, 4);
	assert_int_equal(r.counts.bad_packets, 2);
	assert_int_equal(r.counts.bad_bytes, 5 + 1);
	assert_int_equal(r.counts.psbs, 4);
}

/* Between BBP and BEP the same bytes are other packets. */
static void skim_reader_blocks_hold_no_addresses(void **state)
{
	/* clang-format off */
	static const uint8_t trace[] = {
		PSB, PSBEND,				/* 0 */
		2, 0x63, 0x04,				/* 12: BBP, 8 bytes each */
		0x0c, 0x2d, 1, 0, 0x2d, 2, 0, 0, 0,	/* 15: BIP */
		2, 0x33,				/* 1e: BEP */
		0x2d, 3, 0,				/* 20: TIP 3 */
		0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,	/* PADs: what is near the end is read slowly */
		0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
	};
	/* clang-format on */
	struct read r = read_all(trace, sizeof(trace), false);

	(void)state;
	assert_int_equal(r.n, 2);
	expect(&r.list[1], SKIM_TIP, 0x20, 3);
	assert_int_equal(r.counts.bad_packets, 0);
}

static void skim_reader_guests_are_told(void **state)
{
	/* clang-format off */
	static const uint8_t trace[] = {
		PSB, PSBEND,				/* 0 */
		0x2d, 1, 0,				/* TIP 1 */
		2, 0x43, 1, 0, 0, 0, 0, 0,		/* PIP, in a virtual machine */
		0x2d, 2, 0,
		2, 0x43, 0, 0, 0, 0, 0, 0,		/* and out */
		0x2d, 3, 0,
	};
	/* clang-format on */
	struct read r = read_all(trace, sizeof(trace), false);

	(void)state;
	assert_int_equal(r.n, 4);
	assert_false(r.list[1].guest);
	assert_true(r.list[2].guest);
	assert_false(r.list[3].guest);
}

/* Numbers that are the same in each run. */
static uint32_t next(uint32_t *seed)
{
	*seed = *seed * 1664525u + 1013904223u;
	return *seed >> 8;
}

/* A packet of some kind to TO, which has room for 16 bytes. */
static size_t any_packet(uint32_t *seed, uint8_t *to)
{
	static const uint8_t ips[] = {0x0d, 0x11, 0x01, 0x1d};
	static const uint8_t sizes[] = {0, 2, 4, 6, 6, 0, 8};
	size_t i, n = 1;
	uint8_t form;

	for (i = 0; i < 16; i++)
		to[i] = (uint8_t)next(seed);
	switch (next(seed) % 12) {
	case 0:
	case 1:
	case 2:
		form = (uint8_t)(next(seed) % 7);
		form = form == 5 ? 2 : form;
		to[0] = (uint8_t)(form << 5 | ips[next(seed) % 4]);
		return 1u + sizes[form];
	case 3: to[0] = 0x59; return 2;
	case 4: to[0] = 0x19; return 8;
	case 5:
		memcpy(to, (uint8_t[]){2, 0xa3}, 2);
		to[7] |= 1;
		return 8;
	case 6: to[0] = (uint8_t)(to[0] << 3 | 3); return 1; /* CYC */
	case 7:
		to[0] = (uint8_t)(to[0] << 3 | 7);
		to[1] &= 0xfe;
		return 2;
	case 8: memcpy(to, (uint8_t[]){2, 3, 0x20, 0}, 4); return 4;
	default:
		n = 1 + next(seed) % 9;
		for (i = 0; i < n; i++)
			to[i] = (uint8_t)(to[i] << 2 | 4); /* short TNTs */
		return n;
	}
}

static size_t any_trace(uint32_t seed, uint8_t *to, size_t room)
{
	static const uint8_t begin[] = {PSB, PSBEND};
	size_t n = sizeof(begin);

	memcpy(to, begin, n);
	while (n + 16 <= room) {
		n += any_packet(&seed, to + n);
		if (next(&seed) % 64 == 0 && n + sizeof(begin) <= room) {
			memcpy(to + n, begin, sizeof(begin));
			n += sizeof(begin);
		}
	}
	return n;
}

/* The next address, read plainly. False: the end. */
static bool plain_next(struct packet_cursor *c, uint64_t *last_ip, uint64_t *ret)
{
	struct packet p;

	while (packet_next(c, &p) == 0) {
		if (p.type == PACKET_PSB)
			*last_ip = 0;
		if ((p.type == PACKET_TIP || p.type == PACKET_TIP_PGE || p.type == PACKET_TIP_PGD ||
		     p.type == PACKET_FUP) &&
		    packet_ip(&p, last_ip, ret))
			return true;
	}
	return false;
}

static void skim_reader_any_packets_give_what_reading_all_gives(void **state)
{
	uint8_t trace[4096];
	uint32_t seed;
	size_t found = 0;

	(void)state;
	for (seed = 1; seed <= 300; seed++) {
		size_t size = any_trace(seed, trace, sizeof(trace) - seed);
		struct skim_config config = {
			.trace = trace, .size = size, .timing = {.mtc_period = UINT32_MAX}};
		struct packet_cursor c = {.pos = trace, .end = trace + size};
		uint64_t ip = 0, last_ip = 0;
		struct skim_reader r;
		struct skim_sample s;

		skim_reader_init(&r, &config);
		while (skim_reader_next(&r, &s)) {
			if (s.kind == SKIM_PSB)
				continue;
			assert_true(plain_next(&c, &last_ip, &ip));
			assert_int_equal(s.ip, ip);
			assert_true(s.offset < (size_t)(c.pos - trace));
			found++;
		}
		assert_false(plain_next(&c, &last_ip, &ip));
		assert_int_equal(r.counts.bad_packets, 0);
	}
	assert_true(found > 20000);
}

static void skim_span_is_of_the_first_and_the_last_psb(void **state)
{
	static uint8_t trace[300000];
	static const uint8_t with_tsc[] = {PSB, 0x19, 9, 0, 0, 0, 0, 0, 0, PSBEND};
	uint64_t first = 0, last = 0;

	(void)state;
	assert_false(skim_span(trace, sizeof(trace), 0, &first, &last));
	memcpy(trace + 1000, with_tsc, sizeof(with_tsc));
	assert_true(skim_span(trace, sizeof(trace), 0, &first, &last));
	assert_int_equal(first, 9);
	assert_int_equal(last, 9);
	memcpy(trace + 140000, with_tsc, sizeof(with_tsc));
	trace[140000 + 17] = 11;
	assert_true(skim_span(trace, sizeof(trace), 0, &first, &last));
	assert_int_equal(first, 9);
	assert_int_equal(last, 11);
	assert_true(skim_span(trace, sizeof(trace), 2000, &first, &last));
	assert_int_equal(first, 11);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(skim_reader_every_form_is_decompressed),
		cmocka_unit_test(skim_reader_psbs_alone_say_address_time_and_mode),
		cmocka_unit_test(skim_reader_overflow_and_psb_begin_anew),
		cmocka_unit_test(skim_reader_bytes_that_are_no_packet_end_at_the_next_psb),
		cmocka_unit_test(skim_reader_blocks_hold_no_addresses),
		cmocka_unit_test(skim_reader_guests_are_told),
		cmocka_unit_test(skim_reader_any_packets_give_what_reading_all_gives),
		cmocka_unit_test(skim_span_is_of_the_first_and_the_last_psb),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
