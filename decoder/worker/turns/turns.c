/*
 * Keeps the table of turns of all CPUs: which thread ran when, where it was before, and how it left
 * user code.
 *
 * A stretch of a few bytes may lie in any turn where the trace tells no time, so no question about
 * a stretch may go through all turns: each turn links to the next one that matters.
 */
#include "decoder/worker/turns/turns.h"

#include <assert.h>
#include <stdlib.h>

#include "decoder/worker/turns/turns_private.h"
#include "proto/base.h"
#include "proto/bundle/manifest.h"

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
	free(t->unseen);
	*t = (struct turns){0};
}

/* A kernel thread maps nothing, at the begin of a turn as at its end. A program that begins maps
 * nothing yet, and has a new space: in the same turn, the program before it may have run. */
static bool is_silent(const struct timeline *timeline, const struct timeline_turn *turn)
{
	const struct timeline_thread *thread = turn->thread;
	uint64_t time = turn->until - 1;
	const struct space *space;

	if (!thread || timeline_space_uncertain(timeline, thread->pid, time))
		return false;
	space = timeline_space(timeline, thread->pid, time);
	return space && !space_is_mapped(space, time) &&
	       timeline_space(timeline, thread->pid, turn->since) == space;
}

static void load_turn(struct turns_cpu *to, const struct timeline *timeline, uint32_t cpu,
		      uint64_t horizon, size_t i)
{
	struct timeline_turn turn;

	timeline_get_turn(timeline, cpu, i, &turn);
	/* What was before its first turn was forgotten: any thread. */
	if (i == 0 && turn.since > 0 && horizon != MANIFEST_ABSENT && turn.since <= horizon)
		to->list[to->n++] = (struct turns_turn){.until = turn.since, .uncertain = true};
	to->list[to->n++] = (struct turns_turn){
		.since = turn.since,
		.until = turn.until,
		.thread = turn.thread,
		.uncertain = turn.uncertain,
		.silent = is_silent(timeline, &turn),
		.space = turn.thread ? timeline_space(timeline, turn.thread->pid, turn.until - 1)
				     : NULL,
	};
}

int turns_load(struct turns *t, size_t index, const struct timeline *timeline, uint32_t cpu,
	       uint64_t horizon)
{
	struct turns_cpu *to = &t->cpus[index];
	const struct timeline_loss *loss;
	size_t n = timeline_n_turns(timeline, cpu);

	assert(index < t->n_cpus && !to->list);
	if (n >= TURNS_NONE - 1)
		return -ENOMEM;
	for (size_t i = 0; !t->lossy && (loss = timeline_loss(timeline, i)); i++)
		t->lossy = loss->lost > 0;
	to->list = calloc(n + 2, sizeof(*to->list));
	if (!to->list)
		return -ENOMEM;
	to->n = 0;
	for (size_t i = 0; i < n; i++)
		load_turn(to, timeline, cpu, horizon, i);
	to->cpu = cpu;
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
	to->cpu = TURNS_NONE;
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
		turn->fresh = turn->space != t->cpus[before->cpu].list[before->turn].space;
		if (before->cpu == at->cpu)
			turn->run = list[before->turn].run;
	}
	return n;
}

/* Sets stops, and stopped where the trace was off. */
static void link_stops(struct turns_cpu *cpu)
{
	uint32_t stops = 0, dark = 0;

	for (size_t i = 0; i < cpu->n; i++) {
		struct turns_turn *turn = &cpu->list[i];

		dark += turn->dark_begins;
		turn->stopped = turn->stopped || dark > 0;
		dark -= turn->dark_ends;
		turn->stops = stops += turn->stopped;
	}
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

static int by_since(const void *a, const void *b)
{
	const struct turns_span *x = a, *y = b;

	return x->since < y->since ? -1 : x->since > y->since;
}

/* Collects the times in which any thread may have had some CPU, joined, in order. LIST has room for
 * all turns, and for what is unseen. */
static size_t find_unknown(const struct turns *t, struct turns_span *list)
{
	size_t n = 0, joined = 0;

	for (size_t i = 0; i < t->n_unseen; i++)
		list[n++] = t->unseen[i];
	for (size_t cpu = 0; cpu < t->n_cpus; cpu++)
		for (size_t i = 0; i < t->cpus[cpu].n; i++) {
			const struct turns_turn *turn = &t->cpus[cpu].list[i];

			if (turn->uncertain)
				list[n++] = (struct turns_span){turn->since, turn->until};
		}
	qsort(list, n, sizeof(*list), by_since);
	for (size_t i = 0; i < n; i++)
		if (joined > 0 && list[i].since <= list[joined - 1].until)
			list[joined - 1].until = MAX_OF(list[joined - 1].until, list[i].until);
		else
			list[joined++] = list[i];
	return joined;
}

/* Sets born and hidden of all turns that have a thread. */
static void link_births(struct turns *t, const struct lived *lives, size_t n,
			const struct turns_span *unknown, size_t n_unknown)
{
	for (size_t i = 0; i < n; i++) {
		const struct timeline_thread *thread = lives[i].thread;
		struct turns_turn *turn = &t->cpus[lives[i].cpu].list[lives[i].turn];
		uint64_t since = thread->begin;
		size_t at;

		/* A thread that was first seen when it got a CPU existed before. */
		turn->born = turn->before == TURNS_NONE && !t->lossy && thread->begin > 0 &&
			     thread->begin < turn->since;
		if (turn->before != TURNS_NONE)
			since = t->cpus[turn->before_cpu].list[turn->before].until;
		at = FIRST_WHERE(k, n_unknown, unknown[k].until > since);
		/* There is no time between two turns of which one goes on where the other ends. */
		turn->hidden =
			since < turn->since && at < n_unknown && unknown[at].since < turn->since;
	}
}

void turns_stop(struct turns *t, size_t index, uint64_t time)
{
	struct turns_cpu *cpu = &t->cpus[index];

	assert(index < t->n_cpus);
	if (cpu->n > 0)
		cpu->list[turns_at(cpu, time)].stopped = true;
}

void turns_dark(struct turns *t, size_t index, uint64_t since, uint64_t until)
{
	struct turns_cpu *cpu = &t->cpus[index];

	assert(index < t->n_cpus);
	if (cpu->n == 0 || since > until)
		return;
	cpu->list[turns_at(cpu, since)].dark_begins++;
	cpu->list[turns_at(cpu, until)].dark_ends++;
}

int turns_unseen(struct turns *t, uint64_t since, uint64_t until)
{
	if (ARRAY_RESERVE(t->unseen, t->max_unseen, t->n_unseen + 1) < 0)
		return -ENOMEM;
	t->unseen[t->n_unseen++] = (struct turns_span){since, until};
	return 0;
}

int turns_link(struct turns *t)
{
	CLEANUP_FREE struct lived *lives = NULL;
	CLEANUP_FREE struct turns_span *unknown = NULL;
	size_t n = 0;

	for (size_t i = 0; i < t->n_cpus; i++) {
		struct turns_cpu *cpu = &t->cpus[i];

		assert(!cpu->noted); /* only once */
		n += cpu->n;
		cpu->begin = UINT64_MAX;
		cpu->noted = calloc(cpu->n + 1, sizeof(*cpu->noted));
		if (!cpu->noted)
			return -ENOMEM;
	}
	lives = calloc(n + 1, sizeof(*lives));
	unknown = calloc(n + t->n_unseen + 1, sizeof(*unknown));
	if (!lives || !unknown)
		return -ENOMEM;
	n = link_lives(t, lives);
	link_births(t, lives, n, unknown, find_unknown(t, unknown));
	for (size_t i = 0; i < t->n_cpus; i++) {
		link_stops(&t->cpus[i]);
		link_open(&t->cpus[i]);
	}
	return 0;
}

size_t turns_at(const struct turns_cpu *cpu, uint64_t time)
{
	size_t lo = FIRST_WHERE(i, cpu->n, cpu->list[i].since > time);

	return lo > 0 ? lo - 1 : 0;
}

/* The `left` of TURN, to be written. Turns come nearly in order. */
static struct turns_left *note_left(struct turns_cpu *cpu, uint32_t turn)
{
	struct turns_turn *t = &cpu->list[turn];
	size_t i = cpu->n_noted;

	if (t->noted)
		return &t->left;
	for (; i > 0 && cpu->noted[i - 1] > turn; i--)
		cpu->noted[i] = cpu->noted[i - 1];
	cpu->noted[i] = turn;
	cpu->n_noted++;
	t->noted = true;
	return &t->left;
}

/* Forgets what is known of TURN and all turns behind it. */
static void forget_from(struct turns_cpu *cpu, uint32_t turn)
{
	while (cpu->n_noted > 0 && cpu->noted[cpu->n_noted - 1] >= turn) {
		struct turns_turn *last = &cpu->list[cpu->noted[--cpu->n_noted]];

		last->left = (struct turns_left){0};
		last->noted = false;
	}
}

/* A trace is walked in many pieces (decode_rounds.c), so this takes time for the turns of a piece,
 * and not for all turns. */
void turns_forget(struct turns *t, size_t cpu)
{
	assert(cpu < t->n_cpus);
	t->cpus[cpu].passed = 0;
	t->cpus[cpu].begin = UINT64_MAX;
	forget_from(&t->cpus[cpu], 0);
}

bool turns_untraced(const struct turns *t, size_t index, uint64_t time,
		    const struct timeline_thread *thread, uint64_t since)
{
	const struct turns_cpu *cpu = &t->cpus[index];
	const struct turns_turn *turn;
	size_t at = turns_at(cpu, time);

	assert(index < t->n_cpus);
	/* No time is known of this trace. */
	if (cpu->n == 0 || cpu->begin == UINT64_MAX)
		return false;
	turn = &cpu->list[at];
	while (at > 0 && turn->thread != thread && turn->since > since)
		turn = &cpu->list[--at];
	/* The turn of SINCE began no later. */
	while (turn->thread == thread && turn->since > since) {
		if (cpu->begin > turn->since)
			return true;
		if (turn->before == TURNS_NONE)
			return false;
		cpu = &t->cpus[turn->before_cpu];
		turn = &cpu->list[turn->before];
	}
	return false;
}

uint32_t turns_now(const struct turns_state *state)
{
	for (size_t i = 1; i < state->n; i++)
		if (state->at[i].turn != state->at[0].turn)
			return TURNS_NONE;
	return state->n > 0 ? state->at[0].turn : TURNS_NONE;
}

/* --- How user code was left, where several ways are possible --- */

static const struct turns_left *left_alone(const struct turns_past *w, uint32_t turn)
{
	for (size_t i = w->n_lefts; i-- > 0;)
		if (w->lefts[i].turn == turn)
			return &w->lefts[i].left;
	return NULL;
}

/* A way that does not believe a fact makes the turns forget the fact. */
static void settle_doubts(struct turns_cpu *cpu, struct turns_state *state)
{
	uint32_t unsure = TURNS_NONE;

	for (size_t i = 0; i < state->n; i++)
		if (state->at[i].vague)
			unsure = MIN_OF(unsure, state->at[i].unsure);
	forget_from(cpu, unsure);
	for (size_t i = 0; i < state->n; i++)
		state->at[i].vague = false;
}

/* The ways do not agree about TURN: what all of them knew of it (*KNOWN) becomes what each knows.
 */
static void split(struct turns_state *state, uint32_t turn, struct turns_left *known)
{
	for (size_t i = 0; i < state->n && known->ip != 0; i++)
		if (!left_alone(&state->at[i], turn))
			turns_remember(&state->at[i], turn, known);
	*known = (struct turns_left){0};
}

/* Moves what all ways know by now into the turns. */
static void settle(struct turns_cpu *cpu, struct turns_state *state)
{
	const struct turns_past first = state->at[0];

	for (uint32_t i = 0; i < first.n_lefts; i++) {
		const struct turns_left *left = &first.lefts[i].left;
		uint32_t turn = first.lefts[i].turn;
		bool agree = true;

		for (size_t w = 1; w < state->n; w++) {
			const struct turns_left *other = left_alone(&state->at[w], turn);

			agree = agree && other && turns_is_same_left(left, other);
		}
		if (!agree)
			continue;
		*note_left(cpu, turn) = *left;
		for (size_t w = 0; w < state->n; w++)
			turns_drop(&state->at[w], turn);
	}
}

static void leave_known(struct turns_cpu *cpu, struct turns_past *way,
			const struct turns_left *left)
{
	turns_drop(way, way->turn);
	*note_left(cpu, way->turn) = *left;
}

/* Each way knows how its thread left the stretch, as LEFT says; NULL: as the way knows already. */
static void leave_open(struct turns_cpu *cpu, struct turns_state *state,
		       const struct turns_left *left)
{
	for (size_t i = 0; left && i < state->n; i++)
		turns_remember(&state->at[i], state->at[i].turn, left);
	for (size_t i = 0; i < state->n; i++)
		split(state, state->at[i].turn, note_left(cpu, state->at[i].turn));
	/* Facts that had no room in some way are not known. */
	settle_doubts(cpu, state);
}

void turns_leave(struct turns *t, size_t cpu, struct turns_state *state,
		 const struct turns_left *left)
{
	struct turns_cpu *c = &t->cpus[cpu];
	const struct turns_left none = {0};

	assert(cpu < t->n_cpus && state->n <= TURNS_CANDIDATES);
	if (state->n == 0)
		return;
	settle_doubts(c, state);
	if (state->n == 1)
		leave_known(c, &state->at[0], left ? left : &none);
	else
		leave_open(c, state, left);
	settle(c, state);
}

void turns_end(struct turns *t, size_t cpu, const struct turns_state *state)
{
	uint32_t lowest = state->n > 0 ? state->at[0].turn : 0;

	assert(cpu < t->n_cpus);
	for (size_t i = 1; i < state->n; i++)
		lowest = MIN_OF(lowest, state->at[i].turn);
	forget_from(&t->cpus[cpu], lowest);
	t->cpus[cpu].passed = TURNS_NONE;
}
