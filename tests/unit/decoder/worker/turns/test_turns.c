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
	bool async;
	const char *code; /* NULL: all */
	uint32_t expected;
	bool broken;
	bool handler; /* where it left, a handler may begin */
};

struct turn {
	char who;
	uint64_t until;
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
					      .uncertain = turns[n].who == ANYBODY};
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
	if (s->async)
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
	ret->impossible = s->code && strchr(s->code, 'A' + (int)thread->tid - 1) == NULL;
	ret->context = thread->pid;
	ret->left =
		(struct turns_left){.ip = s->left, .context = thread->pid, .inside = !s->handler};
}

static bool on_alike(void *userdata, uint32_t one, uint32_t other, uint64_t ip)
{
	(void)userdata;
	(void)ip;
	return one == other;
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
						 .first = &first,
						 .stretch = on_stretch,
						 .proof = on_proof,
						 .alike = on_alike,
						 .userdata = m};
		struct turns_left left = {
			.ip = stretches[i].left, .context = 1, .inside = !stretches[i].handler};
		struct turns_answer answer;

		m->at = i;
		first = *on_stretch(m, 0);
		turns_decide(&q, &answer);
		if ((answer.thread ? answer.thread->tid : 0) != stretches[i].expected)
			fail_msg("stretch %zu is of %u, not %u", i,
				 answer.thread ? answer.thread->tid : 0, stretches[i].expected);
		if (!answer.same)
			state = answer.state;
		if (answer.thread)
			left.context = answer.thread->pid;
		turns_leave(&m->turns, 0, &state, answer.thread ? &left : NULL);
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
	const struct turn turns[] = {{'A', 100}, {NOBODY, 200}, {'C', 900}, {0}};
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
	const struct turn turns[] = {{'A', 100}, {'C', 110}, {'A', 300}, {0}};
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
	const struct turn turns[] = {{'A', 100}, {'B', 110}, {'A', 120},
				     {'B', 130}, {'A', 900}, {0}};
	const struct stretch stretches[] = {
		{0, 20, 90, 110, 0x100, 0x180, true, NULL, 1, false, false},
		{90, 140, 90, 140, 0x500, 0x580, true, NULL, 2, false, false},
		{90, 140, 90, 140, 0x180, 0x1c0, true, NULL, 1, false, false},
		{90, 140, 90, 140, 0x580, 0x600, false, NULL, 2, false, false},
		{90, 140, 300, 320, 0x1c0, 0x200, false, NULL, 1, false, false},
	};

	(void)state;
	CHECK(turns, stretches);
}

/* Where B may have been interrupted by a signal, nobody knows. */
static void turns_decide_handlers_begin_anywhere_else(void **state)
{
	const struct turn turns[] = {{'A', 100}, {'B', 200}, {'A', 300}, {'B', 900}, {0}};
	struct stretch stretches[] = {
		{0, 20, 30, 40, 0x100, 0x180, false, NULL, 1, false, false},
		{110, 120, 130, 140, 0x400, 0x480, false, NULL, 2, false, false},
		{210, 220, 230, 240, 0x180, 0x1a0, true, NULL, 1, false, false},
		{280, 320, 280, 320, 0x1a0, 0x1a0, true, NULL, 1, false, false},
		{400, 420, 430, 440, 0x480, 0x500, false, NULL, 2, false, false},
	};

	(void)state;
	CHECK(turns, stretches);
	/* A left where a handler may begin, and later B enters somewhere else. */
	stretches[2].handler = stretches[3].handler = true;
	stretches[3].expected = 0;
	stretches[4].enter = 0x700;
	CHECK(turns, stretches);
}

static void turns_decide_by_code(void **state)
{
	const struct turn turns[] = {{'A', 100}, {'C', 900}, {0}};
	const struct stretch stretches[] = {
		{80, 120, 80, 120, 0x100, 0x180, false, "A", 1, false, false},
		{80, 120, 80, 120, 0x180, 0x190, false, "A", 1, false, false},
		{80, 120, 80, 120, 0x180, 0x190, false, "C", 3, false, false},
		/* Nobody's. */
		{80, 120, 80, 120, 0x190, 0x190, false, "B", 3, false, false},
	};

	(void)state;
	CHECK(turns, stretches);
}

/* Two threads that do the same at the same place: nothing tells how many each did. */
static void turns_decide_undecidable_is_nobodys(void **state)
{
	const struct turn turns[] = {{'A', 100}, {'B', 900}, {0}};
	const struct stretch stretches[] = {
		{0, 20, 30, 40, 0x100, 0x100, false, NULL, 1, false, false},
		{80, 120, 80, 120, 0x100, 0x100, false, NULL, 0, false, false},
		{80, 120, 80, 120, 0x100, 0x100, false, NULL, 0, false, false},
		{300, 320, 330, 340, 0x100, 0x100, false, NULL, 2, false, false},
	};

	(void)state;
	CHECK(turns, stretches);
}

/* With as many stretches as turns, too: a turn may have none, and another one two. */
static void turns_decide_turns_may_have_no_stretch(void **state)
{
	const struct turn turns[] = {{'A', 100}, {'B', 110},	{'A', 120},
				     {'B', 130}, {NOBODY, 900}, {0}};
	const struct stretch stretches[] = {
		{0, 20, 30, 40, 0x100, 0x100, false, NULL, 1, false, false},
		{90, 140, 90, 140, 0x100, 0x100, false, NULL, 0, false, false},
		{90, 140, 90, 140, 0x100, 0x100, false, NULL, 0, false, false},
		{90, 140, 90, 140, 0x100, 0x100, false, NULL, 0, false, false},
	};
	const struct stretch lost[] = {
		{10, 20, 30, 40, 0x100, 0x180, false, NULL, 1, false, false},
		/* Where packets were lost A may have gone on from 0x180. */
		{90, 105, 90, 105, 0x200, 0x200, false, NULL, 0, true, false},
	};

	(void)state;
	CHECK(turns, stretches);
	CHECK(turns, lost);
}

static void turns_decide_uncertain_turn_is_nobodys(void **state)
{
	const struct turn turns[] = {{'A', 100}, {ANYBODY, 200}, {'A', 900}, {0}};
	const struct stretch stretches[] = {
		{10, 20, 30, 40, 0x100, 0x100, false, NULL, 1, false, false},
		{80, 120, 80, 120, 0x100, 0x100, false, NULL, 0, false, false},
		{130, 140, 150, 160, 0x100, 0x100, false, NULL, 0, false, false},
		{180, 220, 300, 320, 0x100, 0x100, false, NULL, 1, false, false},
	};

	(void)state;
	CHECK(turns, stretches);
}

/* Without any times: who is alone is known, and nobody else. */
static void turns_decide_without_time(void **state)
{
	struct turn turns[MAX_TURNS] = {{0}};
	const struct stretch alone[] = {
		{0, UINT64_MAX, 0, UINT64_MAX, 1, 1, false, NULL, 1, false, false}};
	struct stretch two[] = {alone[0]};
	size_t i;

	(void)state;
	for (i = 0; i < MAX_TURNS - 1; i++)
		turns[i] = (struct turn){i % 2 ? NOBODY : 'A', 100 * (i + 1)};
	CHECK(turns, alone);
	for (i = 0; i < MAX_TURNS - 1; i++)
		turns[i].who = i % 2 ? 'B' : 'A';
	two[0].expected = 0;
	CHECK(turns, two);
}

/* A moves to the other CPU and back: where it entered there, it had left here. */
static void turns_decide_knows_other_cpus(void **state)
{
	const struct turn here[] = {{'A', 100}, {'B', 200}, {NOBODY, 300},
				    {'A', 310}, {'B', 900}, {0}};
	const struct turn there[] = {{NOBODY, 210}, {'A', 290}, {0}};
	const struct turns_left left = {.ip = 0x777, .context = 1, .inside = true};
	struct turns_state at = {.at = {{.turn = 1}}, .n = 1};
	const struct stretch stretches[] = {
		{10, 20, 80, 90, 0x100, 0x180, true, NULL, 1, false, false},
		{110, 120, 130, 140, 0x500, 0x580, true, NULL, 2, false, false},
		{290, 330, 290, 330, 0x777, 0x780, true, NULL, 1, false, false},
		{290, 330, 290, 330, 0x580, 0x600, true, NULL, 2, false, false},
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
	turns_leave(&m.turns, 1, &at, &left);
	m.turns.cpus[1].passed = 2;
	check(&m, stretches, ARRAY_SIZE(stretches));
	turns_done(&m.turns);
}

/* Where nobody knows whose a stretch was, each way keeps what it knows to itself, until there is
 * one. */
static void turns_leave_undecided_is_known_to_the_ways(void **state)
{
	const struct turn turns[] = {{'A', 100}, {'B', 200}, {0}};
	const struct turns_left old = {.ip = 0x11, .inside = true};
	const struct turns_left left_a = {.ip = 0x22, .inside = true};
	const struct turns_left left_b = {.ip = 0x33, .inside = true};
	const struct turns_left now = {.ip = 0x44, .inside = true};
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
	turns_leave(&m.turns, 0, &at, NULL);
	assert_int_equal(list[0].left.ip, 0);
	assert_int_equal(list[1].left.ip, 0);
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
	turns_leave(&m.turns, 0, &at, &now);
	assert_int_equal(at.at[0].n_lefts, 0);
	assert_int_equal(list[0].left.ip, old.ip);
	assert_int_equal(list[1].left.ip, now.ip);
	turns_done(&m.turns);
}

/* Only what was learnt has to be forgotten, however many turns there are. */
static void turns_forget_what_was_left_is_not_known(void **state)
{
	const struct turn turns[] = {{'A', 100}, {'B', 200}, {'A', 300}, {'B', 400}, {0}};
	const struct turns_left now = {.ip = 0x22, .inside = true};
	struct turns_state at = {.at = {{.turn = 2}}, .n = 1};
	struct turns_cpu *cpu;
	struct made m = {0};

	(void)state;
	assert_int_equal(turns_init(&m.turns, 1), 0);
	add_turns(&m.turns, 0, turns);
	assert_int_equal(turns_link(&m.turns), 0);
	cpu = &m.turns.cpus[0];
	for (int i = 0; i < 3; i++) {
		turns_leave(&m.turns, 0, &at, &now);
		turns_leave(&m.turns, 0, &at, &now);
		cpu->passed = 2;
		assert_int_equal(cpu->list[2].left.ip, now.ip);
		assert_int_equal(cpu->n_noted, 1);
		turns_forget(&m.turns, 0);
		assert_int_equal(cpu->list[2].left.ip, 0);
		assert_int_equal(cpu->n_noted, 0);
		assert_int_equal(cpu->passed, 0);
	}
	turns_done(&m.turns);
}

/* A stretch that decodes in one process only may belong to any of its threads. */
static void turns_decide_says_the_process(void **state)
{
	const struct turn turns[] = {{'A', 100}, {'B', 900}, {0}};
	const struct stretch stretches[] = {
		{80, 120, 80, 120, 0x100, 0x100, false, "AB", 0, false, false},
		{80, 120, 80, 120, 0x100, 0x100, false, "AB", 0, false, false},
		{80, 120, 80, 120, 0x100, 0x100, false, "AB", 0, false, false},
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
					 .alike = on_alike,
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
	assert_int_equal(answer.n_threads, 2);
	assert_ptr_equal(answer.threads[0], &a);
	assert_ptr_equal(answer.threads[1], &b);
	assert_int_equal(answer.first, 0);
	assert_int_equal(answer.last, 1);
	turns_done(&m.turns);
}

/* Nobody knows which code ran behind a stop of the trace, nor which code ran in unknown turns. */
static void turns_decide_believes_no_thread_that_ran_unseen(void **state)
{
	const struct turn turns[] = {{'A', 100}, {'B', 200}, {'A', 300}, {'B', 900}, {0}};
	const struct turn unknown[] = {{'A', 100}, {'B', 150}, {ANYBODY, 200},
				       {'A', 300}, {'B', 900}, {0}};
	const struct stretch stretches[] = {
		{0, 20, 30, 40, 0x100, 0x180, false, NULL, 1, false, false},
		{110, 120, 130, 140, 0x400, 0x480, false, NULL, 2, false, false},
		{210, 220, 230, 240, 0x180, 0x1a0, false, NULL, 1, false, false},
		{280, 320, 280, 320, 0x1a0, 0x1c0, false, NULL, 0, false, false},
	};
	struct stretch known[ARRAY_SIZE(stretches)];
	struct made m = {0};

	(void)state;
	memcpy(known, stretches, sizeof(known));
	known[3].expected = 1;
	CHECK(turns, known);
	CHECK(unknown, stretches);
	assert_int_equal(turns_init(&m.turns, 1), 0);
	add_turns(&m.turns, 0, turns);
	turns_stop(&m.turns, 0, 150);
	assert_int_equal(turns_link(&m.turns), 0);
	check(&m, stretches, ARRAY_SIZE(stretches));
	turns_done(&m.turns);
}

/* A turn in which nothing was executed leaves its thread where it was, unless packets were lost,
 * the trace was stopped, or a program began. */
static void turns_decide_empty_turn_leaves_thread_where_it_was(void **state)
{
	const struct turn turns[] = {{'A', 100}, {'B', 200}, {'A', 300}, {'B', 400},
				     {'A', 500}, {'B', 900}, {0}};
	const struct stretch stretches[] = {
		{0, 20, 30, 40, 0x100, 0x180, true, NULL, 1, false, false},
		{110, 120, 130, 140, 0x400, 0x480, true, NULL, 2, false, false},
		{310, 320, 330, 340, 0x480, 0x490, true, NULL, 2, false, false},
		{480, 520, 480, 520, 0x490, 0x4a0, true, NULL, 2, false, false},
	};
	struct stretch open[ARRAY_SIZE(stretches)];
	struct made m;

	(void)state;
	CHECK(turns, stretches);
	memcpy(open, stretches, sizeof(open));
	open[3].expected = 0;
	open[2].broken = true;
	CHECK(turns, open);
	open[2].broken = false;
	for (int how = 0; how < 3; how++) {
		m = (struct made){0};
		assert_int_equal(turns_init(&m.turns, 1), 0);
		add_turns(&m.turns, 0, turns);
		if (how == 0)
			turns_stop(&m.turns, 0, 180);
		else if (how == 1)
			turns_dark(&m.turns, 0, 210, 290);
		else
			m.turns.cpus[0].list[2].space = (const struct space *)&m;
		assert_int_equal(turns_link(&m.turns), 0);
		check(&m, open, ARRAY_SIZE(open));
		turns_done(&m.turns);
	}
}

/* While a thread has none of the CPUs whose switches are recorded, it may have another one. */
static void turns_decide_believes_no_thread_that_may_run_elsewhere(void **state)
{
	const struct turn turns[] = {{'A', 100}, {'B', 200}, {'A', 300}, {'B', 900}, {0}};
	const struct stretch stretches[] = {
		{0, 20, 30, 40, 0x100, 0x180, false, NULL, 1, false, false},
		{110, 120, 130, 140, 0x400, 0x480, false, NULL, 2, false, false},
		{210, 220, 230, 240, 0x180, 0x1a0, false, NULL, 1, false, false},
		{280, 320, 280, 320, 0x1a0, 0x1c0, false, NULL, 0, false, false},
	};
	struct stretch known[ARRAY_SIZE(stretches)];
	struct made m;

	(void)state;
	memcpy(known, stretches, sizeof(known));
	known[3].expected = 1;
	CHECK(turns, known);
	for (int late = 0; late < 2; late++) {
		m = (struct made){0};
		assert_int_equal(turns_init(&m.turns, 1), 0);
		add_turns(&m.turns, 0, turns);
		assert_int_equal(turns_unseen(&m.turns, late ? 300 : 0, late ? 400 : SPACE_NOW), 0);
		assert_int_equal(turns_link(&m.turns), 0);
		check(&m, late ? known : stretches, ARRAY_SIZE(stretches));
		turns_done(&m.turns);
	}
}

/* A thread enters user code for the first time behind the system call that made it. */
static void turns_link_finds_births(void **state)
{
	static const struct timeline_thread parent = {.pid = 7, .tid = 7, .end = SPACE_NOW};
	static const struct timeline_thread child = {
		.pid = 9, .tid = 9, .ppid = 7, .begin = 50, .end = SPACE_NOW};
	struct turns t;

	(void)state;
	for (int lossy = 0; lossy < 2; lossy++) {
		assert_int_equal(turns_init(&t, 1), 0);
		t.cpus[0].list = calloc(2, sizeof(struct turns_turn));
		assert_non_null(t.cpus[0].list);
		t.cpus[0].n = 2;
		t.cpus[0].list[0] = (struct turns_turn){.until = 60, .thread = &parent};
		t.cpus[0].list[1] =
			(struct turns_turn){.since = 60, .until = 100, .thread = &child};
		t.lossy = lossy;
		assert_int_equal(turns_link(&t), 0);
		assert_false(t.cpus[0].list[0].born);
		assert_int_equal(t.cpus[0].list[1].born, !lossy);
		turns_done(&t);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(turns_decide_by_time_alone),
		cmocka_unit_test(turns_decide_long_stretch_fits_one_turn),
		cmocka_unit_test(turns_decide_by_where_they_left),
		cmocka_unit_test(turns_decide_handlers_begin_anywhere_else),
		cmocka_unit_test(turns_decide_turns_may_have_no_stretch),
		cmocka_unit_test(turns_decide_believes_no_thread_that_ran_unseen),
		cmocka_unit_test(turns_decide_empty_turn_leaves_thread_where_it_was),
		cmocka_unit_test(turns_decide_believes_no_thread_that_may_run_elsewhere),
		cmocka_unit_test(turns_link_finds_births),
		cmocka_unit_test(turns_decide_by_code),
		cmocka_unit_test(turns_decide_undecidable_is_nobodys),
		cmocka_unit_test(turns_decide_uncertain_turn_is_nobodys),
		cmocka_unit_test(turns_decide_without_time),
		cmocka_unit_test(turns_decide_knows_other_cpus),
		cmocka_unit_test(turns_leave_undecided_is_known_to_the_ways),
		cmocka_unit_test(turns_forget_what_was_left_is_not_known),
		cmocka_unit_test(turns_decide_says_the_process),
	};

	return cmocka_run_group_tests_name("turns", tests, NULL, NULL);
}
