/*
 * The worst that bytes of a stranger can ask of the decoder. Each test has as much input as would
 * take minutes or gigabytes if work or memory were not in proportion to it (the bounds are argued
 * in the modules' head comments); that it ends is the test.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "decoder/code/graph.h"
#include "decoder/flow/flow.h"
#include "proto/base.h"

static const uint8_t psb[] = {0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82,
			      0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82};

struct bytes {
	uint8_t size, bytes[18];
};

/* One of every kind of packet, and what is none. */
static const struct bytes packets[] = {
	{1, {0x00}},					       /* PAD */
	{1, {0x04}},					       /* TNT, not taken */
	{1, {0x06}},					       /* TNT, taken */
	{8, {0x02, 0xa3, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f}}, /* TNT-64 */
	{3, {0x2d, 0x00, 0x10}},			       /* TIP */
	{1, {0x0d}},					       /* TIP without IP */
	{3, {0x31, 0x00, 0x10}},			       /* TIP.PGE */
	{3, {0x21, 0x00, 0x10}},			       /* TIP.PGD */
	{1, {0x01}},					       /* TIP.PGD without IP */
	{3, {0x3d, 0x00, 0x10}},			       /* FUP */
	{1, {0x1d}},					       /* FUP without IP */
	{2, {0x99, 0x00}},				       /* MODE.Exec, 16 bit */
	{2, {0x99, 0x01}},				       /* 64 bit */
	{2, {0x99, 0x20}},				       /* MODE.TSX, none */
	{2, {0x99, 0x21}},				       /* begin */
	{2, {0x99, 0x22}},				       /* abort */
	{2, {0x02, 0x23}},				       /* PSBEND */
	{2, {0x02, 0xf3}},				       /* OVF */
	{2, {0x02, 0x83}},				       /* TraceSTOP */
	{8, {0x02, 0x43, 0x00, 0x10}},			       /* PIP */
	{7, {0x02, 0xc8, 0x10}},			       /* VMCS */
	{4, {0x02, 0x03, 0x10, 0x00}},			       /* CBR */
	{8, {0x19, 0x01}},				       /* TSC */
	{7, {0x02, 0x73, 0x01}},			       /* TMA */
	{2, {0x59, 0x01}},				       /* MTC */
	{1, {0x0b}},					       /* CYC */
	{11, {0x02, 0xc3, 0x88}},			       /* MNT */
	{2, {0x02, 0xe2}},				       /* EXSTOP, IP */
	{10, {0x02, 0xc2}},				       /* MWAIT */
	{4, {0x02, 0x22}},				       /* PWRE */
	{7, {0x02, 0xa2}},				       /* PWRX */
	{6, {0x02, 0x92}},				       /* PTW, IP */
	{3, {0x02, 0x63, 0x81}},			       /* BBP */
	{5, {0x04}},					       /* BIP within a block */
	{2, {0x02, 0xb3}},				       /* BEP, IP */
	{4, {0x02, 0x13, 0x81, 0x20}},			       /* CFE, IP */
	{11, {0x02, 0x53}},				       /* EVD */
	{16,
	 {0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02,
	  0x82}}, /* PSB */
	{18,
	 {0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02,
	  0x82, 0x02, 0x23}}, /* PSB, PSBEND */
	{2, {0xff, 0xff}},    /* none */
	{2, {0x02, 0x82}},    /* the beginning of a PSB */
};

/* At 1000: je 1000, then nops up to a jmp *%rax. */
static uint8_t code[4096];

static int give_code(void *userdata, uint64_t context, uint64_t ip, struct flow_code *ret)
{
	(void)context;
	(void)userdata;
	*ret = (struct flow_code){.bytes = code, .address = 0x1000, .size = sizeof(code)};
	return ip - 0x1000 < sizeof(code) ? 0 : FAULT_UNMAPPED;
}

/* Another one each time. */
static uint64_t change_context(void *userdata, uint64_t ip, uint64_t tsc_lo, uint64_t tsc_hi)
{
	uint64_t *count = userdata;

	(void)ip;
	(void)tsc_lo;
	(void)tsc_hi;
	return ++*count / 64;
}

static size_t put(uint8_t *trace, size_t size, size_t at, const void *bytes, size_t n)
{
	n = MIN_OF(n, size - at);
	memcpy(trace + at, bytes, n);
	return at + n;
}

/* The number of items. */
static uint64_t decode(struct flow_config config)
{
	struct flow_batch batch;
	uint64_t items = 0;
	struct flow *f;

	assert_int_equal(flow_new(&config, &f), 0);
	while (flow_next(f, &batch) == 0)
		items += batch.n_items;
	assert_true(flow_get_stats(f)->bytes_decoded <= flow_get_stats(f)->bytes);
	flow_free(f);
	return items;
}

static void decode_pair(const struct bytes *a, const struct bytes *b, uint32_t model,
			uint8_t *trace, size_t size)
{
	uint64_t count = 0;
	size_t at = put(trace, size, 0, psb, sizeof(psb));
	struct flow_config config = {
		.trace = trace,
		.size = size,
		.mtc_period = 3,
		.max_nonturbo_ratio = 32,
		.tsc_art_num = 266,
		.tsc_art_den = 2,
		.cpu_family = model != 0 ? 6 : 0,
		.cpu_model = model,
		.code = give_code,
		.context = change_context,
		.userdata = &count,
		.marks = true,
		.ticks = true,
	};

	at = put(trace, size, at, "\x02\x23\x71\x00\x10\x00\x00\x00\x00", 9);
	while (at < size) {
		at = put(trace, size, at, a->bytes, a->size);
		at = put(trace, size, at, b->bytes, b->size);
	}
	/* A packet makes a few items, a packet that is a byte too. */
	assert_true(decode(config) <= 64 * (uint64_t)size);
}

/* Whatever a packet makes the decoder look ahead for, that comes late, or never. */
static void flow_any_two_packets_for_ever_ends(void **state)
{
	static const uint32_t models[] = {0, 0x3d, 0x5c, 0x97};
	const size_t size = 192 * 1024;
	uint8_t *trace = malloc(size);

	(void)state;
	assert_non_null(trace);
	memset(code, 0x90, sizeof(code));
	memcpy(code, "\x74\xfe", 2);
	memcpy(code + sizeof(code) - 2, "\xff\xe0", 2);
	for (size_t i = 0; i < ARRAY_SIZE(packets); i++)
		for (size_t j = i; j < ARRAY_SIZE(packets); j++)
			decode_pair(&packets[i], &packets[j], models[(i + j) % ARRAY_SIZE(models)],
				    trace, size);
	free(trace);
}

#define JUMPS (1 << 20)

/* A chain of jumps, each to the next, without a packet: the longest way between two packets. */
static uint8_t *jumps;

static int give_jumps(void *userdata, uint64_t context, uint64_t ip, struct flow_code *ret)
{
	(void)context;
	(void)userdata;
	*ret = (struct flow_code){.bytes = jumps, .address = 0x100000, .size = 2 * JUMPS};
	return ip - 0x100000 < 2 * JUMPS ? 0 : FAULT_UNMAPPED;
}

/* The chain ends with an indirect jump, to its beginning again. */
static void flow_code_without_packets_is_given_up(void **state)
{
	enum { TIPS = 1 << 9 };
	static uint8_t trace[16 + 2 + 9 + 3 * TIPS];
	size_t at = put(trace, sizeof(trace), 0, psb, sizeof(psb));
	struct flow_config config = {.trace = trace,
				     .size = sizeof(trace),
				     .mtc_period = UINT32_MAX,
				     .code = give_jumps};

	(void)state;
	jumps = malloc(2 * JUMPS);
	assert_non_null(jumps);
	for (size_t i = 0; i < JUMPS; i++)
		memcpy(jumps + 2 * i, i + 1 < JUMPS ? "\xeb\x00" : "\xff\xe0", 2);
	at = put(trace, sizeof(trace), at, "\x02\x23\xd1\x00\x00\x10\x00\x00\x00\x00\x00", 11);
	for (size_t i = 0; i < TIPS; i++)
		at = put(trace, sizeof(trace), at, "\x2d\x00\x00", 3);
	assert_true(decode(config) < (uint64_t)TIPS * JUMPS / 4);
	free(jumps);
}

/* As graph.c finds the place of a block. */
static size_t slot_of(uint64_t ip)
{
	uint64_t h = ip * UINT64_C(0xff51afd7ed558ccd);

	return (size_t)(h >> 32 ^ h >> 11);
}

#define RETURNS ((size_t)1 << 30)

static uint8_t *returns;

static int give_returns(void *userdata, uint64_t context, uint64_t ip, struct flow_code *ret)
{
	(void)context;
	(void)userdata;
	*ret = (struct flow_code){.bytes = returns, .address = 0, .size = RETURNS};
	return ip < RETURNS ? 0 : FAULT_UNMAPPED;
}

/* RETURNS bytes of ret, of 2 MiB of memory. */
static void map_returns(void)
{
	const size_t part = 2 << 20;
	int fd = memfd_create("returns", MFD_CLOEXEC);
	uint8_t *bytes;

	assert_true(fd >= 0 && ftruncate(fd, (off_t)part) == 0);
	returns =
		mmap(NULL, RETURNS, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	assert_ptr_not_equal(returns, MAP_FAILED);
	for (size_t at = 0; at < RETURNS; at += part)
		assert_ptr_not_equal(mmap(returns + at, part, PROT_READ | PROT_WRITE,
					  MAP_SHARED | MAP_FIXED, fd, 0),
				     MAP_FAILED);
	bytes = returns;
	memset(bytes, 0xc3, part);
	close(fd);
}

/* Addresses chosen so that the table of blocks has them all in one place. */
static void graph_get_addresses_that_collide_ends(void **state)
{
	const size_t mask = ((size_t)1 << 20) - 1, few = 1 << 12, n = 400000;
	struct graph *g = graph_new(give_returns, NULL, (size_t)256 << 20);
	size_t found = 0;

	(void)state;
	map_returns();
	assert_non_null(g);
	for (uint64_t ip = 0; ip < RETURNS && found < n; ip++) {
		if ((slot_of(ip) & mask) >= few)
			continue;
		found++;
		assert_non_null(graph_get(g, 0, INSN_MODE_64, ip));
	}
	assert_int_equal(found, n);
	graph_free(g);
	munmap(returns, RETURNS);
}

/* A caller that holds a block may look at others. */
static void graph_look_when_full_ends_no_block(void **state)
{
	struct graph *g = graph_new(give_code, NULL, 1);
	const struct graph_block *held, *b;
	union graph_room room;

	(void)state;
	memset(code, 0xc3, sizeof(code));
	assert_non_null(g);
	held = graph_get(g, 0, INSN_MODE_64, 0x1000);
	assert_non_null(held);
	for (uint64_t ip = 0x1001; ip < 0x2000; ip++) {
		b = graph_look(g, 0, INSN_MODE_64, ip, &room);
		assert_ptr_equal(b, &room.block);
		assert_int_equal(b->ip, ip);
	}
	assert_ptr_equal(graph_look(g, 0, INSN_MODE_64, 0x1000, &room), held);
	assert_int_equal(graph_generation(g), 0 + 1);
	graph_free(g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(flow_any_two_packets_for_ever_ends),
		cmocka_unit_test(flow_code_without_packets_is_given_up),
		cmocka_unit_test(graph_get_addresses_that_collide_ends),
		cmocka_unit_test(graph_look_when_full_ends_no_block),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
