/*
 * The hot loop by itself: which steps it makes of which packets, and in front of what it stops.
 * tests/oracle/nodes_diff shows that all of it together is what the stepping walk does.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "decoder/hot/node_walk.h"
#include "decoder/packet/event_read.h"
#include "proto/base.h"

#define BASE   0x1000u
#define OTHER  0x9000u
#define MARGIN 16u
#define STEPS  64u
#define POINTS 16u

/* At 0: je 10; 2: je 20; 4: ret. At 10: je 0; 12: jmp *rax. At 20: call 30; 25: ret. At 30: ret.
 * At 40: call *rax; 42: nop, ret. At 50: jumps to 60 and on to 64: je 50. At 70: syscall. */
static uint8_t code[0x80];

static int give_code(void *userdata, uint64_t context, uint64_t ip, struct flow_code *ret)
{
	uint64_t base = ip >= OTHER ? OTHER : BASE;

	(void)context;
	(void)userdata;
	*ret = (struct flow_code){.bytes = code, .address = base, .size = sizeof(code)};
	/* Two contents. */
	if (base == OTHER)
		ret->size--;
	return ip - base < ret->size ? 0 : FAULT_UNMAPPED;
}

struct fixture {
	struct graph *graph;
	struct nodes *nodes;
	struct retstack returns;
	struct node_target targets[NODE_TARGETS];
	uint32_t steps[STEPS + 1];
	struct node_point points[POINTS + 1];
	uint8_t trace[256];
	struct node_walk walk;
};

static struct fixture fixture;

static void put_code(size_t at, const char *bytes, size_t n)
{
	memcpy(code + at, bytes, n);
}

static uint32_t node_at(uint64_t ip)
{
	uint32_t number, place;

	assert_int_equal(nodes_at(fixture.nodes, 0, INSN_MODE_64, ip, &number, &place), 0);
	return number;
}

static int set_up(void **state)
{
	struct fixture *f = &fixture;

	(void)state;
	memset(f, 0, sizeof(*f));
	memset(code, 0x90, sizeof(code));
	put_code(0x00, "\x74\x0e\x74\x1c\xc3", 5);
	put_code(0x10, "\x74\xee\xff\xe0", 4);
	put_code(0x20, "\xe8\x0b\x00\x00\x00\xc3", 6);
	put_code(0x30, "\xc3", 1);
	put_code(0x40, "\xff\xd0\x90\xc3", 4);
	put_code(0x50, "\xeb\x0e", 2);
	put_code(0x60, "\xeb\x02", 2);
	put_code(0x64, "\x74\xea", 2);
	put_code(0x70, "\x0f\x05", 2);
	f->graph = graph_new(give_code, NULL, 1 << 20);
	assert_non_null(f->graph);
	f->nodes = nodes_new(f->graph, 1 << 20);
	assert_non_null(f->nodes);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	nodes_free(fixture.nodes);
	graph_free(fixture.graph);
	return 0;
}

/* Begins a test: the walk is at IP, in front of the SIZE bytes of TRACE. */
static struct node_walk *prepare(uint64_t ip, const char *trace, size_t size)
{
	struct fixture *f = &fixture;
	uint32_t number, place;

	memcpy(f->trace, trace, size);
	assert_int_equal(nodes_at(f->nodes, 0, INSN_MODE_64, ip, &number, &place), 0);
	f->walk = (struct node_walk){.nodes = f->nodes,
				     .targets = f->targets,
				     .tag = 1,
				     .trace = f->trace,
				     .pos = f->trace,
				     .chain = f->trace,
				     .limit = f->trace + size,
				     .ip_end = UINT64_C(1) << 47,
				     .skip_time = true,
				     .compile = true,
				     .returns = &f->returns,
				     .rule = RETSTACK_ALL,
				     .edge = f->nodes->list[number].self,
				     .place = place,
				     .timed = 2,
				     .steps = f->steps,
				     .max_steps = STEPS,
				     .points = f->points,
				     .max_points = POINTS};
	return &f->walk;
}

/* The walk ended in front of the node at IP, behind USED bytes, with LEFT decisions in hand. */
static void expect(uint64_t ip, size_t used, uint32_t left)
{
	const struct node_walk *w = &fixture.walk;

	assert_int_equal(NODE_EDGE_NUMBER(w->edge), node_at(ip));
	assert_int_equal(w->pos - w->trace, used);
	assert_int_equal(w->n_bits, left);
}

static void walk(uint64_t ip, const char *trace, size_t size)
{
	assert_int_equal(node_walk(prepare(ip, trace, size)), 0);
}

/* Step I is the node at IP, gone on by CODE. */
static void expect_step(size_t i, uint64_t ip, uint32_t step_code)
{
	assert_true(i < fixture.walk.n_steps);
	assert_int_equal(fixture.steps[i] & 15u, step_code);
	assert_int_equal(node_of_step(fixture.steps[i]), node_at(ip));
}

/* --- Decisions --- */

static void node_walk_one_decision_is_one_step(void **state)
{
	(void)state;
	walk(BASE, "\x06", 1); /* ! */
	expect(BASE + 0x10, 1, 0);
	assert_int_equal(fixture.walk.n_steps, 1);
	expect_step(0, BASE, 3);
	assert_int_equal(fixture.walk.packets, 1);
}

static void node_walk_three_decisions_are_one_step(void **state)
{
	(void)state;
	walk(BASE, "\x1c", 1); /* !!. */
	expect(BASE + 2, 1, 0);
	assert_int_equal(fixture.walk.n_steps, 1);
	expect_step(0, BASE, 8 | 6);
	/* Again, over the link. */
	walk(BASE, "\x1c", 1);
	expect(BASE + 2, 1, 0);
	expect_step(0, BASE, 8 | 6);
}

/* Two decisions lead to what needs a target: the third is not used. */
static void node_walk_stride_ends_at_other_branch(void **state)
{
	(void)state;
	walk(BASE, "\x1a", 1); /* !.! */
	expect(BASE + 0x12, 1, 1);
	assert_int_equal(fixture.walk.n_steps, 1);
	expect_step(0, BASE, 4 | 2);
}

static void node_walk_long_packet_is_decisions(void **state)
{
	(void)state;
	walk(BASE, "\x02\xa3\x3f\x00\x00\x00\x00\x00", 8); /* !!!!! */
	expect(BASE + 0x10, 8, 0);
	assert_int_equal(fixture.walk.n_steps, 3);
	expect_step(0, BASE, 8 | 7);
}

static void node_walk_long_packet_without_decisions_stops(void **state)
{
	(void)state;
	walk(BASE, "\x02\xa3\x01\x00\x00\x00\x00\x00", 8);
	expect(BASE, 0, 0);
	walk(BASE, "\x02\xa3\x00\x00\x00\x00\x00\x00", 8);
	expect(BASE, 0, 0);
}

static void node_walk_nothing_behind_limit_is_read(void **state)
{
	struct node_walk *w = prepare(BASE, "\x06\x06\x06\x06", 4);

	(void)state;
	w->limit = w->trace + 2;
	assert_int_equal(node_walk(w), 0);
	expect(BASE, 2, 0);
	assert_int_equal(w->packets, 2);
}

static void node_walk_ends_when_there_is_no_room(void **state)
{
	struct node_walk *w = prepare(BASE, "\x06\x00\x06\x00\x06\x00\x06", 7);

	(void)state;
	w->max_steps = 2;
	assert_int_equal(node_walk(w), 0);
	assert_int_equal(w->n_steps, 2);
	expect(BASE, 3, 0);
}

static void node_walk_direct_jumps_wait_for_packet(void **state)
{
	(void)state;
	/* Their node ends with a conditional branch. */
	walk(BASE + 0x50, "\x02\x23", 2);
	expect(BASE + 0x50, 0, 0);
	assert_int_equal(fixture.walk.n_steps, 0);
	walk(BASE + 0x50, "\x06", 1);
	expect(BASE + 0x50, 1, 0);
	assert_int_equal(fixture.walk.n_steps, 1);
}

static void node_walk_syscall_stops(void **state)
{
	(void)state;
	walk(BASE + 0x70, "\x06", 1);
	expect(BASE + 0x70, 0, 0);
	assert_int_equal(fixture.walk.n_steps, 0);
}

/* --- Targets --- */

static void node_walk_target_is_taken(void **state)
{
	(void)state;
	walk(BASE + 0x12, "\x2d\x40\x10", 3);
	expect(BASE + 0x40, 3, 0);
	expect_step(0, BASE + 0x12, NODE_STEP_TARGET);
	assert_int_equal(fixture.walk.last_ip, 0x1040);
}

static void node_walk_target_updates_as_ip_bytes_say(void **state)
{
	struct node_walk *w = prepare(BASE + 0x12,
				      "\x2d\x12\x10\x6d\x12\x10\x00\x00\x00\x00\x4d\x12"
				      "\x10\x00\x00\xcd\x40\x10\x00\x00\x00\x00\x00"
				      "\x00",
				      24);

	(void)state;
	w->last_ip = 0;
	assert_int_equal(node_walk(w), 0);
	expect(BASE + 0x40, 24, 0);
	assert_int_equal(w->n_steps, 4);
}

static void node_walk_target_without_ip_stops(void **state)
{
	(void)state;
	walk(BASE + 0x12, "\x0d", 1);
	expect(BASE + 0x12, 0, 0);
	/* IPBytes 5 and 7 are none. */
	walk(BASE + 0x12, "\xad\x40\x10\x00", 4);
	expect(BASE + 0x12, 0, 0);
	walk(BASE + 0x12, "\xed\x40\x10\x00", 4);
	expect(BASE + 0x12, 0, 0);
	assert_int_equal(fixture.walk.n_steps, 0);
}

static void node_walk_target_that_is_not_mapped_stops(void **state)
{
	(void)state;
	walk(BASE + 0x12, "\x4d\x00\x00\x11\x11", 5);
	expect(BASE + 0x12, 0, 0);
	walk(BASE + 0x12, "\xcd\x00\x00\x00\x00\x00\x00\x00\x80", 9);
	expect(BASE + 0x12, 0, 0);
	assert_int_equal(fixture.walk.n_steps, 0);
}

static void node_walk_target_beyond_end_stops(void **state)
{
	struct node_walk *w = prepare(BASE + 0x12, "\x2d\x40\x10", 3);

	(void)state;
	w->ip_end = 0x1040;
	assert_int_equal(node_walk(w), 0);
	expect(BASE + 0x12, 0, 0);
}

static void node_walk_other_content_is_noted(void **state)
{
	struct node_walk *w = prepare(BASE + 0x12, "\x2d\x12\x90\x2d\x40\x90", 6);
	uint32_t number, place;

	(void)state;
	assert_int_equal(node_walk(w), 0);
	assert_int_equal(nodes_at(fixture.nodes, 0, INSN_MODE_64, OTHER, &number, &place), 0);
	assert_int_equal(w->n_steps, 3);
	assert_int_equal(w->steps[1], place << NODE_STEP_BITS | NODE_STEP_PLACE);
	assert_int_equal(w->place, place);
	expect(OTHER + 0x40, 6, 0);
}

/* A node that was met stays known; what it needs is another's: without leave nothing is made. */
static void node_walk_without_leave_makes_nothing(void **state)
{
	struct node_walk *w = prepare(BASE + 0x12, "\x2d\x40\x10", 3);

	(void)state;
	w->compile = false;
	assert_int_equal(node_walk(w), 0);
	assert_int_equal(w->n_steps, 0);
	expect(BASE + 0x12, 0, 0);
}

/* The TIP stands behind the TNT that goes on behind its branch. */
static void node_walk_deferred_target_is_taken(void **state)
{
	(void)state;
	walk(BASE, "\x36\x2d\x00\x10", 4); /* !.!! */
	expect(BASE, 4, 0);
	assert_int_equal(fixture.walk.n_steps, 4);
	expect_step(0, BASE, 4 | 2);
	expect_step(1, BASE + 0x12, NODE_STEP_TARGET);
}

/* There is another TNT between: that is not how processors defer. */
static void node_walk_target_behind_two_packets_stops(void **state)
{
	(void)state;
	walk(BASE, "\x0c\x0e\x0e\x2d\x00\x10", 6); /* !. !! !! */
	assert_int_equal(fixture.walk.n_steps, 1);
	assert_true(fixture.walk.n_bits > 0);
	assert_int_equal(NODE_EDGE_NUMBER(fixture.walk.edge), node_at(BASE + 0x12));
}

/* --- Calls --- */

static void node_walk_compressed_return_goes_back(void **state)
{
	(void)state;
	walk(BASE + 0x40, "\x2d\x30\x10\x06", 4);
	expect(BASE + 0x42, 4, 0);
	expect_step(1, BASE + 0x30, 3);
	assert_true(retstack_is_empty(&fixture.returns));
	assert_int_equal(fixture.walk.n_returns, 1);
	assert_int_equal(fixture.walk.n_compressed, 1);
}

static void node_walk_folded_call_is_returned_from(void **state)
{
	(void)state;
	walk(BASE + 0x20, "\x06", 1);
	expect(BASE + 0x25, 1, 0);
	expect_step(0, BASE + 0x20, 3);
}

static void node_walk_return_with_target_pops(void **state)
{
	(void)state;
	walk(BASE + 0x40, "\x2d\x30\x10\x2d\x10\x10", 6);
	expect(BASE + 0x10, 6, 0);
	assert_true(retstack_is_empty(&fixture.returns));
	assert_int_equal(fixture.walk.n_compressed, 0);
}

static void node_walk_return_with_target_pops_not_for_libipt(void **state)
{
	struct node_walk *w = prepare(BASE + 0x40, "\x2d\x30\x10\x2d\x10\x10", 6);

	(void)state;
	w->rule = RETSTACK_COMPRESSED;
	assert_int_equal(node_walk(w), 0);
	assert_false(retstack_is_empty(&fixture.returns));
}

/* The return is not compressed although the stack is not empty: there the rules differ. */
static void node_walk_return_with_target_stops_where_rules_differ(void **state)
{
	struct node_walk *w = prepare(BASE + 0x40, "\x2d\x30\x10\x2d\x10\x10", 6);

	(void)state;
	w->rule = RETSTACK_ASK;
	assert_int_equal(node_walk(w), 0);
	expect(BASE + 0x30, 3, 0);
	assert_false(retstack_is_empty(&fixture.returns));
	assert_int_equal(w->n_returns, 0);
	/* With an empty stack they do not, unless they did before. */
	w = prepare(BASE + 0x30, "\x2d\x10\x10", 3);
	retstack_clear(&fixture.returns);
	w->rule = RETSTACK_ASK;
	assert_int_equal(node_walk(w), 0);
	assert_int_equal(w->n_returns, 1);
	w = prepare(BASE + 0x30, "\x2d\x10\x10", 3);
	w->rule = RETSTACK_ASK;
	retstack_clear(&fixture.returns);
	w->parted = true;
	assert_int_equal(node_walk(w), 0);
	assert_int_equal(w->n_returns, 0);
}

static void node_walk_return_not_taken_stops(void **state)
{
	(void)state;
	walk(BASE + 0x40, "\x2d\x30\x10\x04", 4);
	expect(BASE + 0x30, 4, 1);
	assert_int_equal(fixture.walk.n_steps, 1);
	walk(BASE + 0x20, "\x04", 1);
	expect(BASE + 0x20, 1, 1);
	assert_int_equal(fixture.walk.n_steps, 0);
}

static void node_walk_return_without_call_stops(void **state)
{
	(void)state;
	walk(BASE + 0x30, "\x06", 1);
	expect(BASE + 0x30, 1, 1);
	assert_int_equal(fixture.walk.n_steps, 0);
}

static void node_walk_return_to_address_finds_node(void **state)
{
	(void)state;
	retstack_push(&fixture.returns, OTHER + 0x10);
	walk(BASE + 0x30, "\x06", 1);
	expect(OTHER + 0x10, 1, 0);
	assert_int_equal(fixture.walk.n_steps, 2);
}

static void node_walk_65th_call_drops_the_oldest(void **state)
{
	char trace[3 * 70];
	struct node_walk *w;

	(void)state;
	for (size_t i = 0; i < sizeof(trace); i += 3)
		memcpy(trace + i, "\x2d\x40\x10", 3);
	w = prepare(BASE + 0x40, trace, sizeof(trace));
	assert_int_equal(node_walk(w), 0);
	w = prepare(BASE + 0x40, trace, 3 * 6);
	assert_int_equal(node_walk(w), 0);
	assert_int_equal(fixture.returns.top - fixture.returns.bottom, PT_RET_STACK);
}

/* --- Time, and other packets --- */

static void node_walk_time_is_noted_where_it_changes(void **state)
{
	const struct node_walk *w = &fixture.walk;

	(void)state;
	walk(BASE, "\x06\x06\x59\x01\x06\x00\x06", 7);
	assert_int_equal(w->n_points, 2);
	assert_int_equal(w->points[0].offset, 0);
	assert_int_equal(w->points[1].offset, 4);
	assert_int_equal(w->points[1].step, 2);
	assert_int_equal(w->packets, 6);
}

/* A CYC says something of the target behind it that does not hold for the next one. */
static void node_walk_cyc_before_target_is_noted_twice(void **state)
{
	const struct node_walk *w = &fixture.walk;

	(void)state;
	walk(BASE + 0x12, "\x2d\x12\x10\x2d\x12\x10\x0b\x2d\x12\x10\x2d\x12\x10\x2d\x12\x10", 16);
	assert_int_equal(w->n_points, 4);
	assert_int_equal(w->points[0].offset, 0);
	assert_int_equal(w->points[1].offset, 3); /* there may be one in front of the walk */
	assert_int_equal(w->points[2].offset, 7);
	assert_int_equal(w->points[3].offset, 10);
}

static void node_walk_tsc_is_kept(void **state)
{
	(void)state;
	walk(BASE, "\x19\x05\x00\x00\x00\x00\x00\x00\x06\x19\x07\x00\x00\x00\x00\x00\x00\x06", 18);
	assert_int_equal(fixture.walk.tsc_first, 5);
	assert_int_equal(fixture.walk.tsc_last, 7);
	assert_int_equal(fixture.walk.n_steps, 2);
}

static void node_walk_time_is_not_passed_without_leave(void **state)
{
	struct node_walk *w = prepare(BASE, "\x59\x01\x06", 3);

	(void)state;
	w->skip_time = false;
	assert_int_equal(node_walk(w), 0);
	expect(BASE, 0, 0);
}

static void node_walk_many_times_end_it(void **state)
{
	char trace[3 * 40];
	struct node_walk *w;

	(void)state;
	for (size_t i = 0; i < sizeof(trace); i += 3)
		memcpy(trace + i, "\x59\x01\x06", 3);
	w = prepare(BASE, trace, sizeof(trace));
	assert_int_equal(node_walk(w), 0);
	assert_in_range(w->n_points, POINTS - 1, POINTS + 1);
	assert_true(w->pos < w->limit);
}

static void node_walk_any_other_packet_stops(void **state)
{
	static const char others[][5] = {"\x02\x82\x02\x82",
					 "\x02\xf3",
					 "\x99\x01",
					 "\x71\x00\x10",
					 "\x01",
					 "\x3d\x00\x10",
					 "\x02\x43\x00",
					 "\x02\x03\x10\x00",
					 "\x02\x12\x00",
					 "\x02\xc8\x10",
					 "\xff\xff",
					 "\x02\x23",
					 "\x02\x62",
					 "\xd9\x00"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
		char trace[8] = {0x06};

		memcpy(trace + 1, others[i], 4);
		walk(BASE, trace, sizeof(trace));
		if ((others[i][0] & 3) == 3) /* a CYC, a long one */
			continue;
		expect(BASE + 0x10, 1, 0);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(node_walk_one_decision_is_one_step),
		TEST(node_walk_three_decisions_are_one_step),
		TEST(node_walk_stride_ends_at_other_branch),
		TEST(node_walk_long_packet_is_decisions),
		TEST(node_walk_long_packet_without_decisions_stops),
		TEST(node_walk_nothing_behind_limit_is_read),
		TEST(node_walk_ends_when_there_is_no_room),
		TEST(node_walk_direct_jumps_wait_for_packet),
		TEST(node_walk_syscall_stops),
		TEST(node_walk_target_is_taken),
		TEST(node_walk_target_updates_as_ip_bytes_say),
		TEST(node_walk_target_without_ip_stops),
		TEST(node_walk_target_that_is_not_mapped_stops),
		TEST(node_walk_target_beyond_end_stops),
		TEST(node_walk_other_content_is_noted),
		TEST(node_walk_without_leave_makes_nothing),
		TEST(node_walk_deferred_target_is_taken),
		TEST(node_walk_target_behind_two_packets_stops),
		TEST(node_walk_compressed_return_goes_back),
		TEST(node_walk_folded_call_is_returned_from),
		TEST(node_walk_return_with_target_pops),
		TEST(node_walk_return_with_target_pops_not_for_libipt),
		TEST(node_walk_return_with_target_stops_where_rules_differ),
		TEST(node_walk_return_not_taken_stops),
		TEST(node_walk_return_without_call_stops),
		TEST(node_walk_return_to_address_finds_node),
		TEST(node_walk_65th_call_drops_the_oldest),
		TEST(node_walk_time_is_noted_where_it_changes),
		TEST(node_walk_cyc_before_target_is_noted_twice),
		TEST(node_walk_tsc_is_kept),
		TEST(node_walk_time_is_not_passed_without_leave),
		TEST(node_walk_many_times_end_it),
		TEST(node_walk_any_other_packet_stops),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
