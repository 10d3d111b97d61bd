/*
 * Runs (decoder/time/timing_read.c): MTCs are found where reading packet by packet finds them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "decoder/time/timing_private.h"
#include "tests/unit/decoder/any_bytes.h"

/* Adds a payload that looks like packets as often as possible. */
static void add_payload(struct any_bytes *in, size_t size)
{
	static const uint8_t like[] = {0x59, 0x2d, 0x4d, 0x71, 0xdd, 0x02, 0xa3, 0x19, 0x00, 0x82};

	for (; size > 0; size--) {
		uint8_t byte =
			any(in, 3) == 0 ? (uint8_t)any(in, 256) : like[any(in, sizeof(like))];

		add(in, &byte, 1);
	}
}

static void add_ip(struct any_bytes *in)
{
	static const uint8_t opcodes[] = {0x0d, 0x11, 0x01, 0x1d}, sizes[] = {0, 2, 4, 6, 6, 0, 8};
	unsigned int kind = (unsigned int)any(in, 7);
	uint8_t first;

	if (kind == 5)
		kind = 1;
	first = (uint8_t)(opcodes[any(in, 4)] | kind << 5);
	add(in, &first, 1);
	add_payload(in, sizes[kind]);
}

static void add_tnt(struct any_bytes *in)
{
	uint8_t byte = (uint8_t)(any(in, 126) * 2 + 4);

	add(in, &byte, 1);
}

static void add_long_tnt(struct any_bytes *in)
{
	add(in, "\x02\xa3", 2);
	add_payload(in, 6);
	if (any(in, 3) == 0)
		memset(in->bytes + in->size - 5, 0, 5);
	if (any(in, 2) == 0 || in->bytes[in->size - 6] < 2)
		in->bytes[in->size - 6] |= 2;
}

static void add_mtc(struct any_bytes *in)
{
	add(in, "\x59", 1);
	add_payload(in, 1);
}

static void add_some(struct any_bytes *in, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		switch (any(in, 6)) {
		case 0: add_ip(in); break;
		case 1: add_long_tnt(in); break;
		case 2: add_mtc(in); break;
		case 3: add(in, "", 1); break;
		default: add_tnt(in); break;
		}
}

static bool is_held(const struct packet *p)
{
	return p->type == PACKET_PAD || p->type == PACKET_TNT || p->type == PACKET_MTC ||
	       (p->type >= PACKET_TIP && p->type <= PACKET_FUP);
}

/* Reads the run that begins at FROM, and compares it with reading packet by packet. Returns the
 * run's end. */
static size_t check_run(struct any_bytes *in, size_t from)
{
	struct packet_cursor c = {.pos = in->bytes + from, .end = in->bytes + in->size};
	struct timing_run run, *r = &run;
	struct packet p;
	uint64_t mtc;

	if (!timing_run_read(r, in->bytes, &c))
		return from;
	assert_int_equal(r->from, from);
	assert_in_range(r->to, from + 1, in->size);
	while (c.pos < in->bytes + r->to) {
		uint64_t offset = (uint64_t)(c.pos - in->bytes);

		assert_int_equal(packet_next(&c, &p), 0);
		assert_true(is_held(&p));
		if (p.type != PACKET_MTC)
			continue;
		assert_true(timing_run_mtc(r, offset, &mtc));
		assert_int_equal(mtc, offset);
	}
	assert_ptr_equal(c.pos, in->bytes + r->to);
	assert_false(timing_run_mtc(r, r->to, &mtc));
	return (size_t)r->to;
}

/* Checks all runs of the input. Returns the place of the first packet that belongs to no run. */
static size_t check_runs(struct any_bytes *in)
{
	size_t at = 0, to;

	while ((to = check_run(in, at)) > at)
		at = to;
	return at;
}

static int setup(void **state)
{
	struct any_bytes *in = calloc(1, sizeof(*in));

	*state = in;
	if (in != NULL)
		any_begin(in);
	return in == NULL;
}

static int teardown(void **state)
{
	free(*state);
	return 0;
}

static void timing_run_read_of_all_kinds_holds_all(void **state)
{
	struct any_bytes *in = *state;

	for (unsigned int i = 0; i < 300; i++) {
		in->size = 0;
		add_some(in, 1 + (unsigned int)any(in, 2000));
		assert_int_equal(check_runs(in), in->size);
	}
}

static void timing_run_read_ends_at_another_packet(void **state)
{
	static const char *const others[] = {
		"\x19",	    "\x99\x01",	    "\x03",	"\x02\x23", "\x02\x82\x02\x82",
		"\x02\xf3", "\x02\x03\x10", "\xd9\x01", "\xad\x10", "\x05",
		"\x02"};
	struct any_bytes *in = *state;

	for (unsigned int i = 0; i < 3000; i++) {
		const char *other = others[i % (sizeof(others) / sizeof(others[0]))];
		size_t end;

		in->size = 0;
		add_some(in, 1 + (unsigned int)any(in, 60));
		end = in->size;
		add(in, other, strlen(other));
		if (i % 3 != 0)
			add_some(in, 40);
		assert_int_equal(check_runs(in), end);
	}
}

static void timing_run_read_long_tnt_without_branches_ends_it(void **state)
{
	static const char *const bad[] = {"\x02\xa3\x00\x00\x00\x00\x00\x00",
					  "\x02\xa3\x01\x00\x00\x00\x00\x00"};
	struct any_bytes *in = *state;

	for (unsigned int i = 0; i < 300; i++) {
		size_t end;

		in->size = 0;
		add_some(in, 1 + (unsigned int)any(in, 60));
		end = in->size;
		add(in, bad[i % 2], 8);
		add_some(in, 40);
		assert_int_equal(check_runs(in), end);
	}
}

static void timing_run_read_of_a_cut_packet_ends_before_it(void **state)
{
	static const char *const whole[] = {"\x4d\x01\x02\x03\x04",
					    "\xdd\x01\x02\x03\x04\x05\x06\x07\x08", "\x59\x04",
					    "\x02\xa3\x07\x01\x01\x01\x01\x01"};
	static const size_t sizes[] = {5, 9, 2, 8};
	struct any_bytes *in = *state;

	for (unsigned int i = 0; i < 2000; i++) {
		size_t end;

		in->size = 0;
		add_some(in, 1 + (unsigned int)any(in, 60));
		end = in->size;
		add(in, whole[i % 4], 1 + (size_t)any(in, sizes[i % 4] - 1));
		assert_int_equal(check_runs(in), end);
	}
}

/* The MTCs begin at another place of a block each time. */
static void timing_run_read_of_mtcs_only_goes_on_behind_what_there_is_room_for(void **state)
{
	struct any_bytes *in = *state;

	for (unsigned int before = 0; before < 70; before++) {
		in->size = 0;
		add_some(in, before);
		for (unsigned int i = 0; i < 2000; i++)
			add_mtc(in);
		assert_in_range(check_run(in, 0), 1000, in->size - 1);
		assert_int_equal(check_runs(in), in->size);
	}
}

static void timing_run_read_without_mtcs_goes_on_behind_what_numbers_can_say(void **state)
{
	struct any_bytes *in = *state;

	for (unsigned int i = 0; i < 90000; i++)
		add_tnt(in);
	add_mtc(in);
	assert_in_range(check_run(in, 0), 1000, UINT16_MAX);
	assert_int_equal(check_runs(in), in->size);
}

static void timing_run_read_within_a_block_of_items_is_none(void **state)
{
	struct any_bytes *in = *state;
	struct packet_cursor c = {.pos = in->bytes, .end = in->bytes + 100, .bip_bytes = 4};
	struct timing_run run;

	add_some(in, 100);
	assert_false(timing_run_read(&run, in->bytes, &c));
	assert_int_equal(run.from, run.to);
}

/* For any bytes, a run holds only packets that reading packet by packet finds. */
static void timing_run_read_of_any_bytes_holds_packets_only(void **state)
{
	struct any_bytes *in = *state;

	for (unsigned int i = 0; i < 20000; i++) {
		in->size = 0;
		add_payload(in, 200);
		check_runs(in);
	}
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(timing_run_read_of_all_kinds_holds_all),
		CASE(timing_run_read_ends_at_another_packet),
		CASE(timing_run_read_long_tnt_without_branches_ends_it),
		CASE(timing_run_read_of_a_cut_packet_ends_before_it),
		CASE(timing_run_read_of_mtcs_only_goes_on_behind_what_there_is_room_for),
		CASE(timing_run_read_without_mtcs_goes_on_behind_what_numbers_can_say),
		CASE(timing_run_read_within_a_block_of_items_is_none),
		CASE(timing_run_read_of_any_bytes_holds_packets_only),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
