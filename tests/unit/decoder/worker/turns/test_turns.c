#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "decoder/worker/turns/turns.h"
#include "proto/base.h"

/* Threads A and B of one process, C of another. */
static const struct timeline_thread a = {.pid = 1, .tid = 1, .end = SPACE_NOW};
static const struct timeline_thread b = {.pid = 1, .tid = 2, .end = SPACE_NOW};
static const struct timeline_thread c = {.pid = 3, .tid = 3, .end = SPACE_NOW};

#define MAX_TURNS     24
#define MAX_STRETCHES 8
#define NOBODY	      '-'
#define ANYBODY	      '?'

/* Stretches with intervals of time, and their truth: the tid of whose they are, 0 where that cannot
 * be known. CODE: who could have run it. */
struct stretch {
	uint64_t enter_lo, enter_hi, leave_lo, leave_hi;
	uint64_t enter, left; /* IP; left of a system call: behind it */
	enum turns_how how;
	const char *code; /* NULL: all */
	uint32_t expected;
	bool broken;
};

struct turn {
	char who;
	uint64_t until;
	bool preempted;
};

struct made {
	struct turns turns;
	const struct stretch *stretches;
	size_t n, at;
	struct turns_stretch now[MAX_STRETCHES];
	size_t n_proofs;
};

static const struct timeline_thread *thread_of(char who)
{
	switch (who) {
	case 'A': return &a;
	case 'B': return &b;
	case 'C': return &c;
	default: return NULL;
	}
}

static void add_turns(struct turns *t, size_t cpu, const struct turn *turns)
{
	struct turns_turn *list = calloc(MAX_TURNS, sizeof(*list));
	uint64_t since = 0;
	size_t n;

	assert_non_null(list);
	for (n = 0; turns[n].who != 0; n++) {
		list[n] = (struct turns_turn){.since = since,
					      .until = turns[n].until,
					      .thread = thread_of(turns[n].who),
					      .uncertain = turns[n].who == ANYBODY,
					      .preempted = turns[n].preempted};
		since = turns[n].until;
	}
	t->cpus[cpu].list = list;
	t->cpus[cpu].n = n;
}

static const struct turns_stretch *on_stretch(void *userdata, size_t i)
{
	struct made *m = userdata;
	const struct stretch *s = &m->stretches[m->at + i];

	if (m->at + i >= m->n)
		return NULL;
	m->now[i] = (struct turns_stretch){.enter_lo = s->enter_lo,
					   .enter_hi = s->enter_hi,
					   .leave_lo = s->leave_lo,
					   .leave_hi = s->leave_hi,
					   .enter = s->enter,
					   .broken = s->broken};
	m->now[i].left.how = (uint8_t)s->how;
	if (s->how == TURNS_HOW_ASYNC)
		m->now[i].left.ip = s->left;
	return &m->now[i];
}

static void on_proof(void *userdata, size_t i, uint32_t turn, struct turns_proof *ret)
{
	struct made *m = userdata;
	const struct stretch *s = &m->stretches[m->at + i];
	const struct timeline_thread *thread = m->turns.cpus[0].list[turn].thread;

	m->n_proofs++;
	if (thread == NULL)
		return;
	if (s->code != NULL && strchr(s->code, 'A' + (int)thread->tid - 1) == NULL)
		ret->cost = TURNS_COST_IMPOSSIBLE;
	else if (s->how == TURNS_HOW_SYSCALL)
		ret->left = (struct turns_left){.ip = s->left, .how = TURNS_HOW_SYSCALL};
}

static enum turns_call on_call(void *userdata, const struct turns_left *left)
{
	(void)userdata;
	(void)left;
	return TURNS_CALL_UNKNOWN;
}

/* Decides all stretches in order, as a replay does. */
static void check(struct made *m, const struct stretch *stretches, size_t n)
{
	struct turns_state state;
	size_t i;

	turns_begin(&m->turns, 0, 0, 0, &state);
	m->stretches = stretches;
	m->n = n;
	for (i = 0; i < n; i++) {
		struct turns_stretch first;
		const struct turns_question q = {.turns = &m->turns,
						 .state = &state,
						 .end = 800,
						 .first = &first,
						 .stretch = on_stretch,
						 .proof = on_proof,
						 .call = on_call,
						 .userdata = m};
		struct turns_left left = {.ip = stretches[i].left,
					  .how = (uint8_t)stretches[i].how};
		struct turns_answer answer;

		m->at = i;
		first = *on_stretch(m, 0);
		turns_decide(&q, &answer);
		if ((answer.thread ? answer.thread->tid : 0) != stretches[i].expected)
			fail_msg("stretch %zu is of %u, not %u", i,
				 answer.thread ? answer.thread->tid : 0, stretches[i].expected);
		if (!stretches[i].broken && !answer.same)
			turns_count(&m->turns, 0, &state, &answer.state);
		if (!answer.same)
			state = answer.state;
		turns_leave(&m->turns, 0, &state, stretches[i].enter,
			    answer.thread != NULL ? &left : NULL);
	}
}

static void check_one_cpu(const struct turn *turns, const struct stretch *stretches, size_t n)
{
	struct made m = {0};

	assert_int_equal(turns_init(&m.turns, 1), 0);
	add_turns(&m.turns, 0, turns);
	assert_int_equal(turns_link(&m.turns), 0);
	check(&m, stretches, n);
	turns_done(&m.turns);
}

#define CHECK(turns, stretches) check_one_cpu(turns, stretches, ARRAY_SIZE(stretches))

static void turns_decide_by_time_alone(void **state)
{
	const struct turn turns[] = {
		{'A', 100, false}, {NOBODY, 200, false}, {'C', 900, false}, {0}};
	const struct stretch stretches[] = {
		{.enter_lo = 10, .enter_hi = 30, .leave_lo = 40, .leave_hi = 60, .expected = 1},
		/* Up into the idle time, and from there on. */
		{.enter_lo = 60, .enter_hi = 150, .leave_lo = 90, .leave_hi = 150, .expected = 1},
		{.enter_lo = 150, .enter_hi = 250, .leave_lo = 150, .leave_hi = 300, .expected = 3},
		/* Idle all the time: nobody can have run. */
		{.enter_lo = 950, .enter_hi = 960, .leave_lo = 970, .leave_hi = 980},
	};

	(void)state;
	CHECK(turns, stretches);
}

static void turns_decide_long_stretch_fits_one_turn(void **state)
{
	const struct turn turns[] = {{'A', 100, false}, {'C', 110, false}, {'A', 300, false}, {0}};
	const struct stretch stretches[] = {
		/* It began at 105 at the latest and lasted beyond 150: no turn does. */
		{.enter_lo = 90, .enter_hi = 105, .leave_lo = 150, .leave_hi = 160},
		{.enter_lo = 90, .enter_hi = 115, .leave_lo = 150, .leave_hi = 160, .expected = 1},
	};

	(void)state;
	CHECK(turns, stretches);
}

/* Several switches within one interval of time: where each thread enters tells. */
static void turns_decide_by_where_they_left(void **state)
{
	const struct turn turns[] = {{'A', 100, true},	{'B', 110, true},  {'A', 120, true},
				     {'B', 130, false}, {'A', 900, false}, {0}};
	const struct stretch stretches[] = {
		{0, 20, 90, 110, 0x100, 0x180, TURNS_HOW_ASYNC, NULL, 1, false},
		{90, 140, 90, 140, 0x500, 0x580, TURNS_HOW_ASYNC, NULL, 2, false},
		{90, 140, 90, 140, 0x180, 0x1c0, TURNS_HOW_ASYNC, NULL, 1, false},
		{90, 140, 90, 140, 0x580, 0x600, TURNS_HOW_SYSCALL, NULL, 2, false},
		{90, 140, 300, 320, 0x1c0, 0x200, TURNS_HOW_SYSCALL, NULL, 1, false},
	};

	(void)state;
	CHECK(turns, stretches);
}

/* A has two stretches in its turn, B one: the switch lies behind the one that left asynchronously.
 */
static void turns_decide_by_how_they_left(void **state)
{
	const struct turn turns[] = {{'A', 100, true}, {'B', 900, false}, {0}};
	const struct stretch stretches[] = {
		{0, 20, 30, 40, 0x100, 0x180, TURNS_HOW_SYSCALL, NULL, 1, false},
		{80, 120, 80, 120, 0x180, 0x190, TURNS_HOW_ASYNC, NULL, 1, false},
		{80, 120, 300, 320, 0x400, 0x480, TURNS_HOW_SYSCALL, NULL, 2, false},
	};

	(void)state;
	CHECK(turns, stretches);
}

static void turns_decide_by_code(void **state)
{
	const struct turn turns[] = {{'A', 100, false}, {'C', 900, false}, {0}};
	const struct stretch stretches[] = {
		{80, 120, 80, 120, 0x100, 0x180, TURNS_HOW_SYSCALL, "A", 1, false},
		{80, 120, 80, 120, 0x180, 0x190, TURNS_HOW_SYSCALL, "A", 1, false},
		{80, 120, 80, 120, 0x180, 0x190, TURNS_HOW_SYSCALL, "C", 3, false},
		/* Nobody's. */
		{80, 120, 80, 120, 0x190, 0x190, TURNS_HOW_SYSCALL, "B", 3, false},
	};

	(void)state;
	CHECK(turns, stretches);
}

/* Two threads that do the same at the same place: nothing tells how many each did. */
static void turns_decide_undecidable_is_nobodys(void **state)
{
	const struct turn turns[] = {{'A', 100, false}, {'B', 900, false}, {0}};
	const struct stretch stretches[] = {
		{0, 20, 30, 40, 0x100, 0x100, TURNS_HOW_SYSCALL, NULL, 1, false},
		{80, 120, 80, 120, 0x100, 0x100, TURNS_HOW_SYSCALL, NULL, 0, false},
		{80, 120, 80, 120, 0x100, 0x100, TURNS_HOW_SYSCALL, NULL, 0, false},
		{300, 320, 330, 340, 0x100, 0x100, TURNS_HOW_SYSCALL, NULL, 2, false},
	};

	(void)state;
	CHECK(turns, stretches);
}

/* The same with as many stretches as turns: none is skipped for nothing. */
static void turns_decide_each_turn_has_a_stretch(void **state)
{
	const struct turn turns[] = {{'A', 100, false}, {'B', 110, false},    {'A', 120, false},
				     {'B', 130, false}, {NOBODY, 900, false}, {0}};
	const struct stretch stretches[] = {
		{0, 20, 30, 40, 0x100, 0x100, TURNS_HOW_SYSCALL, NULL, 1, false},
		{90, 140, 90, 140, 0x100, 0x100, TURNS_HOW_SYSCALL, NULL, 2, false},
		{90, 140, 90, 140, 0x100, 0x100, TURNS_HOW_SYSCALL, NULL, 1, false},
		{90, 140, 90, 140, 0x100, 0x100, TURNS_HOW_SYSCALL, NULL, 2, false},
	};

	(void)state;
	CHECK(turns, stretches);
}

/* But for a trace in which turns without one are seen, or after packets were lost. */
static void turns_decide_empty_turns_happen(void **state)
{
	const struct turn turns[] = {{'A', 100, false}, {'B', 200, false}, {'A', 300, false},
				     {'B', 310, false}, {'A', 900, false}, {0}};
	const struct stretch seen_before[] = {
		{10, 20, 30, 40, 0x100, 0x100, TURNS_HOW_SYSCALL, NULL, 1, false},
		/* B had from 100 to 200 and did nothing. */
		{210, 220, 230, 240, 0x100, 0x100, TURNS_HOW_SYSCALL, NULL, 1, false},
		{290, 320, 290, 320, 0x100, 0x100, TURNS_HOW_SYSCALL, NULL, 0, false},
		{400, 420, 430, 440, 0x100, 0x100, TURNS_HOW_SYSCALL, NULL, 1, false},
	};
	const struct stretch lost[] = {
		{10, 20, 30, 40, 0x100, 0x100, TURNS_HOW_SYSCALL, NULL, 1, false},
		{290, 320, 290, 320, 0x100, 0x100, TURNS_HOW_SYSCALL, NULL, 0, true},
	};

	(void)state;
	CHECK(turns, seen_before);
	CHECK(turns, lost);
}

static void turns_decide_uncertain_turn_is_nobodys(void **state)
{
	const struct turn turns[] = {
		{'A', 100, false}, {ANYBODY, 200, false}, {'A', 900, false}, {0}};
	const struct stretch stretches[] = {
		{10, 20, 30, 40, 0x100, 0x100, TURNS_HOW_SYSCALL, NULL, 1, false},
		{80, 120, 80, 120, 0x100, 0x100, TURNS_HOW_SYSCALL, NULL, 0, false},
		{130, 140, 150, 160, 0x100, 0x100, TURNS_HOW_SYSCALL, NULL, 0, false},
		{180, 220, 300, 320, 0x100, 0x100, TURNS_HOW_SYSCALL, NULL, 1, false},
	};

	(void)state;
	CHECK(turns, stretches);
}

/* Without any times: who is alone is known, and nobody else. */
static void turns_decide_without_time(void **state)
{
	struct turn turns[MAX_TURNS] = {{0}};
	const struct stretch alone[] = {
		{0, UINT64_MAX, 0, UINT64_MAX, 1, 1, TURNS_HOW_SYSCALL, NULL, 1, false}};
	struct stretch two[] = {alone[0]};
	size_t i;

	(void)state;
	for (i = 0; i < MAX_TURNS - 1; i++)
		turns[i] = (struct turn){i % 2 ? NOBODY : 'A', 100 * (i + 1), false};
	CHECK(turns, alone);
	for (i = 0; i < MAX_TURNS - 1; i++)
		turns[i].who = i % 2 ? 'B' : 'A';
	two[0].expected = 0;
	CHECK(turns, two);
}

/* A moves to the other CPU and back: where it entered there, it had left here. */
static void turns_decide_knows_other_cpus(void **state)
{
	const struct turn here[] = {{'A', 100, true}, {'B', 200, true},	 {NOBODY, 300, false},
				    {'A', 310, true}, {'B', 900, false}, {0}};
	const struct turn there[] = {{NOBODY, 210, false}, {'A', 290, true}, {0}};
	const struct turns_left left = {.ip = 0x777, .how = TURNS_HOW_ASYNC};
	struct turns_state at = {.at = {{.turn = 1}}, .n = 1};
	const struct stretch stretches[] = {
		{10, 20, 80, 90, 0x100, 0x180, TURNS_HOW_ASYNC, NULL, 1, false},
		{110, 120, 130, 140, 0x500, 0x580, TURNS_HOW_ASYNC, NULL, 2, false},
		{290, 330, 290, 330, 0x777, 0x780, TURNS_HOW_ASYNC, NULL, 1, false},
		{290, 330, 290, 330, 0x580, 0x600, TURNS_HOW_ASYNC, NULL, 2, false},
	};
	struct made m = {0};

	(void)state;
	assert_int_equal(turns_init(&m.turns, 2), 0);
	add_turns(&m.turns, 0, here);
	add_turns(&m.turns, 1, there);
	assert_int_equal(turns_link(&m.turns), 0);
	assert_int_equal(m.turns.cpus[0].list[3].before_cpu, 1);
	assert_int_equal(m.turns.cpus[0].list[3].run, 3);
	assert_int_equal(m.turns.cpus[0].list[4].run, 1);
	turns_leave(&m.turns, 1, &at, 0x700, &left);
	m.turns.cpus[1].passed = 2;
	check(&m, stretches, ARRAY_SIZE(stretches));
	turns_done(&m.turns);
}

/* One stretch that may be either's; what follows does not become surer by not knowing how it was
 * left. */
static void turns_decide_undecided_is_not_forgotten(void **state)
{
	const struct turn turns[] = {{'A', 50, false},	  {'C', 60, false},
				     {'B', 70, false},	  {'A', 80, false},
				     {NOBODY, 85, false}, {'C', 100, false},
				     {'A', 200, false},	  {NOBODY, 300, false},
				     {'C', 400, false},	  {0}};
	const struct stretch stretches[] = {
		{10, 12, 13, 14, 0x100, 0x180, TURNS_HOW_SYSCALL, NULL, 1, false},
		{52, 53, 54, 55, 0x100, 0x180, TURNS_HOW_SYSCALL, NULL, 3, false},
		/* B executed nothing: that happens here. */
		{72, 73, 74, 75, 0x180, 0x180, TURNS_HOW_SYSCALL, NULL, 1, false},
		{90, 110, 90, 110, 0x500, 0x180, TURNS_HOW_SYSCALL, NULL, 0, false},
		{90, 110, 90, 110, 0x180, 0x180, TURNS_HOW_SYSCALL, NULL, 0, false},
		{120, 130, 120, 130, 0x180, 0x200, TURNS_HOW_SYSCALL, NULL, 1, false},
		{310, 320, 330, 340, 0x500, 0x580, TURNS_HOW_SYSCALL, NULL, 3, false},
	};

	(void)state;
	CHECK(turns, stretches);
}

/* Where nobody knows whose a stretch was, each way keeps what it knows to itself, until there is
 * one. */
static void turns_leave_undecided_is_known_to_the_ways(void **state)
{
	const struct turn turns[] = {{'A', 100, false}, {'B', 200, false}, {0}};
	const struct turns_left old = {.ip = 0x11, .how = TURNS_HOW_ASYNC};
	const struct turns_left left_a = {.ip = 0x22, .how = TURNS_HOW_ASYNC};
	const struct turns_left left_b = {.ip = 0x33, .how = TURNS_HOW_ASYNC};
	const struct turns_left now = {.ip = 0x44, .how = TURNS_HOW_ASYNC};
	struct turns_state at = {.at = {{.turn = 0, .n_lefts = 1, .lefts = {{0, left_a}}},
					{.turn = 1, .n_lefts = 1, .lefts = {{1, left_b}}}},
				 .n = 2};
	struct turns_turn *list;
	struct made m = {0};

	(void)state;
	assert_int_equal(turns_init(&m.turns, 1), 0);
	add_turns(&m.turns, 0, turns);
	assert_int_equal(turns_link(&m.turns), 0);
	list = m.turns.cpus[0].list;
	list[0].left = old;
	assert_int_equal(turns_now(&at), TURNS_NONE);
	turns_leave(&m.turns, 0, &at, 0x10, NULL);
	assert_int_equal(list[0].left.how, TURNS_HOW_UNKNOWN);
	assert_int_equal(list[1].left.how, TURNS_HOW_UNKNOWN);
	assert_int_equal(at.at[0].n_lefts, 1);
	assert_int_equal(at.at[0].lefts[0].left.ip, left_a.ip);
	assert_int_equal(at.at[1].n_lefts, 2);
	assert_int_equal(at.at[1].lefts[0].turn, 0);
	assert_int_equal(at.at[1].lefts[0].left.ip, old.ip);
	assert_int_equal(at.at[1].lefts[1].left.ip, left_b.ip);
	/* It was B's. */
	at.at[0] = at.at[1];
	at.n = 1;
	assert_int_equal(turns_now(&at), 1);
	turns_leave(&m.turns, 0, &at, 0x33, &now);
	assert_int_equal(at.at[0].n_lefts, 0);
	assert_int_equal(list[0].left.ip, old.ip);
	assert_int_equal(list[1].left.ip, now.ip);
	turns_done(&m.turns);
}

/* Only what was learnt has to be forgotten, however many turns there are. */
static void turns_forget_what_was_left_is_not_known(void **state)
{
	const struct turn turns[] = {
		{'A', 100, false}, {'B', 200, false}, {'A', 300, false}, {'B', 400, false}, {0}};
	const struct turns_left now = {.ip = 0x22, .how = TURNS_HOW_ASYNC};
	struct turns_state at = {.at = {{.turn = 2}}, .n = 1};
	struct turns_cpu *cpu;
	struct made m = {0};

	(void)state;
	assert_int_equal(turns_init(&m.turns, 1), 0);
	add_turns(&m.turns, 0, turns);
	assert_int_equal(turns_link(&m.turns), 0);
	cpu = &m.turns.cpus[0];
	for (int i = 0; i < 3; i++) {
		turns_leave(&m.turns, 0, &at, 0x10, &now);
		turns_leave(&m.turns, 0, &at, 0x10, &now);
		cpu->passed = 2;
		assert_int_equal(cpu->list[2].left.ip, now.ip);
		assert_int_equal(cpu->n_noted, 1);
		turns_forget(&m.turns, 0);
		assert_int_equal(cpu->list[2].left.ip, 0);
		assert_int_equal(cpu->list[2].left.how, TURNS_HOW_UNKNOWN);
		assert_int_equal(cpu->n_noted, 0);
		assert_int_equal(cpu->passed, 0);
	}
	turns_done(&m.turns);
}

/* A stretch that decodes in one process only may belong to any of its threads. */
static void turns_decide_says_the_process(void **state)
{
	const struct turn turns[] = {{'A', 100, false}, {'B', 900, false}, {0}};
	const struct stretch stretches[] = {
		{80, 120, 80, 120, 0x100, 0x100, TURNS_HOW_SYSCALL, "AB", 0, false},
		{80, 120, 80, 120, 0x100, 0x100, TURNS_HOW_SYSCALL, "AB", 0, false},
		{80, 120, 80, 120, 0x100, 0x100, TURNS_HOW_SYSCALL, "AB", 0, false},
	};
	struct turns_state nowhere = {0};
	struct turns_stretch first;
	struct turns_answer answer;
	struct made m = {.stretches = stretches, .n = ARRAY_SIZE(stretches)};
	const struct turns_question q = {.turns = &m.turns,
					 .state = &nowhere,
					 .first = &first,
					 .stretch = on_stretch,
					 .proof = on_proof,
					 .call = on_call,
					 .userdata = &m};

	(void)state;
	assert_int_equal(turns_init(&m.turns, 1), 0);
	add_turns(&m.turns, 0, turns);
	assert_int_equal(turns_link(&m.turns), 0);
	m.at = 1;
	first = *on_stretch(&m, 0);
	turns_decide(&q, &answer);
	assert_null(answer.thread);
	assert_non_null(answer.process);
	assert_int_equal(answer.process->pid, a.pid);
	assert_int_equal(answer.first, 0);
	assert_int_equal(answer.last, 1);
	turns_done(&m.turns);
}

/* The restorer's system call goes back to where the signal was, and not behind itself. */
static void turns_carry_remembers_what_was_interrupted(void **state)
{
	const struct turns_left before = {.ip = 0x102, .again = 0x100, .how = TURNS_HOW_SYSCALL};
	struct turns_left handler = {.ip = 0x202, .how = TURNS_HOW_SYSCALL};
	struct turns_left restorer = {.ip = 0x302, .how = TURNS_HOW_SYSCALL, .sigreturn = true};
	struct turns_left back = {.ip = 0x402, .how = TURNS_HOW_SYSCALL}, again = back;

	(void)state;
	turns_carry_signals(&before, 0x200, &handler);
	assert_int_equal(handler.interrupted_ip, 0x102);
	turns_carry_signals(&handler, 0x202, &restorer);
	assert_int_equal(restorer.ip, 0x102);
	assert_int_equal(restorer.again, 0x100);
	/* Another signal at once, before it is back there. */
	turns_carry_signals(&restorer, 0x200, &again);
	assert_int_equal(again.interrupted_ip, 0x102);
	turns_carry_signals(&restorer, 0x102, &back);
	assert_int_equal(back.ip, 0x402);
	assert_int_equal(back.interrupted_ip, 0);
}

/* A child enters where its parent left, but not where two may have been its parent. */
static void turns_forked_gives_parents_place(void **state)
{
	static const struct timeline_thread parent = {.pid = 7, .tid = 7, .end = SPACE_NOW};
	static const struct timeline_thread other = {.pid = 7, .tid = 8, .end = SPACE_NOW};
	static const struct timeline_thread child = {
		.pid = 9, .tid = 9, .ppid = 7, .begin = 50, .end = SPACE_NOW};
	const struct turns_state at = {.n = 1};
	struct turns_turn *list[3];
	struct turns t;
	size_t i;

	(void)state;
	assert_int_equal(turns_init(&t, 3), 0);
	for (i = 0; i < 3; i++) {
		list[i] = t.cpus[i].list = calloc(1, sizeof(struct turns_turn));
		t.cpus[i].n = 1;
		assert_non_null(list[i]);
	}
	*list[0] = (struct turns_turn){.until = 100, .thread = &parent};
	*list[1] = (struct turns_turn){.until = 100, .thread = &other};
	*list[2] = (struct turns_turn){.since = 60, .until = 100, .thread = &child};
	assert_int_equal(turns_link(&t), 0);
	assert_true(list[2]->born);
	assert_false(list[0]->born);
	assert_true(turns_has_birth(&t, 7, 40, 60));
	assert_false(turns_has_birth(&t, 7, 51, 60));
	list[0]->left = (struct turns_left){.ip = 0x123, .how = TURNS_HOW_SYSCALL};
	list[1]->left = (struct turns_left){.ip = 0x456, .how = TURNS_HOW_SYSCALL};
	turns_forked(&t, 0, &at, 60, 70);
	assert_int_equal(list[2]->left.how, TURNS_HOW_UNKNOWN);
	turns_forked(&t, 0, &at, 40, 70);
	assert_int_equal(list[2]->left.ip, 0x123);
	turns_forked(&t, 1, &at, 40, 70);
	assert_int_equal(list[2]->left.ip, 0);
	turns_done(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(turns_decide_by_time_alone),
		cmocka_unit_test(turns_decide_long_stretch_fits_one_turn),
		cmocka_unit_test(turns_decide_by_where_they_left),
		cmocka_unit_test(turns_decide_by_how_they_left),
		cmocka_unit_test(turns_decide_by_code),
		cmocka_unit_test(turns_decide_undecidable_is_nobodys),
		cmocka_unit_test(turns_decide_each_turn_has_a_stretch),
		cmocka_unit_test(turns_decide_empty_turns_happen),
		cmocka_unit_test(turns_decide_uncertain_turn_is_nobodys),
		cmocka_unit_test(turns_decide_without_time),
		cmocka_unit_test(turns_decide_knows_other_cpus),
		cmocka_unit_test(turns_decide_undecided_is_not_forgotten),
		cmocka_unit_test(turns_leave_undecided_is_known_to_the_ways),
		cmocka_unit_test(turns_forget_what_was_left_is_not_known),
		cmocka_unit_test(turns_decide_says_the_process),
		cmocka_unit_test(turns_carry_remembers_what_was_interrupted),
		cmocka_unit_test(turns_forked_gives_parents_place),
	};

	return cmocka_run_group_tests_name("turns", tests, NULL, NULL);
}
