/* The tables against Zydis: where they give an answer it is the same. */
#include "decoder/code/insn_private.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct bytes {
	size_t n;
	uint8_t bytes[8];
};

/* The same in each run. */
struct dice {
	uint64_t state;
};

static uint64_t throw(struct dice * d)
{
	d->state ^= d->state << 13;
	d->state ^= d->state >> 7;
	d->state ^= d->state << 17;
	return d->state;
}

static void throw_bytes(struct dice *d, uint8_t *bytes, size_t n)
{
	for (size_t i = 0; i < n; i += 8) {
		uint64_t x = throw(d);

		memcpy(bytes + i, &x, n - i < 8 ? n - i : 8);
	}
}

struct comparison {
	struct insn_reader *reader;
	struct dice dice;
	size_t told;
};

static int begin_comparison(void **state)
{
	struct comparison *c = calloc(1, sizeof(*c));

	*state = c;
	if (c == NULL)
		return -1;
	c->reader = insn_reader_new();
	c->dice.state = UINT64_C(0x9e3779b97f4a7c15);
	return c->reader != NULL ? 0 : -1;
}

static int end_comparison(void **state)
{
	struct comparison *c = *state;

	insn_reader_free(c->reader);
	free(c);
	return 0;
}

static void show(enum insn_mode mode, const uint8_t *bytes, size_t n)
{
	print_message("mode %d:", mode);
	for (size_t i = 0; i < n; i++)
		print_message(" %02x", bytes[i]);
	print_message("\n");
}

/* Compares both ways to read the instruction in BYTES, of which there are only N. */
static void compare(struct comparison *c, enum insn_mode mode, const uint8_t *bytes, size_t n)
{
	uint64_t ip = throw(&c->dice);
	struct insn told, asked = {0};
	int r;

	if (!insn_quick_read(mode, ip, bytes, n, &told))
		return;
	c->told++;
	r = insn_ask(c->reader, mode, ip, bytes, n, &asked);
	if (r != 0 || told.size != asked.size || told.class != asked.class ||
	    told.target != asked.target)
		show(mode, bytes, n);
	assert_int_equal(r, 0);
	assert_int_equal(told.size, asked.size);
	assert_int_equal(told.class, asked.class);
	assert_int_equal(told.target, asked.target);
}

static const struct bytes prefixes[] = {
	{0, {0}},
	{1, {0x66}},
	{1, {0xf2}},
	{1, {0xf3}},
	{1, {0xf0}},
	{1, {0x67}},
	{1, {0x65}},
	{1, {0x41}},
	{1, {0x48}},
	{2, {0x66, 0x48}},
	{2, {0xf3, 0x4c}},
	{2, {0xf2, 0x49}},
	{2, {0xf0, 0x48}},
	{2, {0x66, 0xf3}},
	{2, {0xf2, 0x66}},
	{2, {0xf2, 0xf3}},
	{2, {0x67, 0x66}},
	{2, {0x48, 0x66}},
	{2, {0x48, 0x41}},
	{7, {0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x2e}},
	{8, {0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x2e, 0x48}},
};
static const struct bytes maps[] = {{0, {0}}, {1, {0x0f}}, {2, {0x0f, 0x38}}, {2, {0x0f, 0x3a}}};

/* PREFIX, an opcode of MAP, every ModRM; with a SIB without base every second time. More bytes than
 * an instruction may have. */
static void compare_opcode(struct comparison *c, enum insn_mode mode, const struct bytes *prefix,
			   const struct bytes *map, uint8_t opcode)
{
	for (unsigned int modrm = 0; modrm < 256; modrm++) {
		uint8_t bytes[24];
		size_t n = prefix->n + map->n;

		throw_bytes(&c->dice, bytes, sizeof(bytes));
		memcpy(bytes, prefix->bytes, prefix->n);
		memcpy(bytes + prefix->n, map->bytes, map->n);
		bytes[n++] = opcode;
		bytes[n++] = (uint8_t)modrm;
		if ((throw(&c->dice) & 1) != 0)
			bytes[n] = (uint8_t)((bytes[n] & 0xf8) | 5);
		compare(c, mode, bytes, sizeof(bytes));
	}
}

static void compare_maps(struct comparison *c, enum insn_mode mode)
{
	for (size_t p = 0; p < sizeof(prefixes) / sizeof(prefixes[0]); p++) {
		for (size_t m = 0; m < sizeof(maps) / sizeof(maps[0]); m++) {
			for (unsigned int opcode = 0; opcode < 256; opcode++)
				compare_opcode(c, mode, &prefixes[p], &maps[m], (uint8_t)opcode);
		}
	}
}

static void insn_quick_read_every_opcode_is_as_asked(void **state)
{
	struct comparison *c = *state;

	compare_maps(c, INSN_MODE_64);
	assert_true(c->told > 1000000);
	compare_maps(c, INSN_MODE_32);
	assert_true(c->told > 2000000);
}

static void compare_vex(struct comparison *c, const struct bytes *prefix)
{
	for (unsigned int opcode = 0; opcode < 256; opcode++) {
		for (unsigned int i = 0; i < 4; i++) {
			uint8_t bytes[INSN_MAX_SIZE];

			throw_bytes(&c->dice, bytes, sizeof(bytes));
			memcpy(bytes, prefix->bytes, prefix->n);
			bytes[prefix->n] = (uint8_t)opcode;
			if ((i & 1) != 0)
				bytes[prefix->n + 1] |= 0xc0;
			compare(c, INSN_MODE_64, bytes, sizeof(bytes));
		}
	}
}

/* Every W, vvvv, L and pp; maps that are there and some that are not. */
static void insn_quick_read_every_vex_is_as_asked(void **state)
{
	struct comparison *c = *state;

	for (unsigned int bits = 0; bits < 256; bits++) {
		struct bytes prefix = {2, {0xc5, (uint8_t)bits}};

		compare_vex(c, &prefix);
		for (unsigned int map = 0; map < 8; map++) {
			uint8_t rxb = (uint8_t)(throw(&c->dice) & 0xe0);

			prefix = (struct bytes){3, {0xc4, (uint8_t)(rxb | map), (uint8_t)bits}};
			compare_vex(c, &prefix);
		}
	}
	assert_true(c->told > 50000);
}

static void insn_quick_read_any_bytes_are_as_asked(void **state)
{
	struct comparison *c = *state;

	for (unsigned int i = 0; i < 1000000; i++) {
		uint8_t bytes[INSN_MAX_SIZE];

		throw_bytes(&c->dice, bytes, sizeof(bytes));
		compare(c, (enum insn_mode)(i % 3), bytes, throw(&c->dice) % (sizeof(bytes) + 1));
	}
}

/* Were they not told, all would still be right, but slow. */
static void insn_quick_read_ordinary_instructions_are_told(void **state)
{
	static const struct bytes ordinary[] = {
		{1, {0x55}},
		{3, {0x48, 0x89, 0xe5}},
		{5, {0xb8, 1, 0, 0, 0}},
		{7, {0x48, 0x8d, 0x05, 1, 2, 3, 4}},
		{5, {0x48, 0x8b, 0x44, 0x24, 0x08}},
		{4, {0xf3, 0x0f, 0x1e, 0xfa}},
		{6, {0x66, 0x0f, 0x1f, 0x44, 0, 0}},
		{5, {0xe8, 1, 2, 3, 4}},
		{6, {0x0f, 0x84, 1, 2, 3, 4}},
		{2, {0x75, 0xfe}},
		{6, {0xff, 0x15, 1, 2, 3, 4}},
		{1, {0xc3}},
		{3, {0x0f, 0xb6, 0xc0}},
		{3, {0xf6, 0xc2, 1}},
		{3, {0x48, 0xf7, 0xd8}},
		{6, {0xf2, 0x0f, 0x58, 0x44, 0x24, 0x08}},
		{5, {0xf0, 0x48, 0x0f, 0xb1, 0x17}},
		{3, {0xc5, 0xf8, 0x77}},
		{4, {0xc5, 0xfd, 0x6f, 0x07}},
		{6, {0xc4, 0xe3, 0x7d, 0x39, 0xc1, 1}},
		{2, {0x0f, 0x05}},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(ordinary) / sizeof(ordinary[0]); i++) {
		struct insn insn;

		if (!insn_quick_read(INSN_MODE_64, 0, ordinary[i].bytes, ordinary[i].n, &insn))
			show(INSN_MODE_64, ordinary[i].bytes, ordinary[i].n);
		assert_true(
			insn_quick_read(INSN_MODE_64, 0, ordinary[i].bytes, ordinary[i].n, &insn));
		assert_int_equal(insn.size, ordinary[i].n);
		assert_false(insn_quick_read(INSN_MODE_64, 0, ordinary[i].bytes, ordinary[i].n - 1,
					     &insn));
	}
}

/* RUN is what one gets by asking for one instruction after the other. */
static void check_run(struct comparison *c, enum insn_mode mode, const uint8_t *bytes, size_t n,
		      const struct insn_run *run, int result)
{
	struct insn insn = {.class = INSN_OTHER};
	size_t at = 0, i;
	int r = 0;

	for (i = 0; i < run->max && insn.class == INSN_OTHER; i++, at += insn.size) {
		r = insn_ask(c->reader, mode, at, bytes + at, n - at, &insn);
		if (r != 0)
			break;
		assert_true(i < run->n);
		assert_int_equal(run->sizes[i], insn.size);
	}
	assert_int_equal(run->n, i);
	assert_int_equal(run->bytes, at);
	assert_int_equal(result, r);
	if (r == 0 && insn.class != INSN_OTHER) {
		assert_int_equal(run->last.class, insn.class);
		assert_int_equal(run->last.size, insn.size);
		assert_int_equal(run->last.target, insn.target);
	} else {
		assert_int_equal(run->last.class, INSN_OTHER);
	}
}

static void insn_read_run_is_as_one_by_one(void **state)
{
	struct comparison *c = *state;

	for (unsigned int i = 0; i < 200000; i++) {
		uint8_t bytes[64], sizes[16];
		size_t n = throw(&c->dice) % (sizeof(bytes) + 1);
		struct insn_run run = {.sizes = sizes, .max = throw(&c->dice) % 17};
		enum insn_mode mode = (enum insn_mode)(i % 3);
		int r;

		throw_bytes(&c->dice, bytes, sizeof(bytes));
		r = insn_read_run(c->reader, mode, 0, bytes, n, &run);
		check_run(c, mode, bytes, n, &run, r);
	}
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, begin_comparison, end_comparison)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(insn_quick_read_every_opcode_is_as_asked),
		CASE(insn_quick_read_every_vex_is_as_asked),
		CASE(insn_quick_read_any_bytes_are_as_asked),
		CASE(insn_quick_read_ordinary_instructions_are_told),
		CASE(insn_read_run_is_as_one_by_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
