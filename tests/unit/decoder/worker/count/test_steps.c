#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "decoder/worker/count/steps.h"

#define EDGE(number)	   ((uint64_t)(number) << 5)
#define STEP(number, code) ((uint32_t)(number) << NODE_STEP_BITS | (code))

/* Room for the parts of an info. */
struct made_info {
	_Alignas(struct node_info)
		uint8_t bytes[sizeof(struct node_info) + NODE_PARTS * sizeof(struct node_part)];
};

enum { CALLER = 1, LEAF, LONG, REST, JUMPER, N_NODES };

struct fixture {
	struct made_info infos[N_NODES];
	struct node list[N_NODES];
	struct node_place places[2];
	struct nodes nodes;
};

static struct node_info *add(struct fixture *f, uint32_t number, enum node_kind kind,
			     uint32_t offset)
{
	struct node_info *info = (struct node_info *)(void *)f->infos[number].bytes;

	*info = (struct node_info){.kind = (uint8_t)kind};
	f->list[number] = (struct node){.self = (uint64_t)number << 5 | (uint64_t)kind << 2,
					.info = info,
					.offset = offset};
	return info;
}

static void add_part(struct node_info *info, uint32_t start, uint32_t last, uint8_t kind)
{
	info->parts[info->n_parts++] =
		(struct node_part){.start = start, .last = last, .insns = 3, .kind = kind};
	info->insns += 3;
}

/* CALLER: 10 call 40; 40 jne 60, LEAF behind it at 46. LONG at 60: jmp 80 and no more: REST. */
static void set_up(struct fixture *f)
{
	struct node_info *info;

	*f = (struct fixture){.nodes = {.list = f->list, .places = f->places, .n = N_NODES}};
	f->places[1].address = 0x1000;
	info = add(f, CALLER, NODE_COND, 0x10);
	add_part(info, 0x10, 0x18, FLOW_CALL);
	add_part(info, 0x40, 0x44, FLOW_COND);
	info->target = 0x60;
	info->next = 0x46;
	f->list[CALLER].link[0] = EDGE(LEAF);
	f->list[CALLER].link[1] = EDGE(LONG);
	info = add(f, LEAF, NODE_COND, 0x46);
	add_part(info, 0x46, 0x48, FLOW_COND);
	info->target = 0x10;
	info->next = 0x4a;
	f->list[LEAF].link[0] = EDGE(JUMPER);
	f->list[LEAF].link[1] = EDGE(CALLER);
	info = add(f, LONG, NODE_GO, 0x60);
	add_part(info, 0x60, 0x64, FLOW_JUMP);
	add_part(info, 0x80, 0x82, NODE_PLAIN);
	info->next = 0x84;
	f->list[LONG].link[0] = EDGE(REST);
	info = add(f, REST, NODE_RET, 0x84);
	add_part(info, 0x84, 0x85, FLOW_RET);
	info = add(f, JUMPER, NODE_JUMP_IND, 0x4a);
	add_part(info, 0x4a, 0x4c, FLOW_JUMP_IND);
}

static void assert_piece(const struct steps_piece *p, uint32_t start, uint32_t last, uint32_t to,
			 uint8_t kind, uint8_t decided, bool direct)
{
	assert_int_equal(p->start, start);
	assert_int_equal(p->last, last);
	assert_int_equal(p->to, to);
	assert_int_equal(p->insns, 3);
	assert_int_equal(p->kind, kind);
	assert_int_equal(p->decided, decided);
	assert_int_equal(p->direct, direct);
	assert_false(p->elsewhere);
}

static void steps_pieces_of_three_decisions_follows_them(void **state)
{
	struct steps_piece p[STEPS_MAX_PIECES];
	struct fixture f;

	(void)state;
	set_up(&f);
	/* Not taken, taken, not taken. */
	assert_int_equal(steps_pieces(&f.nodes, STEP(CALLER, 8 | 2), p), 5);
	assert_piece(&p[0], 0x10, 0x18, 0x40, FLOW_CALL, 0, true);
	assert_piece(&p[1], 0x40, 0x44, 0x46, STEPS_ON, 1, false);
	assert_piece(&p[2], 0x46, 0x48, 0x10, FLOW_COND, 2, false);
	assert_piece(&p[3], 0x10, 0x18, 0x40, FLOW_CALL, 2, true);
	assert_piece(&p[4], 0x40, 0x44, 0x46, STEPS_ON, 3, false);
	assert_int_equal(steps_items(&f.nodes, STEP(CALLER, 8 | 2)), 3);
	/* Taken, not taken, not taken. */
	assert_int_equal(steps_pieces(&f.nodes, STEP(LEAF, 8 | 4), p), 4);
	assert_piece(&p[0], 0x46, 0x48, 0x10, FLOW_COND, 1, false);
	assert_piece(&p[3], 0x46, 0x48, 0x4a, STEPS_ON, 3, false);
}

static void steps_pieces_of_node_that_goes_on_has_no_decision(void **state)
{
	struct steps_piece p[STEPS_MAX_PIECES];
	struct fixture f;

	(void)state;
	set_up(&f);
	assert_true(steps_is_go(&f.nodes, STEP(LONG, NODE_STEP_TARGET)));
	assert_int_equal(steps_pieces(&f.nodes, STEP(LONG, NODE_STEP_TARGET), p), 2);
	assert_piece(&p[0], 0x60, 0x64, 0x80, FLOW_JUMP, 0, true);
	assert_piece(&p[1], 0x80, 0x82, 0x84, STEPS_ON, 0, true);
}

static void steps_pieces_of_target_leads_elsewhere(void **state)
{
	struct steps_piece p[STEPS_MAX_PIECES];
	struct fixture f;

	(void)state;
	set_up(&f);
	assert_false(steps_is_go(&f.nodes, STEP(JUMPER, NODE_STEP_TARGET)));
	assert_int_equal(steps_pieces(&f.nodes, STEP(JUMPER, NODE_STEP_TARGET), p), 1);
	assert_int_equal(p[0].kind, FLOW_JUMP_IND);
	assert_true(p[0].elsewhere && !p[0].direct);
	/* A compressed return leads elsewhere, too. */
	assert_int_equal(steps_pieces(&f.nodes, STEP(REST, 3), p), 1);
	assert_int_equal(p[0].kind, FLOW_RET);
	assert_true(p[0].elsewhere);
}

static void steps_behind_finds_the_next_step_in_its_place(void **state)
{
	const uint32_t steps[] = {STEP(REST, 3), STEP(1, NODE_STEP_PLACE), STEP(LEAF, 2)};
	struct flow_walk walk = {.n = 3, .to = 0x77};
	struct fixture f;

	(void)state;
	set_up(&f);
	assert_int_equal(steps_behind(&f.nodes, steps, &walk, 0, 0x5000), 0x1046);
	assert_int_equal(steps_behind(&f.nodes, steps, &walk, 2, 0x1000), 0x77);
	walk.n = 2;
	assert_int_equal(steps_behind(&f.nodes, steps, &walk, 0, 0x5000), 0x77);
}

static void steps_clock_first_decision_of_a_packet_has_its_own_end(void **state)
{
	const uint32_t steps[] = {STEP(CALLER, 4), STEP(LONG, NODE_STEP_TARGET), STEP(CALLER, 4),
				  STEP(JUMPER, NODE_STEP_TARGET)};
	const struct flow_time times[] = {{.step = 0, .lo = 10, .hi = 20, .first_hi = 15},
					  {.step = 1, .lo = 30, .hi = 40, .first_hi = 35},
					  {.step = 3, .lo = 50, .hi = 60, .first_hi = 55}};
	const struct flow_walk walk = {.n = 4, .n_times = 3, .before = 5};
	const struct flow_batch batch = {.steps = steps, .times = times};
	struct steps_clock c;
	struct fixture f;

	(void)state;
	set_up(&f);
	steps_clock_begin(&c, &f.nodes, &batch, &walk, 0);
	assert_int_equal(steps_clock_when(&c, 0, true)->lo, 5);
	assert_int_equal(steps_clock_when(&c, 0, true)->hi, 15);
	assert_int_equal(steps_clock_when(&c, 1, false)->lo, 10);
	assert_int_equal(steps_clock_when(&c, 1, false)->hi, 15);
	assert_int_equal(steps_clock_when(&c, 1, true)->hi, 20);
	assert_int_equal(steps_clock_when(&c, 2, false)->hi, 20);
	assert_int_equal(steps_clock_until(&c), 1);
	steps_clock_next(&c);
	assert_int_equal(steps_clock_when(&c, 0, true)->lo, 10);
	assert_int_equal(steps_clock_when(&c, 0, true)->hi, 35);
	/* A target has but one. */
	steps_clock_next(&c);
	assert_int_equal(steps_clock_when(&c, 1, false)->hi, 60);
	assert_int_equal(steps_clock_until(&c), 4);
	/* No packet tells of a step that only goes on. */
	steps_clock_begin(&c, &f.nodes, &batch, &walk, 2);
	assert_false(c.begun);
	steps_clock_begin(&c, &f.nodes, &batch, &walk, 3);
	assert_int_equal(c.rest.lo, 50);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(steps_pieces_of_three_decisions_follows_them),
		cmocka_unit_test(steps_pieces_of_node_that_goes_on_has_no_decision),
		cmocka_unit_test(steps_pieces_of_target_leads_elsewhere),
		cmocka_unit_test(steps_behind_finds_the_next_step_in_its_place),
		cmocka_unit_test(steps_clock_first_decision_of_a_packet_has_its_own_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
