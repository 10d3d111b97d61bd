#include "decoder/code/graph.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Two pieces of code that follow one another, cut within an instruction. */
static const uint8_t code[] = {
	0x90,			      /* 1000 nop */
	0x48, 0x89, 0xd8,	      /* 1001 mov */
	0x75, 0xfa,		      /* 1004 jne 1000 */
	0x31, 0xc0,		      /* 1006 xor */
	0xe8, 0x03, 0x00, 0x00, 0x00, /* 1008 call 1010: the cut is at 100a */
	0xc3,			      /* 100d ret */
	0x06,			      /* 100e no instruction */
};

struct user {
	unsigned int asked;
	bool mapped; /* LATE is there now */
};

#define LATE 0x7000u

static int give(void *userdata, uint64_t context, uint64_t ip, struct flow_code *ret)
{
	(void)context;
	((struct user *)userdata)->asked++;
	if (ip >= 0x1000 && ip < 0x100a)
		*ret = (struct flow_code){.bytes = code, .address = 0x1000, .size = 10};
	else if (ip >= 0x100a && ip < 0x100f)
		*ret = (struct flow_code){.bytes = code + 10, .address = 0x100a, .size = 5};
	else if (ip >= LATE && ip < LATE + 10 && ((struct user *)userdata)->mapped)
		*ret = (struct flow_code){.bytes = code, .address = LATE, .size = 10};
	else
		return ip == 0x5000 ? FAULT_ANONYMOUS : FAULT_UNMAPPED;
	return 0;
}

static void graph_get_block_ends_with_its_branch(void **state)
{
	struct user u = {0};
	struct graph *g = graph_new(give, &u, 1 << 22);
	struct graph_block *b = graph_get(g, 0, INSN_MODE_64, 0x1000);

	(void)state;
	assert_int_equal(b->n, 3);
	assert_int_equal(b->class, INSN_COND);
	assert_int_equal(b->last, 0x1004);
	assert_int_equal(b->next, 0x1006);
	assert_int_equal(b->target, 0x1000);
	assert_int_equal(graph_index(b, 0x1000), 0);
	assert_int_equal(graph_index(b, 0x1001), 1);
	assert_int_equal(graph_index(b, 0x1002), -1);
	assert_int_equal(graph_index(b, 0x1004), 2);
	assert_int_equal(graph_index(b, 0x1006), -1);
	assert_int_equal(graph_index(b, 0xfff), -1);
	assert_ptr_equal(graph_get(g, 0, INSN_MODE_64, 0x1000), b);
	assert_int_equal(u.asked, 1);
	graph_free(g);
}

static void graph_get_instruction_across_two_pieces(void **state)
{
	struct user u = {0};
	struct graph *g = graph_new(give, &u, 1 << 22);
	struct graph_block *b = graph_get(g, 0, INSN_MODE_64, 0x1006);

	(void)state;
	assert_int_equal(b->n, 2);
	assert_int_equal(b->class, INSN_CALL);
	assert_int_equal(b->next, 0x100d);
	assert_int_equal(b->target, 0x1010);
	graph_free(g);
}

static void graph_get_pieces_are_asked_for_once_a_context(void **state)
{
	struct user u = {0};
	struct graph *g = graph_new(give, &u, 1 << 22);

	(void)state;
	for (uint64_t ip = 0x1000; ip < 0x100a; ip++) {
		graph_get(g, 0, INSN_MODE_64, ip);
		graph_get(g, 7, INSN_MODE_64, ip);
	}
	assert_int_equal(u.asked, 4);
	assert_ptr_not_equal(graph_get(g, 0, INSN_MODE_64, 0x1000),
			     graph_get(g, 7, INSN_MODE_64, 0x1000));
	graph_free(g);
}

static void graph_get_unreadable_code_is_a_block_with_a_fault(void **state)
{
	struct user u = {0};
	struct graph *g = graph_new(give, &u, 1 << 22);
	struct graph_block *b = graph_get(g, 0, INSN_MODE_64, 0x5000);

	(void)state;
	assert_int_equal(b->fault, FAULT_ANONYMOUS);
	assert_int_equal(b->n, 0);
	assert_int_equal(graph_index(b, 0x5000), -1);
	b = graph_get(g, 0, INSN_MODE_64, 0x100e);
	assert_int_equal(b->fault, FAULT_BAD_INSN);
	assert_int_equal(b->next, 0x100e);
	graph_free(g);
}

static void graph_get_code_that_comes_later_is_no_fault(void **state)
{
	struct user u = {0};
	struct graph *g = graph_new(give, &u, 1 << 22);
	struct graph_block *b = graph_get(g, 0, INSN_MODE_64, LATE), *now;
	union graph_room room;

	(void)state;
	assert_int_equal(b->fault, FAULT_UNMAPPED);
	assert_ptr_equal(graph_get(g, 0, INSN_MODE_64, LATE), b);
	assert_ptr_equal(graph_look(g, 0, INSN_MODE_64, LATE, &room), b);
	u.mapped = true;
	assert_int_equal(graph_look(g, 0, INSN_MODE_64, LATE, &room)->n, 3);
	now = graph_get(g, 0, INSN_MODE_64, LATE);
	assert_int_equal(now->fault, FAULT_NONE);
	assert_int_equal(now->n, 3);
	assert_ptr_equal(graph_get(g, 0, INSN_MODE_64, LATE), now);
	/* The one before stays valid, for its holders. */
	assert_int_equal(b->fault, FAULT_UNMAPPED);
	graph_free(g);
}

/* A jump from one page into the next, and there what is no instruction at the end of that page. */
static const uint8_t two_pages[] = {0x90, 0xeb, 0x01, 0x06, 0x66, 0x66, 0x06};
#define TWO_PAGES 0x8ffeu /* the page ends within the jump */

struct touching {
	uint8_t first[2], second[2];
};

static int give_touching(void *userdata, uint64_t context, uint64_t ip, struct flow_code *ret)
{
	struct touching *t = userdata;

	(void)context;
	if (ip < TWO_PAGES || ip >= TWO_PAGES + sizeof(two_pages))
		return FAULT_UNMAPPED;
	*ret = (struct flow_code){
		.bytes = two_pages, .address = TWO_PAGES, .size = 2, .touched = t->first};
	if (ip >= 0x9000)
		*ret = (struct flow_code){.bytes = two_pages + 2,
					  .address = 0x9000,
					  .size = sizeof(two_pages) - 2,
					  .touched = t->second};
	return 0;
}

static void graph_get_touches_the_pages_that_it_reads(void **state)
{
	struct touching t = {0};
	struct graph *g = graph_new(give_touching, &t, 1 << 22);
	union graph_room room;

	(void)state;
	assert_int_equal(graph_look(g, 0, INSN_MODE_64, 0x9002, &room)->fault, FAULT_BAD_INSN);
	assert_int_equal(t.first[0], 0);
	assert_int_equal(t.second[0], 1);
	t.second[0] = 0;
	assert_int_equal(graph_get(g, 0, INSN_MODE_64, TWO_PAGES)->class, INSN_JUMP);
	assert_int_equal(t.first[0], 1);
	assert_int_equal(t.second[0], 1);
	assert_int_equal(t.first[1] + t.second[1], 0);
	graph_free(g);
}

static int give_nops(void *userdata, uint64_t context, uint64_t ip, struct flow_code *ret)
{
	(void)context;
	(void)ip;
	*ret = (struct flow_code){.bytes = userdata, .size = 65536};
	return ip < 65536 ? 0 : FAULT_UNMAPPED;
}

static void graph_get_more_than_its_memory_begins_anew(void **state)
{
	uint8_t *nops = malloc(65536);
	struct graph *g = graph_new(give_nops, nops, 1 << 20);

	(void)state;
	memset(nops, 0x90, 65536);
	for (uint64_t ip = 0; ip < 60000; ip++) {
		struct graph_block *b = graph_get(g, ip % 3, INSN_MODE_64, ip);

		assert_non_null(b);
		assert_int_equal(b->ip, ip);
		assert_int_equal(b->n, GRAPH_BLOCK_MAX);
		assert_int_equal(b->class, INSN_OTHER);
	}
	assert_true(graph_generation(g) > 2);
	graph_free(g);
	free(nops);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(graph_get_block_ends_with_its_branch),
		cmocka_unit_test(graph_get_instruction_across_two_pieces),
		cmocka_unit_test(graph_get_pieces_are_asked_for_once_a_context),
		cmocka_unit_test(graph_get_touches_the_pages_that_it_reads),
		cmocka_unit_test(graph_get_unreadable_code_is_a_block_with_a_fault),
		cmocka_unit_test(graph_get_code_that_comes_later_is_no_fault),
		cmocka_unit_test(graph_get_more_than_its_memory_begins_anew),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
