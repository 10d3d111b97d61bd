#include "decoder/packet/packet.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define PSB "\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82"

struct good {
	const char *bytes;
	uint8_t size;
	uint8_t type;
	const char *text; /* behind the offset; as libipt's ptdump writes packets that it knows */
};

/* clang-format off */
static const struct good goods[] = {
	{ "\x00", 1, PACKET_PAD, "pad" },
	{ PSB, 16, PACKET_PSB, "psb" },
	{ "\x02\x23", 2, PACKET_PSBEND, "psbend" },
	{ "\x02\xf3", 2, PACKET_OVF, "ovf" },
	{ "\x02\x83", 2, PACKET_TRACESTOP, "stop" },
	{ "\x06", 1, PACKET_TNT, "tnt.8      !" },
	{ "\x04", 1, PACKET_TNT, "tnt.8      ." },
	{ "\xa4", 1, PACKET_TNT, "tnt.8      .!..!." },
	{ "\x02\xa3\x05\x00\x00\x00\x00\x00", 8, PACKET_TNT, "tnt.64     .!" },
	{ "\x02\xa3\x01\x00\x00\x00\x00\x80", 8, PACKET_TNT,
	  "tnt.64     ..............................................!" },
	{ "\x0d", 1, PACKET_TIP, "tip        0: ????????????????" },
	{ "\x2d\x34\x12", 3, PACKET_TIP, "tip        1: ????????????1234" },
	{ "\x51\x78\x56\x34\x12", 5, PACKET_TIP_PGE, "tip.pge    2: ????????12345678" },
	{ "\x61\x00\x00\x00\x00\x00\x80", 7, PACKET_TIP_PGD, "tip.pgd    3: ffff800000000000" },
	{ "\x9d\x01\x02\x03\x04\x05\x06", 7, PACKET_FUP, "fup        4: ????060504030201" },
	{ "\xdd\x01\x02\x03\x04\x05\x06\x07\x08", 9, PACKET_FUP, "fup        6: 0807060504030201" },
	{ "\x02\x43\x01\x00\xe7\x1e\x00\x00", 8, PACKET_PIP, "pip        1ee700000, nr             cr3  00000001ee700000" },
	{ "\x99\x01", 2, PACKET_MODE_EXEC, "mode.exec  cs.l" },
	{ "\x99\x02", 2, PACKET_MODE_EXEC, "mode.exec  cs.d" },
	{ "\x99\x03", 2, PACKET_MODE_EXEC, "mode.exec  cs.d, cs.l" },
	{ "\x99\x05", 2, PACKET_MODE_EXEC, "mode.exec  cs.l, if" },
	{ "\x99\x04", 2, PACKET_MODE_EXEC, "mode.exec  if" },
	{ "\x99\x23", 2, PACKET_MODE_TSX, "mode.tsx   intx, abrt" },
	{ "\x99\x21", 2, PACKET_MODE_TSX, "mode.tsx   intx" },
	{ "\x99\x22", 2, PACKET_MODE_TSX, "mode.tsx   abrt" },
	{ "\x02\x03\x20\x00", 4, PACKET_CBR, "cbr        20" },
	{ "\x19\x50\x31\x73\x6b\x46\xfe\x0a", 8, PACKET_TSC, "tsc        afe466b733150" },
	{ "\x59\xda", 2, PACKET_MTC, "mtc        da" },
	{ "\x02\x73\xce\x8e\x00\x4a\x01", 7, PACKET_TMA, "tma        8ece, 14a" },
	{ "\x4b", 1, PACKET_CYC, "cyc        9" },
	{ "\x4f\x06", 2, PACKET_CYC, "cyc        69" },
	{ "\x07\x01\x02", 3, PACKET_CYC, "cyc        1000" },
	{ "\x02\xc8\x99\x2e\x35\x00\x00", 7, PACKET_VMCS, "vmcs       352e99000                 vmcs 0000000352e99000" },
	{ "\x02\xc3\x88\x08\x07\x06\x05\x04\x03\x02\x01", 11, PACKET_MNT, "mnt        102030405060708" },
	{ "\x02\x12\x04\x03\x02\x01", 6, PACKET_PTW, "ptw        0: 1020304" },
	{ "\x02\xb2\x08\x07\x06\x05\x04\x03\x02\x01", 10, PACKET_PTW, "ptw        1: 102030405060708, ip" },
	{ "\x02\x62", 2, PACKET_EXSTOP, "exstop" },
	{ "\x02\xe2", 2, PACKET_EXSTOP, "exstop     ip" },
	{ "\x02\xc2\x01\x00\x00\x00\x02\x00\x00\x00", 10, PACKET_MWAIT, "mwait      00000001, 00000002" },
	{ "\x02\x22\x88\x12", 4, PACKET_PWRE, "pwre       c2.3, hw" },
	{ "\x02\x22\x00\xff", 4, PACKET_PWRE, "pwre       c0.0" },
	{ "\x02\xa2\x25\x01\x00\x00\x00", 7, PACKET_PWRX, "pwrx       int: c3, c6" },
	{ "\x02\xa2\x25\x04\x00\x00\x00", 7, PACKET_PWRX, "pwrx        st: c3, c6" },
	{ "\x02\xa2\xff\x08\x00\x00\x00", 7, PACKET_PWRX, "pwrx        hw: c0, c0" },
	{ "\x02\xa2\x00\x05\x00\x00\x00", 7, PACKET_PWRX, "pwrx       bad: c1, c1" },
	{ "\x02\x63\x84", 3, PACKET_BBP, "bbp        4, 4" },
	{ "\x02\x33", 2, PACKET_BEP, "bep" },
	{ "\x02\xb3", 2, PACKET_BEP, "bep        ip" },
	{ "\x02\x13\x81\x0e", 4, PACKET_CFE, "cfe        1: 14, ip                 type intr" },
	{ "\x02\x13\x02\x0e", 4, PACKET_CFE, "cfe        2                         type iret" },
	{ "\x02\x13\x05\xce", 4, PACKET_CFE, "cfe        5: ce                     type sipi" },
	{ "\x02\x13\x1f\x00", 4, PACKET_CFE, "cfe        31                        type unknown" },
	{ "\x02\x53\x3f\x01\x00\x00\x00\x00\x00\x00\x00", 11, PACKET_EVD, "evd        63: 1                     type unknown" },
	{ "\xd9\x00\x01", 3, PACKET_TRIG, "trig       01" },
	{ "\xd9\x20\xa1", 3, PACKET_TRIG, "trig       a1, mult" },
	{ "\xd9\xe0\xa1\x17\x01", 5, PACKET_TRIG, "trig       a1, ip, mult, icnt: 279" },
	{ "\x02\x53\x01\x08\x07\x06\x05\x04\x03\x02\x01", 11, PACKET_EVD, "evd        1: 102030405060708        type vmxq" },
};

static const struct { const char *bytes; uint8_t size; } bads[] = {
	{ "\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x00", 16 }, /* a broken PSB */
	{ "\x02\x00", 2 }, { "\x02\xff", 2 },
	{ "\x02\xa3\x00\x00\x00\x00\x00\x00", 8 }, /* TNT without stop bit */
	{ "\x02\xa3\x01\x00\x00\x00\x00\x00", 8 }, /* TNT without branch */
	{ "\xad\x01", 2 }, { "\xed\x01", 2 },      /* reserved IPBytes */
	{ "\x99\x40", 2 },                         /* reserved MODE leaf */
	{ "\x02\x73\x00\x00\x00\x00\x02", 7 },     /* TMA: reserved bit */
	{ "\x02\x73\x00\x00\x01\x00\x00", 7 },     /* TMA: reserved byte */
	{ "\xd9\x01\x00", 3 },                     /* TRIG: reserved bit */
	{ "\x02\xc3\x87\x00\x00\x00\x00\x00\x00\x00\x00", 11 },
	{ "\x39", 1 }, { "\x05", 1 },
	{ "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 16 }, /* CYC > 64 bits */
};
/* clang-format on */

static void packet_read_every_packet_is_read(void **state)
{
	char line[128];
	struct packet p;
	size_t length;

	(void)state;
	for (size_t i = 0; i < sizeof(goods) / sizeof(goods[0]); i++) {
		const struct good *g = &goods[i];
		const uint8_t *bytes = (const uint8_t *)g->bytes;

		assert_int_equal(packet_read(bytes, bytes + g->size, &p), 0);
		assert_int_equal(p.type, g->type);
		assert_int_equal(p.size, g->size);
		length = packet_format(&p, 0x1f8, line, sizeof(line));
		assert_int_equal(length, strlen(line));
		assert_memory_equal(line, "00000000000001f8  ", 18);
		assert_string_equal(line + 18, g->text);
	}
}

static void packet_read_cut_anywhere_needs_more(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(goods) / sizeof(goods[0]); i++) {
		for (size_t n = 0; n < goods[i].size; n++) {
			struct packet p = {.type = 0xee};
			uint8_t bytes[16];

			memcpy(bytes, goods[i].bytes, n);
			assert_int_equal(packet_read(bytes, bytes + n, &p), PACKET_SHORT);
			assert_int_equal(p.type, 0xee);
		}
	}
}

static void packet_read_no_packet_is_bad(void **state)
{
	struct packet p = {.type = 0xee};

	(void)state;
	for (size_t i = 0; i < sizeof(bads) / sizeof(bads[0]); i++) {
		const uint8_t *bytes = (const uint8_t *)bads[i].bytes;

		assert_int_equal(packet_read(bytes, bytes + bads[i].size, &p), PACKET_BAD);
		assert_int_equal(p.type, 0xee);
	}
}

static void packet_next_block_items_are_read_between_bbp_and_bep(void **state)
{
	/* BBP with 8 byte items, one BIP, BEP, then a TNT of the same form as a BIP. */
	static const uint8_t bytes[] = {0x02, 0x63, 0x04, 0x0c, 1, 2,	 3,   4,
					5,    6,    7,	  8,	2, 0x33, 0x0c};
	static const uint8_t types[] = {PACKET_BBP, PACKET_BIP, PACKET_BEP, PACKET_TNT};
	struct packet_cursor c = {.pos = bytes, .end = bytes + sizeof(bytes)};
	struct packet p;

	(void)state;
	for (size_t i = 0; i < sizeof(types); i++) {
		assert_int_equal(packet_next(&c, &p), 0);
		assert_int_equal(p.type, types[i]);
		if (p.type == PACKET_BIP) {
			assert_int_equal(p.u.bip.id, 1);
			assert_true(p.u.bip.payload == UINT64_C(0x0807060504030201));
		}
	}
	assert_int_equal(packet_next(&c, &p), PACKET_SHORT);
}

static void packet_next_skd007_gives_the_swallowed_ovf(void **state)
{
	static const uint8_t bytes[] = {0x07, 0x02, 0xf3, 0x00};
	struct packet_cursor c = {.pos = bytes, .end = bytes + sizeof(bytes)};
	struct packet p;

	(void)state;
	assert_int_equal(packet_next(&c, &p), 0);
	assert_int_equal(p.type, PACKET_CYC);
	c = (struct packet_cursor){bytes, bytes + sizeof(bytes), 0, PACKET_SKD007};
	assert_int_equal(packet_next(&c, &p), 0);
	assert_int_equal(p.type, PACKET_OVF);
	assert_int_equal(packet_next(&c, &p), 0);
	assert_int_equal(p.type, PACKET_PAD);
	assert_ptr_equal(c.pos, c.end);
}

static void packet_next_skz84_skips_the_spoilt_tma(void **state)
{
	static const uint8_t bytes[] = {0x02, 0x73, 1, 1, 1, 1, 0, 0, 0x06};
	struct packet_cursor c = {.pos = bytes, .end = bytes + sizeof(bytes)};
	struct packet p;

	(void)state;
	assert_int_equal(packet_next(&c, &p), PACKET_BAD);
	c.quirks = PACKET_SKZ84;
	assert_int_equal(packet_next(&c, &p), 0);
	assert_int_equal(p.type, PACKET_INVALID);
	assert_int_equal(packet_next(&c, &p), 0);
	assert_int_equal(p.type, PACKET_TNT);
}

static void packet_why_tells_spoilt_packets_from_unknown_ones(void **state)
{
	static const struct {
		const char *bytes, *why;
	} cases[] = {
		{"\xad\x01", "unknown packet"},	    {"\x99\x40", "unknown packet"},
		{"\x02\x73\x01", "unknown packet"}, {"\x02\xa3", "unknown packet"},
		{"\xd9\x01", "unknown packet"},	    {"\x02\xff", "unknown opcode"},
		{"\x05\x01", "unknown opcode"},	    {"\x02\xc3\x87", "unknown opcode"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const uint8_t *bytes = (const uint8_t *)cases[i].bytes;

		assert_string_equal(packet_why(bytes, bytes + strlen(cases[i].bytes)),
				    cases[i].why);
	}
}

static void packet_ip_every_compression_updates_last_ip(void **state)
{
	static const struct {
		uint8_t bytes;
		uint64_t raw, last, ip;
	} cases[] = {
		{1, 0x1234, 0xaabbccddeeff0011, 0xaabbccddeeff1234},
		{2, 0x12345678, 0xaabbccddeeff0011, 0xaabbccdd12345678},
		{3, 0x7fffffffffff, 0xaabbccddeeff0011, 0x7fffffffffff},
		{3, 0x800000000000, 0xaabbccddeeff0011, 0xffff800000000000},
		{4, 0x800000000000, 0xaabbccddeeff0011, 0xaabb800000000000},
		{6, 0x0102030405060708, 0xaabbccddeeff0011, 0x0102030405060708},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct packet p = {.type = PACKET_TIP};
		uint64_t last = cases[i].last, ip = 0;

		p.u.ip.raw = cases[i].raw;
		p.u.ip.bytes = cases[i].bytes;
		assert_true(packet_ip(&p, &last, &ip));
		assert_true(ip == cases[i].ip && last == ip);
	}
}

static void packet_ip_suppressed_leaves_last_ip(void **state)
{
	struct packet p = {.type = PACKET_TIP};
	uint64_t last = 5, ip = 7;

	(void)state;
	assert_false(packet_ip(&p, &last, &ip));
	assert_true(last == 5 && ip == 7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(packet_read_every_packet_is_read),
		cmocka_unit_test(packet_read_cut_anywhere_needs_more),
		cmocka_unit_test(packet_read_no_packet_is_bad),
		cmocka_unit_test(packet_next_block_items_are_read_between_bbp_and_bep),
		cmocka_unit_test(packet_next_skd007_gives_the_swallowed_ovf),
		cmocka_unit_test(packet_next_skz84_skips_the_spoilt_tma),
		cmocka_unit_test(packet_why_tells_spoilt_packets_from_unknown_ones),
		cmocka_unit_test(packet_ip_every_compression_updates_last_ip),
		cmocka_unit_test(packet_ip_suppressed_leaves_last_ip),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
