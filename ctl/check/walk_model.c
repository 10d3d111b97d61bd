/*
 * Computes the branches of ptsnap-walk, one round at a time: walk_program.S in C.
 */
#include "ctl/check/walk_model.h"

#include <assert.h>
#include <stdbool.h>

#define FAR_SIZE  0x1000
#define NEAR_SIZE 0x1000

enum {
	SHORT = 2,
	NEAR_JUMP = 5,
	NEAR_COND = 6,
	CALL = 5,
	TABLE = 7,
	REGISTER = 2,
	RET = 1,
	SYS = 2
};

static void put(struct walk_model *m, enum walk_kind kind, uint64_t from, uint8_t size, uint64_t to)
{
	assert(m->n < WALK_ROUND_MAX);
	m->branches[m->n++] = (struct walk_branch){(uint8_t)kind, size, from, to};
}

static void put_cond(struct walk_model *m, uint64_t from, uint8_t size, uint64_t to, bool taken)
{
	put(m, taken ? WALK_KIND_TAKEN : WALK_KIND_NOT_TAKEN, from, size, taken ? to : from + size);
}

/* Direct branches of 5 bytes. */
static void put_jump(struct walk_model *m, uint64_t from, uint64_t to)
{
	put(m, WALK_KIND_JUMP, from, NEAR_JUMP, to);
}

static void put_call(struct walk_model *m, uint64_t from, uint64_t to)
{
	put(m, WALK_KIND_CALL, from, CALL, to);
}

static void put_ret(struct walk_model *m, uint64_t from, uint64_t to)
{
	put(m, WALK_KIND_RET, from, RET, to);
}

/* A loop that executes TIMES times, with a short branch at FROM. */
static void put_loop(struct walk_model *m, uint64_t from, uint64_t to, unsigned times)
{
	while (times-- > 0)
		put_cond(m, from, SHORT, to, times > 0);
}

static uint64_t bits(const struct walk_model *m, unsigned from, uint64_t mask)
{
	return m->generator >> from & mask;
}

static void step_generator(struct walk_model *m)
{
	uint64_t x = m->generator;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	m->generator = x;
}

uint64_t walk_model_shown(uint64_t seed, uint32_t round)
{
	return (seed & 0xff) << WALK_ROUND_BITS | round;
}

static void put_leaf(struct walk_model *m, uint64_t to)
{
	put_ret(m, WALK_LEAF_RET_AT, to);
}

/* NEST_2, which returns to TO. */
static void put_nest_2(struct walk_model *m, uint64_t to)
{
	put_call(m, WALK_NEST_2_AT, WALK_LEAF);
	put_leaf(m, WALK_NEST_2_AT + CALL);
	put_ret(m, WALK_NEST_2_RET_AT, to);
}

static void walk_cond(struct walk_model *m)
{
	bool aside = bits(m, 34, 1);

	put_cond(m, WALK_COND_A_AT, SHORT, WALK_COND_B, bits(m, 32, 1));
	put_cond(m, WALK_COND_B_AT, SHORT, WALK_COND_C, !bits(m, 33, 1));
	put_cond(m, WALK_COND_C_AT, NEAR_COND, WALK_ASIDE, aside);
	if (aside)
		put_jump(m, WALK_ASIDE_AT, WALK_COND_END_AT);
	put_jump(m, WALK_COND_END_AT, WALK_STEP_END);
}

static void walk_loop(struct walk_model *m)
{
	put_loop(m, WALK_LOOP_JNZ_AT, WALK_LOOP_TOP, (unsigned)bits(m, 32, 63) + 1);
	put_jump(m, WALK_LOOP_END_AT, WALK_STEP_END);
}

static void walk_count(struct walk_model *m)
{
	put_loop(m, WALK_COUNT_LOOP_AT, WALK_COUNT_TOP, (unsigned)bits(m, 32, 7) + 1);
	put_cond(m, WALK_COUNT_JRCXZ_AT, SHORT, WALK_COUNT_END_AT, !bits(m, 40, 1));
	put_jump(m, WALK_COUNT_END_AT, WALK_STEP_END);
}

static void walk_call(struct walk_model *m)
{
	put_call(m, WALK_CALL_AT, WALK_LEAF);
	put_leaf(m, WALK_CALL_AT + CALL);
	put_jump(m, WALK_CALL_END_AT, WALK_STEP_END);
}

static void walk_nest(struct walk_model *m)
{
	put_call(m, WALK_NEST_AT, WALK_NEST_1_AT);
	put_call(m, WALK_NEST_1_AT, WALK_NEST_2_AT);
	put_nest_2(m, WALK_NEST_1_AT + CALL);
	put_ret(m, WALK_NEST_1_RET_AT, WALK_NEST_AT + CALL);
	put_jump(m, WALK_NEST_END_AT, WALK_STEP_END);
}

static void walk_recurse(struct walk_model *m)
{
	unsigned depth = (unsigned)bits(m, 32, 15), i;
	bool shallow = bits(m, 40, 31) != 0;

	put_cond(m, WALK_RECURSE_DEEP_AT, SHORT, WALK_RECURSE_AT, shallow);
	if (!shallow)
		depth += 70;
	put_call(m, WALK_RECURSE_AT, WALK_SELF);
	for (i = 0; i < depth; i++) {
		put_cond(m, WALK_SELF_JZ_AT, SHORT, WALK_SELF_RET_AT, false);
		put_call(m, WALK_SELF_AT, WALK_SELF);
	}
	put_cond(m, WALK_SELF_JZ_AT, SHORT, WALK_SELF_RET_AT, true);
	for (i = 0; i < depth; i++)
		put_ret(m, WALK_SELF_RET_AT, WALK_SELF_AT + CALL);
	put_ret(m, WALK_SELF_RET_AT, WALK_RECURSE_AT + CALL);
	put_jump(m, WALK_RECURSE_END_AT, WALK_STEP_END);
}

static void walk_icall(struct walk_model *m)
{
	static const uint64_t callees[] = {WALK_LEAF, WALK_NEST_2_AT, WALK_FAR_LEAF, WALK_TAIL};
	unsigned which = (unsigned)bits(m, 32, 3);
	uint64_t back = WALK_ICALL_AT + TABLE;

	put(m, WALK_KIND_CALL_IND, WALK_ICALL_AT, TABLE, callees[which]);
	if (which == 0)
		put_leaf(m, back);
	if (which == 1)
		put_nest_2(m, back);
	if (which == 2)
		put_ret(m, WALK_FAR_RET_AT, back);
	if (which == 3) {
		put(m, WALK_KIND_JUMP_IND, WALK_TAIL_AT, REGISTER, WALK_LEAF);
		put_leaf(m, back);
	}
	put_jump(m, WALK_ICALL_END_AT, WALK_STEP_END);
}

static void walk_switch(struct walk_model *m)
{
	static const uint64_t cases[] = {WALK_CASE_0, WALK_CASE_1_AT, WALK_FAR_CASE, WALK_STEP_END};
	unsigned which = (unsigned)bits(m, 32, 3);

	put(m, WALK_KIND_JUMP_IND, WALK_SWITCH_AT, TABLE, cases[which]);
	if (which == 0)
		put_jump(m, WALK_CASE_0_AT, WALK_STEP_END);
	if (which == 1)
		put_jump(m, WALK_CASE_1_AT, WALK_STEP_END);
	if (which == 2)
		put(m, WALK_KIND_JUMP_IND, WALK_FAR_CASE_AT, REGISTER, WALK_STEP_END);
}

static void walk_exchange(struct walk_model *m)
{
	put_call(m, WALK_EXCHANGE_AT, WALK_SWAP);
	put_ret(m, WALK_SWAP_RET_AT, WALK_EXCHANGE_TO);
	put_jump(m, WALK_EXCHANGE_END_AT, WALK_STEP_END);
}

static void walk_skip(struct walk_model *m)
{
	put_call(m, WALK_SKIP_AT, WALK_OVER_AT);
	put_call(m, WALK_OVER_AT, WALK_DROP);
	put_ret(m, WALK_DROP_RET_AT, WALK_SKIP_AT + CALL);
	put_jump(m, WALK_SKIP_END_AT, WALK_STEP_END);
}

static void walk_push(struct walk_model *m)
{
	put_ret(m, WALK_PUSH_RET_AT, WALK_PUSH_TO);
	put_jump(m, WALK_PUSH_END_AT, WALK_STEP_END);
}

static void walk_here(struct walk_model *m)
{
	put_call(m, WALK_HERE_AT, WALK_HERE_AT + CALL);
	put_jump(m, WALK_HERE_END_AT, WALK_STEP_END);
}

static void walk_syscall(struct walk_model *m)
{
	bool skip = bits(m, 32, 7) != 0;

	put_cond(m, WALK_SYSCALL_JNZ_AT, SHORT, WALK_SYSCALL_END_AT, skip);
	if (!skip)
		put(m, WALK_KIND_SYSCALL, WALK_SYSCALL_AT, SYS, WALK_SYSCALL_AT + SYS);
	put_jump(m, WALK_SYSCALL_END_AT, WALK_STEP_END);
}

static void walk_register(struct walk_model *m)
{
	put(m, WALK_KIND_CALL_IND, WALK_REGISTER_AT, REGISTER, WALK_LEAF);
	put_leaf(m, WALK_REGISTER_AT + REGISTER);
	put_jump(m, WALK_REGISTER_END_AT, WALK_STEP_END);
}

static void walk_short(struct walk_model *m)
{
	put(m, WALK_KIND_JUMP, WALK_SHORT_AT, SHORT, WALK_SHORT_TO);
	put_jump(m, WALK_SHORT_END_AT, WALK_STEP_END);
}

static const struct {
	uint64_t to;
	void (*walk)(struct walk_model *m);
} KINDS[16] = {
	{WALK_COND, walk_cond},		{WALK_COND, walk_cond},
	{WALK_LOOP, walk_loop},		{WALK_COUNT, walk_count},
	{WALK_CALL, walk_call},		{WALK_NEST, walk_nest},
	{WALK_RECURSE, walk_recurse},	{WALK_ICALL, walk_icall},
	{WALK_SWITCH, walk_switch},	{WALK_EXCHANGE, walk_exchange},
	{WALK_SKIP, walk_skip},		{WALK_PUSH, walk_push},
	{WALK_HERE, walk_here},		{WALK_SYSCALL, walk_syscall},
	{WALK_REGISTER, walk_register}, {WALK_SHORT, walk_short},
};

static void make_round(struct walk_model *m)
{
	uint64_t shown = walk_model_shown(m->seed, m->round);
	uint64_t x = (uint64_t)(uint32_t)(m->round + 1) * UINT64_C(0x9e3779b97f4a7c15) + m->seed;
	unsigned steps, kind;

	m->n = m->next = 0;
	for (unsigned left = WALK_SHOWN_BITS; left-- > 0;) {
		put_cond(m, WALK_BIT_AT, SHORT, WALK_ZERO, !(shown >> left & 1));
		put_cond(m, WALK_BIT_LOOP_AT, SHORT, WALK_BIT, left > 0);
	}
	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	m->generator = (x ^ x >> 27) | 1;
	step_generator(m);
	steps = (unsigned)bits(m, 8, 15) + 16;
	while (steps-- > 0) {
		step_generator(m);
		kind = (unsigned)bits(m, 20, 15);
		put(m, WALK_KIND_JUMP_IND, WALK_DISPATCH_AT, TABLE, KINDS[kind].to);
		KINDS[kind].walk(m);
		put_cond(m, WALK_STEP_LOOP_AT, NEAR_COND, WALK_STEP, steps > 0);
	}
	put_cond(m, WALK_LAST_AT, SHORT, WALK_EXIT, false);
	put_jump(m, WALK_AGAIN_AT, WALK_ROUND);
}

void walk_model_init(struct walk_model *m, uint64_t seed, uint32_t round)
{
	m->seed = seed;
	m->round = round;
	make_round(m);
}

void walk_model_next(struct walk_model *m, struct walk_branch *ret)
{
	if (m->next == m->n) {
		m->round++;
		make_round(m);
	}
	*ret = m->branches[m->next++];
}

int walk_model_has(uint64_t ip)
{
	return (ip >= WALK_TEXT && ip - WALK_TEXT < NEAR_SIZE) ||
	       (ip >= WALK_FAR_TEXT && ip - WALK_FAR_TEXT < FAR_SIZE);
}
