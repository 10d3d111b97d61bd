/*
 * The worst that a stranger's trace and code can ask of nodes. The tests count memory, and how
 * often code was asked for and compiled; none of it depends on the clock.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "decoder/flow/flow.h"
#include "decoder/flow/flow_private.h"
#include "decoder/hot/nodes.h"
#include "proto/asan.h"
#include "proto/base.h"
#include "tests/support/flow_look.h"

#define BASE  UINT64_C(0x10000000)
#define BYTES ((size_t)1 << 30)
#define PART  ((size_t)2 << 20)
#define MIB   ((size_t)1 << 20)

/* Anonymous memory of the process; with a sanitizer's shadow it says nothing: 0. */
static size_t resident(void)
{
	unsigned long kib = 0;
	char line[128];
#if !BUILT_WITH_ASAN
	FILE *f = fopen("/proc/self/status", "re");

	assert_non_null(f);
	while (fgets(line, sizeof(line), f) != NULL && sscanf(line, "RssAnon: %lu", &kib) != 1)
		;
	fclose(f);
#else
	(void)line;
#endif
	return (size_t)kib << 10;
}

static uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* --- Code: BYTES of it in PART of memory, over and over --- */

static uint8_t *code;
static uint64_t n_asked;

static void map_code(const char *pattern, size_t n)
{
	int fd = memfd_create("code", MFD_CLOEXEC);

	assert_true(fd >= 0 && ftruncate(fd, (off_t)PART) == 0);
	code = mmap(NULL, BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	assert_ptr_not_equal(code, MAP_FAILED);
	for (size_t at = 0; at < BYTES; at += PART)
		assert_ptr_not_equal(mmap(code + at, PART, PROT_READ | PROT_WRITE,
					  MAP_SHARED | MAP_FIXED, fd, 0),
				     MAP_FAILED);
	close(fd);
	for (size_t at = 0; at + n <= PART; at += n)
		memcpy(code + at, pattern, n);
	n_asked = 0;
}

static void unmap_code(void)
{
	munmap(code, BYTES);
}

static int give_code(void *userdata, uint64_t context, uint64_t ip, struct flow_code *ret)
{
	(void)context;
	(void)userdata;
	n_asked++;
	*ret = (struct flow_code){.bytes = code, .address = BASE, .size = BYTES};
	return ip - BASE < BYTES ? 0 : FAULT_UNMAPPED;
}

/* --- Traces --- */

struct trace {
	uint8_t *bytes;
	size_t n, max;
};

static struct trace begin(size_t max, uint64_t ip)
{
	struct trace t = {malloc(max), 0, max};
	uint8_t enable[7] = {0x71};

	assert_non_null(t.bytes);
	for (size_t i = 0; i < 8; i++)
		memcpy(t.bytes + 2 * i, "\x02\x82", 2);
	memcpy(t.bytes + 16, "\x02\x23", 2);
	memcpy(enable + 1, &ip, 6);
	memcpy(t.bytes + 18, enable, 7);
	t.n = 25;
	return t;
}

static void put(struct trace *t, const void *bytes, size_t n)
{
	assert_true(t->n + n <= t->max);
	memcpy(t->bytes + t->n, bytes, n);
	t->n += n;
}

/* OPCODE with 4 bytes of IP. */
static void put_ip(struct trace *t, uint8_t opcode, uint64_t ip)
{
	uint8_t bytes[5] = {(uint8_t)(opcode | 2u << 5)};

	memcpy(bytes + 1, &ip, 4);
	put(t, bytes, sizeof(bytes));
}

#define TIP 0x0du
#define FUP 0x1du

/* The totals of one decoding. */
struct sums {
	uint64_t steps, items, gaps;
	uint32_t nodes, places;
	size_t memory; /* grown by */
	struct flow_stats stats;
};

static struct sums decode_with(const struct flow_config *config)
{
	struct sums s = {.memory = resident()};
	struct flow_batch batch;
	struct flow *f;

	assert_int_equal(flow_new(config, &f), 0);
	while (flow_next(f, &batch) == 0) {
		for (size_t i = 0; i < batch.n_walks; i++) {
			s.steps += batch.walks[i].n;
			flow_look_count(f, &batch, (uint32_t)i);
		}
		s.items += batch.n_items;
		s.gaps += batch.n_gaps;
	}
	s.nodes = nodes_count(flow_nodes(f));
	s.places = flow_nodes(f)->n_places;
	s.memory = resident() - MIN_OF(s.memory, resident());
	s.stats = *flow_get_stats(f);
	flow_free(f);
	return s;
}

static struct flow_config config_of(const struct trace *t)
{
	return (struct flow_config){.trace = t->bytes,
				    .size = t->n,
				    .mtc_period = UINT32_MAX,
				    .code = give_code,
				    .steps = true,
				    .threads = 1};
}

static struct sums decode(const struct trace *t)
{
	struct flow_config config = config_of(t);

	return decode_with(&config);
}

/* --- Decisions and targets --- */

/* JUMPS conditional ones, each to any other. */
#define JUMPS 8192u

static void put_jumps(void)
{
	uint64_t random = 1;

	for (uint32_t i = 0; i < JUMPS; i++) {
		uint32_t to = (uint32_t)(next_random(&random) % JUMPS);
		int32_t distance = (int32_t)(8 * to) - (int32_t)(8 * i + 8);

		memcpy(code + 8 * i, "\x66\x90\x0f\x84", 4);
		memcpy(code + 8 * i + 4, &distance, 4);
	}
	memcpy(code + 8 * JUMPS, "\xe9", 1);
	memcpy(code + 8 * JUMPS + 1, &(int32_t){-(int32_t)(8 * JUMPS + 5)}, 4);
}

static void put_decisions(struct trace *t, size_t n)
{
	uint64_t random = 1;

	for (size_t i = 0; i < n; i++) {
		uint8_t byte = (uint8_t)(next_random(&random) & 0x7e) | 0x80;

		put(t, &byte, 1);
	}
}

/* Each decision leads to another node, and a stride seldom to the same three. */
static void flow_one_decision_a_node_is_a_step_at_most(void **state)
{
	const size_t n = MIB;
	struct trace t = begin(n + 100, BASE);
	struct sums s;

	(void)state;
	map_code("\x90", 1);
	put_jumps();
	put_decisions(&t, n);
	s = decode(&t);
	assert_int_equal(s.gaps, 0);
	assert_true(s.steps > n && s.steps <= 3 * n);
	assert_true(s.nodes <= JUMPS + 3);
	assert_int_equal(n_asked, 1);
	unmap_code();
	free(t.bytes);
}

/* Decisions that make steps and no items: a batch of items has room for any number of them. */
static void flow_decisions_not_taken_fill_no_batch(void **state)
{
	const size_t n = 20000;
	struct trace t = begin(8 * n + 100, BASE);
	struct flow_config config;

	(void)state;
	map_code("\x90", 1);
	for (size_t i = 0; i < 64; i++)
		memcpy(code + 2 * i, "\x74\x00", 2);
	memcpy(code + 128, "\xe9\x7b\xff\xff\xff", 5);
	for (size_t i = 0; i < n; i++)
		put(&t, "\x02\xa3\x00\x00\x00\x00\x00\x80", 8);
	config = config_of(&t);
	config.steps = false;
	assert_int_equal(decode_with(&config).stats.branches, 47 * n / 64 + 1);
	unmap_code();
	free(t.bytes);
}

/* A chain of nodes that need no decision, with the time of one packet in front of each of them. */
static void flow_long_code_behind_cycs_is_one_time_a_packet(void **state)
{
	const size_t n = 20000;
	struct trace t = begin(6 * n + 100, BASE);

	(void)state;
	map_code("\x90", 1);
	memcpy(code + 3000, "\xff\xe0", 2);
	for (size_t i = 0; i < n; i++) {
		put(&t, "\x03", 1);
		put_ip(&t, TIP, BASE);
	}
	assert_in_range(decode(&t).stats.branches, n, n + 1);
	unmap_code();
	free(t.bytes);
}

/* So, in code that was never met: when there is no room for more nodes it goes on without. */
static void flow_decisions_in_new_code_memory_is_bounded(void **state)
{
	const size_t n = MIB;
	struct trace t = begin(n + 100, BASE);
	struct sums s;

	(void)state;
	/* je, mostly up. */
	map_code("\x74\x00\x74\x04\x74\xf4\x74\x08", 8);
	put_decisions(&t, n);
	s = decode(&t);
	assert_int_equal(s.gaps, 0);
	assert_int_equal(n_asked, 1);
	assert_true(s.memory < FLOW_NODES_BYTES + FLOW_GRAPH_BYTES + 64 * MIB);
	unmap_code();
	free(t.bytes);
}

/* Nothing is met twice: nodes are made until there is no room, and the rest goes without. */
static void flow_targets_all_new_memory_is_bounded(void **state)
{
	const size_t n = 1500000;
	struct trace t = begin(5 * n + 100, BASE);
	struct sums s;

	(void)state;
	map_code("\xff\xe0", 2);
	for (uint64_t i = 0; i < n; i++)
		put_ip(&t, TIP, BASE + (i * UINT64_C(0x9e3779b1) % BYTES & ~UINT64_C(1)));
	s = decode(&t);
	assert_in_range(s.stats.branches, n, n + 1);
	assert_int_equal(n_asked, 1);
	assert_true((uint64_t)s.nodes * sizeof(struct node) < FLOW_NODES_BYTES);
	assert_true(s.memory < FLOW_NODES_BYTES + FLOW_GRAPH_BYTES + 64 * MIB);
	unmap_code();
	free(t.bytes);
}

/* A node that is entered and left at once costs what it is long: a bounded number of nodes, of
 * bounded length, each made once. */
static void flow_long_code_never_executed_memory_is_bounded(void **state)
{
	const size_t n = 4000;
	struct trace t = begin(10 * n + 100, BASE);
	struct sums s;

	(void)state;
	map_code("\x90\x90\x90\x90\x90\x90\x90\x90", 8);
	for (uint64_t i = 0; i < n; i++) {
		/* At once an interrupt, to somewhere else. */
		uint64_t ip = BASE + i * 7919;

		put_ip(&t, FUP, i == 0 ? BASE : BASE + (i - 1) * 7919);
		put_ip(&t, TIP, ip);
	}
	s = decode(&t);
	assert_int_equal(s.gaps, 0);
	assert_int_equal(s.steps, 0);
	assert_true(s.nodes <= 65 * n + 2);
	assert_true(s.memory < FLOW_NODES_BYTES + FLOW_GRAPH_BYTES + 64 * MIB);
	unmap_code();
	free(t.bytes);
}

/* --- Hash table --- */

/* As nodes.c finds the place of a node. */
static size_t slot_of(uint32_t code_number, uint32_t offset)
{
	uint64_t h = ((uint64_t)code_number << 32 | offset) * UINT64_C(0x9e3779b97f4a7c15);

	return (size_t)(h >> 32 ^ h >> 13);
}

/* Offsets chosen so that the table has them all in one place. */
static void nodes_at_offsets_that_collide_ends(void **state)
{
	const size_t mask = MIB - 1, few = 1 << 12, n = 200000;
	struct graph *g;
	struct nodes *nodes;
	size_t found = 0, made = 0;

	(void)state;
	map_code("\xc3", 1);
	g = graph_new(give_code, NULL, 64 * MIB);
	assert_non_null(g);
	nodes = nodes_new(g, 256 * MIB);
	assert_non_null(nodes);
	for (uint32_t at = 0; at < BYTES && found < n; at++) {
		uint32_t number, place;
		int r;

		if ((slot_of(0, at) & mask) >= few)
			continue;
		found++;
		r = nodes_at(nodes, 0, INSN_MODE_64, BASE + at, &number, &place);
		assert_true(r == 0 || r == NODES_NONE);
		made += r == 0;
	}
	assert_int_equal(found, n);
	assert_true(made > few && made < n);
	nodes_free(nodes);
	graph_free(g);
	unmap_code();
}

/* --- Many images --- */

#define IMAGES	   10000u
#define IMAGE_SIZE 4096u

static int give_image(void *userdata, uint64_t context, uint64_t ip, struct flow_code *ret)
{
	uint64_t i = (ip - BASE) / IMAGE_SIZE;

	(void)context;
	(void)userdata;
	n_asked++;
	/* Bytes of their own, which may be equal. */
	*ret = (struct flow_code){.bytes = code + i * IMAGE_SIZE,
				  .address = BASE + i * IMAGE_SIZE,
				  .size = IMAGE_SIZE,
				  .map_address = BASE + i * IMAGE_SIZE,
				  .map_size = IMAGE_SIZE};
	return i < IMAGES ? 0 : FAULT_UNMAPPED;
}

static void flow_many_images_are_asked_for_once(void **state)
{
	const size_t rounds = 20;
	struct trace t = begin(5 * rounds * IMAGES + 100, BASE);
	struct flow_config config;
	struct sums s;

	(void)state;
	map_code("\xff\xe0", 2);
	for (size_t i = 0; i < rounds * IMAGES; i++)
		put_ip(&t, TIP, BASE + i * 7919 % IMAGES * IMAGE_SIZE);
	config = config_of(&t);
	config.code = give_image;
	s = decode_with(&config);
	assert_in_range(s.stats.branches, rounds * IMAGES, rounds * IMAGES + 1);
	assert_int_equal(s.places, IMAGES);
	assert_int_equal(n_asked, IMAGES);
	assert_true(s.nodes <= IMAGES + 1);
	unmap_code();
	free(t.bytes);
}

/* More places than are kept: the rest goes without nodes. */
static void nodes_at_too_many_places_has_none(void **state)
{
	const uint64_t n = 300000;
	uint32_t number, place;
	struct graph *g;
	struct nodes *nodes;
	uint64_t made = 0;

	(void)state;
	map_code("\xc3", 1);
	g = graph_new(give_code, NULL, 64 * MIB);
	nodes = nodes_new(g, 256 * MIB);
	assert_non_null(nodes);
	for (uint64_t context = 0; context < n; context++)
		made += nodes_at(nodes, context, INSN_MODE_64, BASE, &number, &place) == 0;
	assert_in_range(made, 1, n - 1);
	assert_int_equal(nodes->n_places, made);
	/* One content, and one node. */
	assert_int_equal(nodes_count(nodes), 2);
	nodes_free(nodes);
	graph_free(g);
	unmap_code();
}

/* --- Many contexts --- */

static uint64_t n_contexts, first_context;

static uint64_t next_context(void *userdata, uint64_t ip, uint64_t tsc_lo, uint64_t tsc_hi)
{
	uint64_t *count = userdata;

	(void)ip;
	(void)tsc_lo;
	(void)tsc_hi;
	return first_context + ++*count % n_contexts;
}

/* Enabled, one target, off: each time in another address space. */
static struct sums decode_contexts(size_t times)
{
	struct trace t = begin(times * 11 + 100, BASE);
	struct flow_config config;
	uint64_t count = 0;
	struct sums s;

	for (size_t i = 0; i < times; i++) {
		put_ip(&t, TIP, BASE + 16 * (i % 64));
		put(&t, "\x01", 1);
		put_ip(&t, 0x11, BASE + 8 + 16 * (i % 64));
	}
	config = config_of(&t);
	config.context = next_context;
	config.userdata = &count;
	n_asked = 0;
	s = decode_with(&config);
	assert_int_equal(s.gaps, 0);
	/* Enabled, a target, off. */
	assert_in_range(s.stats.branches, 3 * times, 3 * times + 3);
	free(t.bytes);
	return s;
}

static void flow_contexts_in_turn_share_code_and_nodes(void **state)
{
	struct sums s;

	(void)state;
	map_code("\xff\xe0", 2);
	n_contexts = 50;
	first_context = 0;
	s = decode_contexts(20000);
	assert_int_equal(n_asked, n_contexts);
	assert_true(s.nodes < 200);
	/* Numbers that targets cannot be told apart by. */
	first_context = UINT64_MAX / 2;
	s = decode_contexts(20000);
	assert_int_equal(n_asked, n_contexts);
	assert_true(s.nodes < 200);
	unmap_code();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(flow_one_decision_a_node_is_a_step_at_most),
		cmocka_unit_test(flow_decisions_not_taken_fill_no_batch),
		cmocka_unit_test(flow_long_code_behind_cycs_is_one_time_a_packet),
		cmocka_unit_test(flow_decisions_in_new_code_memory_is_bounded),
		cmocka_unit_test(flow_targets_all_new_memory_is_bounded),
		cmocka_unit_test(flow_long_code_never_executed_memory_is_bounded),
		cmocka_unit_test(nodes_at_offsets_that_collide_ends),
		cmocka_unit_test(flow_many_images_are_asked_for_once),
		cmocka_unit_test(nodes_at_too_many_places_has_none),
		cmocka_unit_test(flow_contexts_in_turn_share_code_and_nodes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
