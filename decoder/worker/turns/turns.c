/*
 * Keeps the table of turns of all CPUs: which thread ran when, where it was before, and how it left
 * user code.
 *
 * A stretch of a few bytes may lie in any turn where the trace tells no time, so no question about
 * a stretch may go through all turns or births: each turn links to the next one that matters, and
 * where births are many (BIRTHS_MAX) none is believed any more.
 */
#include "decoder/worker/turns/turns.h"

#include <assert.h>
#include <stdlib.h>

#include "decoder/worker/turns/turns_private.h"
#include "proto/base.h"

/* Births that are looked at in search of one thread's children. */
#define BIRTHS_MAX 256u

int turns_init(struct turns *t, size_t n_cpus)
{
	*t = (struct turns){.n_cpus = n_cpus};
	t->cpus = calloc(n_cpus + 1, sizeof(*t->cpus));
	return t->cpus ? 0 : -ENOMEM;
}

void turns_done(struct turns *t)
{
	for (size_t i = 0; t->cpus && i < t->n_cpus; i++) {
		free(t->cpus[i].list);
		free(t->cpus[i].noted);
	}
	free(t->cpus);
	free(t->births);
	*t = (struct turns){0};
}

/* A kernel thread maps nothing. */
static bool is_silent(const struct timeline *timeline, const struct timeline_turn *turn)
{
	const struct timeline_thread *thread = turn->thread;
	uint64_t time = turn->until - 1;
	const struct space *space;

	if (!thread || timeline_space_uncertain(timeline, thread->pid, time))
		return false;
	space = timeline_space(timeline, thread->pid, time);
	return space && !space_is_mapped(space, time);
}

int turns_load(struct turns *t, size_t index, const struct timeline *timeline, uint32_t cpu)
{
	struct turns_cpu *to = &t->cpus[index];
	const struct timeline_loss *loss;
	size_t n = timeline_n_turns(timeline, cpu);

	assert(index < t->n_cpus && !to->list);
	if (n >= TURNS_NONE)
		return -ENOMEM;
	for (size_t i = 0; !t->lossy && (loss = timeline_loss(timeline, i)); i++)
		t->lossy = loss->lost > 0;
	to->list = calloc(n + 1, sizeof(*to->list));
	if (!to->list)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		struct timeline_turn turn;

		timeline_get_turn(timeline, cpu, i, &turn);
		to->list[i] = (struct turns_turn){
			.since = turn.since,
			.until = turn.until,
			.thread = turn.thread,
			.uncertain = turn.uncertain,
			.preempted = turn.preempted,
			.silent = is_silent(timeline, &turn),
		};
	}
	to->n = n;
	return 0;
}

int turns_give(struct turns *t, size_t index, const struct timeline_thread *thread)
{
	struct turns_cpu *to = &t->cpus[index];

	assert(index < t->n_cpus && !to->list);
	to->list = calloc(1, sizeof(*to->list));
	if (!to->list)
		return -ENOMEM;
	to->list[0] = (struct turns_turn){.until = SPACE_NOW, .thread = thread};
	to->n = 1;
	return 0;
}

/* One turn of a thread, to be put in the order of its life. */
struct lived {
	const struct timeline_thread *thread;
	uint64_t since;
	uint32_t cpu, turn;
};

static int by_life(const void *a, const void *b)
{
	const struct lived *x = a, *y = b;

	if (x->thread != y->thread)
		return (uintptr_t)x->thread < (uintptr_t)y->thread ? -1 : 1;
	if (x->since != y->since)
		return x->since < y->since ? -1 : 1;
	if (x->cpu != y->cpu)
		return x->cpu < y->cpu ? -1 : 1;
	return x->turn < y->turn ? -1 : x->turn > y->turn;
}

/* Sets before and run of all turns. LIVES gets the turns of threads, in the order of their lives.
 * Returns how many there are. */
static size_t link_lives(struct turns *t, struct lived *lives)
{
	size_t n = 0;

	for (size_t cpu = 0; cpu < t->n_cpus; cpu++)
		for (size_t i = 0; i < t->cpus[cpu].n; i++) {
			struct turns_turn *turn = &t->cpus[cpu].list[i];

			turn->before_cpu = turn->before = TURNS_NONE;
			turn->run = (uint32_t)i;
			if (turn->thread)
				lives[n++] = (struct lived){turn->thread, turn->since,
							    (uint32_t)cpu, (uint32_t)i};
		}
	qsort(lives, n, sizeof(*lives), by_life);
	for (size_t i = 1; i < n; i++) {
		const struct lived *at = &lives[i], *before = &lives[i - 1];
		struct turns_turn *list = t->cpus[at->cpu].list, *turn = &list[at->turn];

		if (before->thread != at->thread)
			continue;
		turn->before_cpu = before->cpu;
		turn->before = before->turn;
		if (before->cpu == at->cpu)
			turn->run = list[before->turn].run;
	}
	return n;
}

/* Sets open and other, from the last turn to the first. */
static void link_open(struct turns_cpu *cpu)
{
	uint32_t open = TURNS_NONE;

	for (size_t i = cpu->n; i-- > 0;) {
		struct turns_turn *turn = &cpu->list[i];

		turn->other = open;
		if (open != TURNS_NONE && cpu->list[open].run == turn->run)
			turn->other = cpu->list[open].other;
		if (!turns_is_closed(turn))
			open = (uint32_t)i;
		turn->open = open;
	}
}

static int by_birth(const void *a, const void *b)
{
	const struct turns_birth *x = a, *y = b;

	return x->time < y->time ? -1 : x->time > y->time;
}

/* LIVES are in order of lives. */
static int find_births(struct turns *t, const struct lived *lives, size_t n)
{
	t->births = calloc(n + 1, sizeof(*t->births));
	if (!t->births)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		const struct timeline_thread *thread = lives[i].thread;
		struct turns_turn *turn = &t->cpus[lives[i].cpu].list[lives[i].turn];

		/* A thread that was first seen when it got a CPU existed before. */
		turn->born = turn->before == TURNS_NONE && thread->begin > 0 &&
			     thread->begin < turn->since;
		if (!turn->born)
			continue;
		t->births[t->n_births++] = (struct turns_birth){
			thread->begin, thread->pid, thread->ppid, lives[i].cpu, lives[i].turn};
	}
	qsort(t->births, t->n_births, sizeof(*t->births), by_birth);
	return 0;
}

int turns_link(struct turns *t)
{
	CLEANUP_FREE struct lived *lives = NULL;
	size_t n = 0;

	assert(!t->births); /* only once */
	for (size_t i = 0; i < t->n_cpus; i++) {
		struct turns_cpu *cpu = &t->cpus[i];

		n += cpu->n;
		cpu->noted = calloc(cpu->n + 1, sizeof(*cpu->noted));
		if (!cpu->noted)
			return -ENOMEM;
	}
	lives = calloc(n + 1, sizeof(*lives));
	if (!lives)
		return -ENOMEM;
	n = link_lives(t, lives);
	for (size_t i = 0; i < t->n_cpus; i++)
		link_open(&t->cpus[i]);
	return find_births(t, lives, n);
}

/* Whether the stretch of STATE certainly belongs to one thread. */
static bool is_decided(const struct turns_turn *list, const struct turns_state *state)
{
	for (size_t i = 0; i < state->n; i++) {
		const struct turns_turn *turn = &list[state->at[i].turn];

		if (turn->uncertain || turn->run != list[state->at[0].turn].run)
			return false;
	}
	return true;
}

size_t turns_at(const struct turns_cpu *cpu, uint64_t time)
{
	size_t lo = FIRST_WHERE(i, cpu->n, cpu->list[i].since > time);

	return lo > 0 ? lo - 1 : 0;
}

/* The `left` of TURN, to be written. */
static struct turns_left *note_left(struct turns_cpu *cpu, uint32_t turn)
{
	struct turns_turn *t = &cpu->list[turn];

	if (!t->noted)
		cpu->noted[cpu->n_noted++] = turn;
	t->noted = true;
	return &t->left;
}

/* A trace is walked in many pieces (decode_rounds.c), so this takes time for the turns of a piece,
 * and not for all turns. */
void turns_forget(struct turns *t, size_t cpu)
{
	struct turns_cpu *c = &t->cpus[cpu];

	assert(cpu < t->n_cpus);
	c->passed = 0;
	while (c->n_noted > 0) {
		struct turns_turn *turn = &c->list[c->noted[--c->n_noted]];

		turn->left = (struct turns_left){0};
		turn->noted = false;
	}
}

void turns_carry_signals(const struct turns_left *before, uint64_t enter, struct turns_left *left)
{
	bool known = before && before->how != TURNS_HOW_UNKNOWN && before->ip != 0;

	if (known && enter != before->ip && enter != before->again) {
		left->interrupted_ip = before->ip;
		left->interrupted_again = before->again;
	} else if (known && !before->sigreturn) {
		left->interrupted_ip = before->interrupted_ip;
		left->interrupted_again = before->interrupted_again;
	}
	if (!left->sigreturn)
		return;
	left->ip = left->interrupted_ip;
	left->again = left->interrupted_again;
}

uint32_t turns_now(const struct turns_state *state)
{
	for (size_t i = 1; i < state->n; i++)
		if (state->at[i].turn != state->at[0].turn)
			return TURNS_NONE;
	return state->n > 0 ? state->at[0].turn : TURNS_NONE;
}

/* --- How user code was left, where several ways are possible --- */

/* How TURN was left, as way W alone knows; NULL: it knows nothing. */
static const struct turns_left *left_alone(const struct turns_past *w, uint32_t turn)
{
	for (size_t i = w->n_lefts; i-- > 0;)
		if (w->lefts[i].turn == turn)
			return &w->lefts[i].left;
	return NULL;
}

static void drop_place(struct turns_past *w, uint32_t turn)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < w->n_lefts; i++)
		if (w->lefts[i].turn != turn)
			w->lefts[n++] = w->lefts[i];
	w->n_lefts = n;
}

/* The ways do not agree about TURN: what all of them knew of it (*KNOWN) becomes what each knows.
 */
static void split(struct turns_state *state, uint32_t turn, struct turns_left *known)
{
	for (size_t i = 0; i < state->n && known->how != TURNS_HOW_UNKNOWN; i++) {
		struct turns_past *w = &state->at[i];
		struct turns_left_of newest;

		if (left_alone(w, turn) || w->n_lefts == 0)
			continue;
		newest = w->lefts[w->n_lefts - 1];
		turns_remember(w, turn, known);
		turns_remember(w, newest.turn, &newest.left);
	}
	*known = (struct turns_left){0};
}

static bool is_same_left(const struct turns_left *a, const struct turns_left *b)
{
	return a && b && a->ip == b->ip && a->again == b->again &&
	       a->interrupted_ip == b->interrupted_ip &&
	       a->interrupted_again == b->interrupted_again && a->since == b->since &&
	       a->context == b->context && a->how == b->how && a->sigreturn == b->sigreturn;
}

/* Moves what all ways know by now into the turns. */
static void settle(struct turns_cpu *cpu, struct turns_state *state)
{
	const struct turns_past first = state->at[0];

	for (uint32_t i = 0; i < first.n_lefts; i++) {
		const struct turns_left *left = &first.lefts[i].left;
		uint32_t turn = first.lefts[i].turn;
		bool agree = true;

		for (size_t w = 1; w < state->n; w++)
			agree = agree && is_same_left(left, left_alone(&state->at[w], turn));
		if (!agree)
			continue;
		*note_left(cpu, turn) = *left;
		for (size_t w = 0; w < state->n; w++)
			drop_place(&state->at[w], turn);
	}
}

/* All ways are of one thread, so all of them know how its stretch was left. */
static void leave_decided(struct turns *t, struct turns_cpu *cpu, struct turns_state *state,
			  uint64_t enter, const struct turns_left *left)
{
	const struct turns_past *first = &state->at[0];
	const struct turns_turn *turn_now = &cpu->list[first->turn];
	const struct turns_left *before = &turn_now->left;
	struct turns_left now = *left;

	if (first->has_before)
		before = &first->before;
	else if (before->how == TURNS_HOW_UNKNOWN && turn_now->before != TURNS_NONE)
		before = &t->cpus[turn_now->before_cpu].list[turn_now->before].left;
	turns_carry_signals(before, enter, &now);
	for (size_t i = 0; i < state->n; i++) {
		uint32_t turn = state->at[i].turn;

		for (size_t w = 0; w < state->n; w++)
			drop_place(&state->at[w], turn);
		*note_left(cpu, turn) = now;
		state->at[i].has_before = false;
	}
}

/* Each way knows how its thread left the stretch, as LEFT says; NULL: as the way knows already. */
static void leave_open(struct turns_turn *list, struct turns_state *state, uint64_t enter,
		       const struct turns_left *left)
{
	for (size_t i = 0; i < state->n; i++) {
		struct turns_past *w = &state->at[i];
		struct turns_left now;

		if (left) {
			now = *left;
			if (w->has_before)
				turns_carry_signals(&w->before, enter, &now);
			turns_remember(w, w->turn, &now);
		}
		w->has_before = false;
	}
	for (size_t i = 0; i < state->n; i++)
		split(state, state->at[i].turn, &list[state->at[i].turn].left);
}

void turns_leave(struct turns *t, size_t cpu, struct turns_state *state, uint64_t enter,
		 const struct turns_left *left)
{
	struct turns_cpu *c = &t->cpus[cpu];
	const struct turns_left none = {0};

	assert(cpu < t->n_cpus && state->n <= TURNS_CANDIDATES);
	if (state->n == 0)
		return;
	if (is_decided(c->list, state))
		leave_decided(t, c, state, enter, left ? left : &none);
	else
		leave_open(c->list, state, enter, left);
	settle(c, state);
}

/* --- Births --- */

/* The first birth at TIME or later. */
static size_t first_birth(const struct turns *t, uint64_t time)
{
	return FIRST_WHERE(i, t->n_births, t->births[i].time >= time);
}

static bool is_child_of(const struct turns_birth *b, uint32_t pid)
{
	return b->ppid == pid || b->pid == pid;
}

bool turns_has_birth(const struct turns *t, uint32_t pid, uint64_t since, uint64_t until)
{
	size_t first = first_birth(t, since);

	for (size_t i = first; i < t->n_births && !t->disbelieved && t->births[i].time <= until;
	     i++)
		if (is_child_of(&t->births[i], pid) || i - first == BIRTHS_MAX)
			return true;
	return t->lossy || t->disbelieved;
}

void turns_restart(struct turns *t)
{
	t->n_used = t->n_empty = 0;
	t->disbelieved = false;
}

void turns_forked(struct turns *t, size_t cpu, const struct turns_state *state, uint64_t since,
		  uint64_t until)
{
	const struct turns_turn *list = t->cpus[cpu].list;
	const struct turns_turn *parent;
	size_t first;

	if (state->n == 0 || !is_decided(list, state))
		return;
	parent = &list[state->at[0].turn];
	if (t->disbelieved || !parent->thread || parent->left.how != TURNS_HOW_SYSCALL ||
	    parent->left.ip == 0)
		return;
	first = first_birth(t, since);
	for (size_t i = first; i < t->n_births && t->births[i].time <= until; i++) {
		const struct turns_birth *b = &t->births[i];
		struct turns_left *child;

		if (i - first == BIRTHS_MAX) {
			/* Too many births: which thread made which is not believed any more. */
			for (size_t k = 0; k < t->n_births; k++)
				t->cpus[t->births[k].cpu].list[t->births[k].turn].left.ip = 0;
			t->disbelieved = true;
			return;
		}
		if (!is_child_of(b, parent->thread->pid))
			continue;
		child = note_left(&t->cpus[b->cpu], b->turn);
		if (child->how == TURNS_HOW_UNKNOWN)
			*child = (struct turns_left){.ip = parent->left.ip,
						     .context = parent->left.context,
						     .how = parent->left.how};
		else if (child->ip != parent->left.ip)
			child->ip = 0; /* of two possible parents neither is believed */
	}
}

void turns_count(struct turns *t, size_t cpu, const struct turns_state *before,
		 const struct turns_state *now)
{
	const struct turns_turn *list = t->cpus[cpu].list;
	uint32_t from = turns_now(before), to = turns_now(now);

	if (from == TURNS_NONE || to == TURNS_NONE || from == to)
		return;
	t->n_used++;
	for (uint32_t i = from + 1; i < to; i++)
		t->n_empty += list[i].thread && !list[i].silent && !list[i].uncertain;
}
