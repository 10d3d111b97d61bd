/*
 * The store of nodes: what is folded into one, what it leads to, what is shared by content, and
 * what happens where there is no room for more.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "decoder/hot/nodes.h"
#include "proto/base.h"

#define BASE 0x1000u
#define SIZE 4096u

static uint8_t code[SIZE];

/* Where `code` lies, as the test wants it. */
static struct {
	uint64_t address, size, map_address, map_size;
	size_t first;
	bool changing;
} places[4];
static size_t n_places;

static int give_code(void *userdata, uint64_t context, uint64_t ip, struct flow_code *ret)
{
	(void)context;
	(void)userdata;
	for (size_t i = 0; i < n_places; i++) {
		if (ip - places[i].address >= places[i].size)
			continue;
		*ret = (struct flow_code){.bytes = code + places[i].first,
					  .address = places[i].address,
					  .size = places[i].size,
					  .map_address = places[i].map_address,
					  .map_size = places[i].map_size,
					  .changing = places[i].changing};
		return 0;
	}
	return FAULT_UNMAPPED;
}

static void place(uint64_t address, size_t first, uint64_t size)
{
	places[n_places].address = address;
	places[n_places].first = first;
	places[n_places].size = size;
	places[n_places].map_size = 0;
	places[n_places++].changing = false;
}

struct store {
	struct graph *graph;
	struct nodes *nodes;
};

static struct store make(size_t max_bytes)
{
	struct store s = {.graph = graph_new(give_code, NULL, (size_t)64 << 20)};

	assert_non_null(s.graph);
	s.nodes = nodes_new(s.graph, max_bytes);
	assert_non_null(s.nodes);
	return s;
}

static void done(struct store *s)
{
	nodes_free(s->nodes);
	graph_free(s->graph);
}

/* `code` is BYTES and then returns; it lies at BASE. */
static struct store make_with(const char *bytes, size_t n)
{
	memset(code, 0xc3, sizeof(code));
	memcpy(code, bytes, n);
	n_places = 0;
	place(BASE, 0, sizeof(code));
	return make((size_t)16 << 20);
}

/* The node at IP, compiled; its kind as the hot loop sees it in *RET. */
static uint32_t compile_in(struct store *s, uint64_t context, uint8_t mode, uint64_t ip,
			   uint32_t *ret)
{
	uint32_t number, where;

	assert_int_equal(nodes_at(s->nodes, context, mode, ip, &number, &where), 0);
	assert_int_equal(nodes_compile(s->nodes, number, where), 0);
	*ret = NODE_EDGE_KIND(s->nodes->list[number].self);
	return number;
}

static const struct node_info *compile(struct store *s, uint64_t ip, uint32_t *ret)
{
	return nodes_info(s->nodes, compile_in(s, 0, INSN_MODE_64, ip, ret));
}

/* --- What is in a node --- */

static void nodes_compile_straight_code_ends_at_branch(void **state)
{
	/* nop; nop; je +2 */
	struct store s = make_with("\x90\x90\x74\x02", 4);
	uint32_t kind;
	const struct node_info *info = compile(&s, BASE, &kind);

	(void)state;
	assert_int_equal(kind, NODE_COND);
	assert_int_equal(info->n_parts, 1);
	assert_int_equal(info->insns, 3);
	assert_int_equal(info->parts[0].start, 0);
	assert_int_equal(info->parts[0].last, 2);
	assert_int_equal(info->parts[0].kind, FLOW_COND);
	assert_int_equal(info->next, 4);
	assert_int_equal(info->target, 6);
	assert_int_equal(info->n_direct, 0);
	done(&s);
}

static void nodes_compile_direct_jump_is_folded(void **state)
{
	/* nop; jmp +2; (2 bytes); nop; jmp *rax */
	struct store s = make_with("\x90\xeb\x02\xcc\xcc\x90\xff\xe0", 8);
	uint32_t kind;
	const struct node_info *info = compile(&s, BASE, &kind);

	(void)state;
	assert_int_equal(kind, NODE_JUMP_IND);
	assert_int_equal(info->n_parts, 2);
	assert_int_equal(info->insns, 4);
	assert_int_equal(info->n_direct, 1);
	assert_int_equal(info->parts[0].kind, FLOW_JUMP);
	assert_int_equal(info->parts[0].last, 1);
	assert_int_equal(info->parts[0].insns, 2);
	assert_int_equal(info->parts[1].start, 5);
	assert_int_equal(info->parts[1].insns, 2);
	assert_int_equal(info->parts[1].kind, FLOW_JUMP_IND);
	done(&s);
}

static void nodes_compile_call_is_folded_with_its_return(void **state)
{
	/* call 100; ...; at 100: ret */
	struct store s = make_with("\xe8\xfb\x00\x00\x00\x90", 6);
	uint32_t kind, number = compile_in(&s, 0, INSN_MODE_64, BASE, &kind);
	const struct node *node = &s.nodes->list[number];

	(void)state;
	assert_int_equal(kind, NODE_CALLS);
	assert_int_equal(node->info->kind, NODE_RET);
	assert_int_equal(node->info->n_parts, 2);
	assert_int_equal(node->info->parts[0].kind, FLOW_CALL);
	assert_int_not_equal(node->call, 0);
	assert_int_equal(s.nodes->list[node->call].offset, 5);
	done(&s);
}

static void nodes_compile_second_call_ends_node(void **state)
{
	/* call 10; at 10: call 20; at 20: ret */
	struct store s = make_with("\xe8\x0b\x00\x00\x00", 5);
	const struct node_info *info;
	uint32_t kind;

	(void)state;
	memcpy(code + 0x10, "\xe8\x0b\x00\x00\x00", 5);
	info = compile(&s, BASE, &kind);
	assert_int_equal(kind, NODE_GO);
	assert_int_equal(info->n_parts, 1);
	assert_int_equal(info->next, 0x10);
	done(&s);
}

static void nodes_compile_call_to_next_is_no_call(void **state)
{
	/* call +0; pop; ret */
	struct store s = make_with("\xe8\x00\x00\x00\x00\x58\xc3", 7);
	uint32_t kind, number = compile_in(&s, 0, INSN_MODE_64, BASE, &kind);
	const struct node *node = &s.nodes->list[number];

	(void)state;
	assert_int_equal(kind, NODE_RET);
	assert_int_equal(node->call, 0);
	assert_int_equal(node->info->parts[0].flags, FLOW_ZERO_LENGTH);
	assert_int_equal(node->info->parts[0].kind, FLOW_CALL);
	done(&s);
}

static void nodes_compile_indirect_call_knows_return_node(void **state)
{
	struct store s = make_with("\xff\xd0\x90", 3);
	uint32_t kind, number = compile_in(&s, 0, INSN_MODE_64, BASE, &kind);
	uint32_t behind = s.nodes->list[number].return_node;

	(void)state;
	assert_int_equal(kind, NODE_CALL_IND);
	assert_int_not_equal(behind, 0);
	assert_int_equal(s.nodes->list[behind].offset, 2);
	done(&s);
}

/* --- Limits --- */

static void nodes_compile_many_jumps_are_several_nodes(void **state)
{
	struct store s = make_with("", 0);
	const struct node_info *info;
	uint32_t kind;

	(void)state;
	for (size_t i = 0; i < 2 * NODE_PARTS; i++)
		memcpy(code + 2 * i, "\xeb\x00", 2);
	info = compile(&s, BASE, &kind);
	assert_int_equal(kind, NODE_GO);
	assert_int_equal(info->n_parts, NODE_PARTS - 1);
	assert_int_equal(info->next, 2 * (NODE_PARTS - 1));
	info = compile(&s, BASE + info->next, &kind);
	assert_int_equal(kind, NODE_GO);
	info = compile(&s, BASE + info->next, &kind);
	assert_int_equal(kind, NODE_RET);
	done(&s);
}

static void nodes_compile_long_straight_code_is_several_nodes(void **state)
{
	struct store s = make_with("", 0);
	const struct node_info *info;
	uint32_t kind;

	(void)state;
	memset(code, 0x90, 3000);
	info = compile(&s, BASE, &kind);
	assert_int_equal(kind, NODE_GO);
	assert_in_range(info->insns, GRAPH_BLOCK_MAX, 2 * GRAPH_BLOCK_MAX);
	assert_int_equal(info->insns, info->next);
	assert_int_equal(info->parts[0].kind, NODE_PLAIN);
	done(&s);
}

/* Nothing that the hot loop could go on for ever in. */
static void nodes_compile_circle_stops(void **state)
{
	/* jmp 0; at 10: jmp 20, at 20: jmp 10 */
	struct store s = make_with("\xeb\xfe", 2);
	uint32_t kind;

	(void)state;
	memcpy(code + 0x10, "\xeb\x0e", 2);
	memcpy(code + 0x20, "\xeb\xee", 2);
	compile(&s, BASE, &kind);
	assert_int_equal(kind, NODE_STOP);
	compile(&s, BASE + 0x10, &kind);
	assert_int_equal(kind, NODE_STOP);
	done(&s);
}

static void nodes_compile_circle_of_calls_stops(void **state)
{
	/* call 0 */
	struct store s = make_with("\xe8\xfb\xff\xff\xff", 5);
	uint32_t kind;

	(void)state;
	compile(&s, BASE, &kind);
	assert_int_equal(kind, NODE_STOP);
	done(&s);
}

/* The stepping walk looks for circles, and for that has to see all of the way. */
static void nodes_compile_way_to_stop_stops(void **state)
{
	/* nop; jmp 10; at 10: syscall */
	struct store s = make_with("\x90\xeb\x0d", 3);
	uint32_t kind;

	(void)state;
	memcpy(code + 0x10, "\x0f\x05", 2);
	compile(&s, BASE, &kind);
	assert_int_equal(kind, NODE_STOP);
	compile(&s, BASE + 0x10, &kind);
	assert_int_equal(kind, NODE_STOP);
	done(&s);
}

static void nodes_compile_bad_instruction_stops(void **state)
{
	struct store s = make_with("\x90\x06", 2);
	uint32_t kind;

	(void)state;
	compile(&s, BASE, &kind);
	assert_int_equal(kind, NODE_STOP);
	done(&s);
}

/* --- Ends of the code --- */

static void nodes_compile_branch_out_of_code_stops(void **state)
{
	/* je -10; jmp far away; call from the end */
	struct store s = make_with("\x74\xee\xc3\xe9\x00\x00\x10\x00", 8);
	uint32_t kind;

	(void)state;
	compile(&s, BASE, &kind);
	assert_int_equal(kind, NODE_STOP);
	compile(&s, BASE + 3, &kind);
	assert_int_equal(kind, NODE_STOP);
	done(&s);
}

static void nodes_compile_call_at_end_of_code_stops(void **state)
{
	struct store s = make_with("", 0);
	uint32_t kind;

	(void)state;
	memcpy(code + SIZE - 5, "\xe8\x00\xff\xff\xff", 5);
	compile(&s, BASE + SIZE - 5, &kind);
	assert_int_equal(kind, NODE_STOP);
	memcpy(code + SIZE - 5, "\x90\x90\x90\xff\xd0", 5);
	compile(&s, BASE + SIZE - 4, &kind);
	assert_int_equal(kind, NODE_STOP);
	/* An indirect jump has nothing behind it. */
	memcpy(code + SIZE - 2, "\xff\xe0", 2);
	compile(&s, BASE + SIZE - 2, &kind);
	assert_int_equal(kind, NODE_JUMP_IND);
	done(&s);
}

static void nodes_compile_instruction_across_end_stops(void **state)
{
	struct store s = make_with("", 0);
	uint32_t kind;

	(void)state;
	place(BASE + SIZE, 0, SIZE);
	memcpy(code + SIZE - 2, "\xb8\x01", 2);
	compile(&s, BASE + SIZE - 2, &kind);
	assert_int_equal(kind, NODE_STOP);
	done(&s);
}

static void nodes_at_unmapped_has_none(void **state)
{
	struct store s = make_with("", 0);
	uint32_t number, where;

	(void)state;
	assert_int_equal(nodes_at(s.nodes, 0, INSN_MODE_64, 0x100000, &number, &where), NODES_NONE);
	done(&s);
}

/* Targets of 32-bit branches wrap at 4 GiB, so nodes would not be the same everywhere. */
static void nodes_at_32_bit_above_4g_has_none(void **state)
{
	struct store s = make_with("", 0);
	uint32_t number, where;

	(void)state;
	place(UINT64_C(0x100000000) - 16, 0, 32);
	assert_int_equal(nodes_at(s.nodes, 0, INSN_MODE_64, 0xfffffff0, &number, &where), 0);
	assert_int_equal(nodes_at(s.nodes, 0, INSN_MODE_32, 0xfffffff0, &number, &where),
			 NODES_NONE);
	assert_int_equal(nodes_at(s.nodes, 0, INSN_MODE_32, BASE, &number, &where), 0);
	done(&s);
}

static void nodes_at_code_across_ip_end_has_none(void **state)
{
	struct store s = make_with("", 0);
	uint32_t number, where;

	(void)state;
	s.nodes->ip_end = BASE + SIZE - 1;
	assert_int_equal(nodes_at(s.nodes, 0, INSN_MODE_64, BASE, &number, &where), NODES_NONE);
	s.nodes->ip_end = BASE + SIZE;
	assert_int_equal(nodes_at(s.nodes, 0, INSN_MODE_64, BASE, &number, &where), 0);
	done(&s);
}

/* --- Sharing --- */

static void nodes_at_same_content_is_same_node(void **state)
{
	struct store s = make_with("", 0);
	uint32_t kind, first, second, third;

	(void)state;
	place(0x7f0000001000, 0, SIZE);
	first = compile_in(&s, 0, INSN_MODE_64, BASE + 7, &kind);
	second = compile_in(&s, 0, INSN_MODE_64, 0x7f0000001007, &kind);
	third = compile_in(&s, 5, INSN_MODE_64, BASE + 7, &kind);
	assert_int_equal(first, second);
	assert_int_equal(first, third);
	assert_int_equal(s.nodes->n_places, 3);
	done(&s);
}

static void nodes_at_other_mode_is_other_node(void **state)
{
	struct store s = make_with("", 0);
	uint32_t kind;

	(void)state;
	assert_int_not_equal(compile_in(&s, 0, INSN_MODE_64, BASE, &kind),
			     compile_in(&s, 0, INSN_MODE_32, BASE, &kind));
	done(&s);
}

/* The end of the code decides what may be folded. */
static void nodes_at_other_size_is_other_node(void **state)
{
	struct store s = make_with("", 0);
	uint32_t kind;

	(void)state;
	place(0x100000, 0, SIZE - 1);
	assert_int_not_equal(compile_in(&s, 0, INSN_MODE_64, BASE, &kind),
			     compile_in(&s, 0, INSN_MODE_64, 0x100000, &kind));
	done(&s);
}

static void nodes_at_changing_code_is_other_node(void **state)
{
	struct store s = make_with("", 0);
	uint32_t kind;

	(void)state;
	place(0x100000, 0, SIZE);
	places[1].changing = CODE_SHARED;
	assert_int_not_equal(compile_in(&s, 0, INSN_MODE_64, BASE, &kind),
			     compile_in(&s, 0, INSN_MODE_64, 0x100000, &kind));
	assert_true(s.nodes->changing);
	done(&s);
}

/* Two pieces of one mapping, each at its address. */
static void nodes_at_pieces_of_mapping_are_one_place(void **state)
{
	struct store s = make_with("", 0);
	uint32_t first, second, a, b;

	(void)state;
	places[0].size = 2048;
	places[0].map_address = BASE;
	places[0].map_size = SIZE;
	place(BASE + 2048, 2048, 2048);
	places[1].map_address = BASE;
	places[1].map_size = SIZE;
	assert_int_equal(nodes_at(s.nodes, 0, INSN_MODE_64, BASE + 3000, &first, &a), 0);
	assert_int_equal(nodes_at(s.nodes, 0, INSN_MODE_64, BASE + 30, &second, &b), 0);
	assert_int_equal(a, b);
	assert_int_equal(nodes_place_address(s.nodes, a), BASE);
	assert_int_equal(s.nodes->list[first].offset, 3000);
	done(&s);
}

/* A mapping that cannot be: the piece lies outside. */
static void nodes_at_piece_outside_its_mapping_is_by_itself(void **state)
{
	struct store s = make_with("", 0);
	uint32_t number, where;

	(void)state;
	places[0].map_address = BASE + 1;
	places[0].map_size = SIZE;
	assert_int_equal(nodes_at(s.nodes, 0, INSN_MODE_64, BASE + 30, &number, &where), 0);
	assert_int_equal(nodes_place_address(s.nodes, where), BASE);
	places[0].map_address = BASE;
	places[0].map_size = SIZE - 1;
	assert_int_equal(nodes_at(s.nodes, 1, INSN_MODE_64, BASE + 30, &number, &where), 0);
	assert_int_equal(s.nodes->places[where].size, SIZE);
	done(&s);
}

static void nodes_at_code_beyond_4g_has_none(void **state)
{
	struct store s = make_with("", 0);
	uint32_t number, where;

	(void)state;
	places[0].map_address = BASE;
	places[0].map_size = UINT64_C(1) << 33;
	assert_int_equal(nodes_at(s.nodes, 0, INSN_MODE_64, BASE, &number, &where), NODES_NONE);
	done(&s);
}

/* --- Full --- */

static void nodes_at_full_store_has_old_ones_only(void **state)
{
	uint32_t kind, number, where, first;
	struct store s;
	int r = 0;

	(void)state;
	memset(code, 0xc3, sizeof(code));
	n_places = 0;
	place(BASE, 0, sizeof(code));
	s = make(64 << 10);
	first = compile_in(&s, 0, INSN_MODE_64, BASE, &kind);
	for (uint64_t i = 1; i < SIZE && r == 0; i++)
		r = nodes_at(s.nodes, 0, INSN_MODE_64, BASE + i, &number, &where);
	assert_int_equal(r, NODES_NONE);
	assert_true(nodes_count(s.nodes) <= s.nodes->max);
	assert_int_equal(nodes_at(s.nodes, 0, INSN_MODE_64, BASE, &number, &where), 0);
	assert_int_equal(number, first);
	done(&s);
}

static void nodes_compile_full_store_stops(void **state)
{
	struct store s;
	uint32_t number, where, last = 0;

	(void)state;
	memset(code, 0x74, sizeof(code));
	n_places = 0;
	place(BASE, 0, sizeof(code));
	s = make(64 << 10);
	for (uint64_t i = 0; i < SIZE; i++) {
		if (nodes_at(s.nodes, 0, INSN_MODE_64, BASE + i, &number, &where) != 0)
			break;
		last = number;
	}
	assert_int_equal(nodes_compile(s.nodes, last, where), 0);
	assert_int_equal(NODE_EDGE_KIND(s.nodes->list[last].self), NODE_STOP);
	done(&s);
}

static void nodes_new_without_room_has_none(void **state)
{
	uint32_t number, where;
	struct store s;

	(void)state;
	memset(code, 0xc3, sizeof(code));
	n_places = 0;
	place(BASE, 0, sizeof(code));
	for (size_t bytes = 1; bytes <= 512; bytes *= 2) {
		struct nodes *n;

		s.graph = graph_new(give_code, NULL, 1 << 20);
		n = nodes_new(s.graph, bytes);
		if (n != NULL)
			assert_in_range(nodes_at(n, 0, INSN_MODE_64, BASE, &number, &where), 0,
					NODES_NONE);
		nodes_free(n);
		graph_free(s.graph);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nodes_compile_straight_code_ends_at_branch),
		cmocka_unit_test(nodes_compile_direct_jump_is_folded),
		cmocka_unit_test(nodes_compile_call_is_folded_with_its_return),
		cmocka_unit_test(nodes_compile_second_call_ends_node),
		cmocka_unit_test(nodes_compile_call_to_next_is_no_call),
		cmocka_unit_test(nodes_compile_indirect_call_knows_return_node),
		cmocka_unit_test(nodes_compile_many_jumps_are_several_nodes),
		cmocka_unit_test(nodes_compile_long_straight_code_is_several_nodes),
		cmocka_unit_test(nodes_compile_circle_stops),
		cmocka_unit_test(nodes_compile_circle_of_calls_stops),
		cmocka_unit_test(nodes_compile_way_to_stop_stops),
		cmocka_unit_test(nodes_compile_bad_instruction_stops),
		cmocka_unit_test(nodes_compile_branch_out_of_code_stops),
		cmocka_unit_test(nodes_compile_call_at_end_of_code_stops),
		cmocka_unit_test(nodes_compile_instruction_across_end_stops),
		cmocka_unit_test(nodes_at_unmapped_has_none),
		cmocka_unit_test(nodes_at_32_bit_above_4g_has_none),
		cmocka_unit_test(nodes_at_code_across_ip_end_has_none),
		cmocka_unit_test(nodes_at_same_content_is_same_node),
		cmocka_unit_test(nodes_at_other_mode_is_other_node),
		cmocka_unit_test(nodes_at_other_size_is_other_node),
		cmocka_unit_test(nodes_at_changing_code_is_other_node),
		cmocka_unit_test(nodes_at_pieces_of_mapping_are_one_place),
		cmocka_unit_test(nodes_at_piece_outside_its_mapping_is_by_itself),
		cmocka_unit_test(nodes_at_code_beyond_4g_has_none),
		cmocka_unit_test(nodes_at_full_store_has_old_ones_only),
		cmocka_unit_test(nodes_compile_full_store_stops),
		cmocka_unit_test(nodes_new_without_room_has_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
