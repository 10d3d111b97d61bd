/*
 * Passing packets by (decoder/packet/event_ahead.c) leaves the reader as reading them does.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "decoder/packet/event_read.h"
#include "proto/base.h"
#include "tests/unit/decoder/any_bytes.h"

struct fixture {
	struct any_bytes in;
	struct event_reader plain, quick;
	size_t passed; /* events */
};

static void add_any(struct any_bytes *in, size_t size)
{
	for (; size > 0; size--) {
		uint8_t byte = (uint8_t)any(in, 256);

		add(in, &byte, 1);
	}
}

#define PSB "\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82"

static void add_begin(struct any_bytes *in)
{
	in->size = 0;
	add(in, PSB "\x99\x01\x7d\x00\x10\x40\x00\x00\x00\x02\x23", 16 + 2 + 7 + 2);
	/* A TIP that was not deferred, as the TNT before the TIP is not full. */
	add(in, "\x06\x2d\x00\x20\x06", 5);
}

static void add_other(struct any_bytes *in)
{
	static const struct {
		const char *bytes;
		size_t size;
	} others[] = {
		{"\x01", 1},			     /* TIP.PGD */
		{"\x71\x00\x10\x40\x00\x00\x00", 7}, /* TIP.PGE */
		{"\x7d\x00\x10\x40\x00\x00\x00\x2d\x00\x10", 10},
		{"\x6d\x00\x10\x40\x00\x00\xff", 7},	     /* a TIP to the kernel's half */
		{"\xcd\x00\x10\x40\x00\x00\x00\x00\x00", 9}, /* a TIP with the whole address */
		{"\x8d\x00\x10\x40\x00\x00\x00", 7},
		{"\x99\x01\x2d\x00\x10", 5}, /* MODE.Exec and its TIP */
		{"\x02\xf3", 2},
		{PSB "\x02\x23", 18},
		{"\x02\x03\x10\x00", 4},
		{"\x19\x01\x02\x03\x04\x05\x06\x07", 8},
		{"\x02\xa3\x01\x00\x00\x00\x00\x00", 8}, /* a long TNT without branches */
		{"\xd9\x00\x00", 3},
		{"\x17\x02", 2}, /* a CYC of two bytes */
		{"\x05", 1},
		{"\x02\x63\x01\x04\x04\x04\x04\x04\x04\x04\x04\x04\x02\x33", 14}, /* a block */
		{"\x02\x43\x01\x00\x00\x00\x00\x00", 8}, /* PIP: a virtual machine */
	};
	size_t i = (size_t)any(in, sizeof(others) / sizeof(others[0]));

	add(in, others[i].bytes, others[i].size);
}

static void add_tip(struct any_bytes *in)
{
	static const char opcodes[] = "\x0d\x2d\x4d\x6d";
	size_t kind = (size_t)any(in, 4);

	add(in, opcodes + kind, 1);
	add_any(in, 2 * kind);
	if (kind == 3)
		in->bytes[in->size - 1] = (uint8_t)any(in, 129);
}

static void add_long_tnt(struct any_bytes *in)
{
	static const uint8_t few[] = {0x02, 0x43, 0x7f, 0x80};
	uint8_t payload[6] = {few[any(in, 4)]};

	add(in, "\x02\xa3", 2);
	if (any(in, 2) == 0)
		add(in, payload, 6);
	else
		add_any(in, 6);
}

static void add_packet(struct any_bytes *in)
{
	uint8_t tnt = (uint8_t)(4 + 2 * any(in, 126)), cyc = (uint8_t)(3 | any(in, 32) << 3);

	switch (any(in, 8)) {
	case 0:
	case 1: add_tip(in); break;
	case 2: add_long_tnt(in); break;
	case 3: add(in, "\x59\x07", 2); break;
	case 4: add(in, &cyc, 1); break;
	case 5: add(in, "", 1); break;
	default: add(in, &tnt, 1); break;
	}
}

static bool may_be_passed(const struct event *e)
{
	return e->kind == EVENT_TNT || (e->kind == EVENT_TIP && (!e->has_to || e->to >> 63 == 0));
}

static void check_same(const struct event_reader *a, const struct event_reader *b)
{
	assert_ptr_equal(a->c.pos, b->c.pos);
	assert_ptr_equal(a->at, b->at);
	assert_int_equal(a->last_ip, b->last_ip);
	assert_int_equal(a->order, b->order);
	assert_int_equal(a->prompt, b->prompt);
	assert_int_equal(a->timed, b->timed);
	assert_int_equal(a->counts.packets, b->counts.packets);
	assert_int_equal(a->mode, b->mode);
	assert_int_equal(a->guest, b->guest);
}

/* The events that are not passed by are those of the plain reader. */
static void check(struct fixture *x)
{
	const struct any_bytes *in = &x->in;
	const struct errata errata = {0};
	struct event a, b;

	event_reader_init(&x->plain, in->bytes, in->size, 0, in->size, errata);
	event_reader_init(&x->quick, in->bytes, in->size, 0, in->size, errata);
	do {
		event_pass_branches(&x->quick);
		event_next(&x->quick, &b);
		for (event_next(&x->plain, &a); a.offset < b.offset; event_next(&x->plain, &a)) {
			assert_true(may_be_passed(&a));
			x->passed++;
		}
		assert_int_equal(a.kind, b.kind);
		assert_int_equal(a.offset, b.offset);
		assert_int_equal(a.has_to, b.has_to);
		assert_int_equal(a.to, b.to);
		assert_int_equal(a.from, b.from);
		assert_int_equal(a.late, b.late);
		assert_int_equal(a.timed, b.timed);
		check_same(&x->plain, &x->quick);
	} while (b.kind != EVENT_END);
}

static int setup(void **state)
{
	struct fixture *x = calloc(1, sizeof(*x));

	*state = x;
	if (x != NULL)
		any_begin(&x->in);
	return x == NULL;
}

static int teardown(void **state)
{
	free(*state);
	return 0;
}

static void event_pass_branches_leaves_the_reader_as_reading_does(void **state)
{
	struct fixture *x = *state;
	struct any_bytes *in = &x->in;

	for (unsigned int i = 0; i < 20000; i++) {
		unsigned int n = (unsigned int)any(in, 100);

		add_begin(in);
		while (n-- > 0)
			if (any(in, 20) == 0)
				add_other(in);
			else
				add_packet(in);
		if (any(in, 4) == 0)
			in->size -= (size_t)any(in, 8);
		check(x);
	}
	assert_in_range(x->passed, 100000, UINT64_MAX);
}

static void event_pass_branches_passes_what_is_plain(void **state)
{
	struct fixture *x = *state;
	struct any_bytes *in = &x->in;
	struct event_reader *r = &x->quick;

	add_begin(in);
	add(in, "\x06\x00\x0d\x2d\x01\x02\x4d\x01\x02\x03\x04\x6d\x01\x02\x03\x04\x05\x06", 18);
	add(in, "\x02\xa3\x01\x02\x03\x04\x05\x06\x59\x01\x03\x80", 12);
	add(in, "\x01\x00\x00\x00\x00\x00\x00\x00\x00", 9);
	event_reader_init(r, in->bytes, in->size, 0, in->size, (struct errata){0});
	for (struct event e = {0}; e.offset != in->size - 9;) {
		if (r->prompt)
			event_pass_branches(r);
		if (r->prompt)
			assert_ptr_equal(r->c.pos, in->bytes + in->size - 9);
		event_next(r, &e);
	}
}

static void event_pass_branches_stops_at_the_readers_end(void **state)
{
	struct fixture *x = *state;
	struct any_bytes *in = &x->in;
	struct event_reader *r = &x->quick;
	struct event e;

	add_begin(in);
	for (unsigned int i = 0; i < 40; i++)
		add(in, "\x06", 1);
	event_reader_init(r, in->bytes, in->size, 0, in->size - 20, (struct errata){0});
	while (!r->prompt)
		event_next(r, &e);
	event_pass_branches(r);
	assert_ptr_equal(r->c.pos, in->bytes + in->size - 20);
}

static void event_pass_branches_before_tips_proved_prompt_passes_nothing(void **state)
{
	struct fixture *x = *state;
	struct any_bytes *in = &x->in;
	struct event_reader *r = &x->quick;

	add_begin(in);
	event_reader_init(r, in->bytes + 27, in->size - 27, 0, in->size - 27, (struct errata){0});
	event_pass_branches(r);
	assert_ptr_equal(r->c.pos, in->bytes + 27);
}

/* A reader at many TNTs, behind a TIP that was not deferred. */
static struct event_reader *at_tnts(struct fixture *x)
{
	struct any_bytes *in = &x->in;
	struct event_reader *r = &x->quick;

	add_begin(in);
	for (unsigned int i = 0; i < 40; i++)
		add(in, "\x06", 1);
	event_reader_init(r, in->bytes, in->size, 0, in->size, (struct errata){0});
	r->c.pos = in->bytes + 40;
	r->prompt = true;
	return r;
}

#define PASSES_NOTHING(x, change)                               \
	do {                                                    \
		struct event_reader *r = at_tnts(x);            \
		change;                                         \
		event_pass_branches(r);                         \
		assert_ptr_equal(r->c.pos, (x)->in.bytes + 40); \
	} while (0)

static void event_pass_branches_where_something_waits_passes_nothing(void **state)
{
	struct fixture *x = *state;
	struct any_bytes *in = &x->in;

	PASSES_NOTHING(x, r->queue_n = 1);
	PASSES_NOTHING(x, r->n_waits = 1);
	PASSES_NOTHING(x, r->mode_waits = true);
	PASSES_NOTHING(x, r->fup_owed = true);
	PASSES_NOTHING(x, r->guest = true);
	PASSES_NOTHING(x, r->c.bip_bytes = 8);
	PASSES_NOTHING(x, r->last_ip = UINT64_C(0xffffffff81000000));
	event_pass_branches(at_tnts(x));
	assert_ptr_not_equal(x->quick.c.pos, in->bytes + 40);
}

/* N MTCs with any payloads, then another packet. */
static void event_pass_mtcs_leaves_the_reader_as_reading_does(void **state)
{
	struct fixture *x = *state;
	struct any_bytes *in = &x->in;
	struct packet p;

	for (unsigned int i = 0; i < 3000; i++) {
		size_t n = (size_t)any(in, 60), passed, stop;

		add_begin(in);
		for (size_t k = 0; k < n; k++) {
			add(in, "\x59", 1);
			add_any(in, 1);
		}
		if (i % 2 == 0)
			add(in, i % 4 == 0 ? "\x06\x06\x06" : "\x59", i % 4 == 0 ? 3 : 1);
		stop = in->size - (i % 3 == 0 ? (size_t)any(in, MIN_OF(n + 1, 5)) : 0);
		event_reader_init(&x->plain, in->bytes, in->size, 0, stop, (struct errata){0});
		x->plain.c.pos = in->bytes + 32;
		x->plain.order = ORDER_PARTIAL;
		x->quick = x->plain;
		event_pass_mtcs(&x->quick);
		passed = (size_t)(x->quick.c.pos - in->bytes) - 32;
		assert_in_range(x->quick.c.pos - in->bytes, 0, stop);
		assert_in_range(passed, n >= 12 ? 2 * n - 24 : 0, 2 * n);
		while (x->plain.c.pos < x->quick.c.pos)
			assert_int_equal(event_read(&x->plain, &p), 0);
		check_same(&x->plain, &x->quick);
	}
}

static void event_pass_mtcs_within_a_block_passes_nothing(void **state)
{
	struct fixture *x = *state;
	struct any_bytes *in = &x->in;
	struct event_reader *r = &x->quick;

	for (unsigned int i = 0; i < 40; i++)
		add(in, "\x59", 1);
	event_reader_init(r, in->bytes, in->size, 0, in->size, (struct errata){0});
	r->c.bip_bytes = 4;
	event_pass_mtcs(r);
	assert_ptr_equal(r->c.pos, in->bytes);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(event_pass_branches_leaves_the_reader_as_reading_does),
		CASE(event_pass_branches_passes_what_is_plain),
		CASE(event_pass_branches_stops_at_the_readers_end),
		CASE(event_pass_branches_before_tips_proved_prompt_passes_nothing),
		CASE(event_pass_branches_where_something_waits_passes_nothing),
		CASE(event_pass_mtcs_leaves_the_reader_as_reading_does),
		CASE(event_pass_mtcs_within_a_block_passes_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
