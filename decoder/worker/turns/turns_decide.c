/*
 * Puts stretches into turns: follows all possible ways to put the next stretches of a CPU into its
 * turns, until all that are left have one thread in the first of these stretches, or the search is
 * long enough. Where time leaves one thread there is nothing to search.
 *
 * A way is followed stretch by stretch, and knows where each thread left user code on it. Ways that
 * agree in all that matters for what follows become one. Where there are too many, ways with the
 * same turn become one that knows what all of them know, so nothing possible is lost.
 */
#include <assert.h>
#include <string.h>

#include "decoder/worker/turns/turns_private.h"
#include "proto/base.h"

#define MAX_WAYS 64u /* as many as turns_way.origins has bits, and more than TURNS_CANDIDATES */
/* Steps of looking ahead, one for each way and candidate. What is open by then mostly stays open:
 * threads that do the same at the same places. */
#define MAX_WORK 256u

struct ways {
	size_t n;
	struct turns_way list[MAX_WAYS];
};

/* The first turn that ends at TIME or later. */
static size_t first_until(const struct turns_search *s, uint64_t time)
{
	return FIRST_WHERE(i, s->n_turns, s->turns[i].until >= time);
}

/* The first turn from I on that a stretch may lie in; the number of turns or more: there is none.
 */
static size_t open_from(const struct turns_search *s, size_t i)
{
	return i < s->n_turns ? s->turns[i].open : s->n_turns;
}

/* The turns from LOWEST on that STRETCH may lie in by time. False: too many. */
static bool find_candidates(struct turns_search *s, const struct turns_stretch *stretch,
			    uint32_t lowest)
{
	size_t i = open_from(s, MAX_OF(first_until(s, stretch->leave_lo), (size_t)lowest));

	s->stretch = stretch;
	s->n_candidates = 0;
	for (; i < s->n_turns && s->turns[i].since <= stretch->enter_hi; i = open_from(s, i + 1)) {
		if (s->n_candidates == TURNS_CANDIDATES)
			return false;
		s->candidates[s->n_candidates++] = (uint32_t)i;
	}
	return true;
}

static bool is_other(const struct turns_search *s, uint32_t a, uint32_t b)
{
	return s->turns[a].run != s->turns[b].run;
}

static bool is_choice(const struct turns_search *s)
{
	for (size_t i = 1; i < s->n_candidates; i++)
		if (is_other(s, s->candidates[0], s->candidates[i]))
			return true;
	return false;
}

static void find_proofs(struct turns_search *s, size_t stretch)
{
	memset(s->proofs, 0, sizeof(s->proofs));
	for (size_t i = 0; i < s->n_candidates; i++)
		s->q->proof(s->q->userdata, stretch, s->candidates[i], &s->proofs[i]);
}

static uint32_t lowest_start(const struct turns_state *state)
{
	uint32_t lowest = state->n > 0 ? state->at[0].turn : 0;

	for (size_t i = 1; i < state->n; i++)
		lowest = MIN_OF(lowest, state->at[i].turn);
	return lowest;
}

/* Whether A and B agree in all that matters for the stretches to come. */
static bool is_same_future(const struct turns_past *a, const struct turns_past *b)
{
	if (a->turn != b->turn || a->n_lefts != b->n_lefts || a->vague != b->vague ||
	    (a->vague && a->unsure != b->unsure) || a->loose != b->loose)
		return false;
	for (size_t i = 0; i < a->n_lefts; i++)
		if (a->lefts[i].turn != b->lefts[i].turn ||
		    !turns_is_same_left(&a->lefts[i].left, &b->lefts[i].left))
			return false;
	return true;
}

/* All ways have a candidate's turn, so where there is no room some way has the turn of W. */
static void add_way(struct ways *ways, const struct turns_way *w)
{
	size_t same = MAX_WAYS;

	for (size_t i = 0; i < ways->n; i++) {
		if (ways->list[i].past.turn != w->past.turn)
			continue;
		same = i;
		if (!is_same_future(&ways->list[i].past, &w->past))
			continue;
		ways->list[i].origins |= w->origins;
		return;
	}
	/* One place is kept for each candidate without a way. */
	if (ways->n < MAX_WAYS - TURNS_CANDIDATES || same == MAX_WAYS) {
		ways->list[ways->n++] = *w;
		return;
	}
	turns_join(&ways->list[same].past, &w->past);
	ways->list[same].origins |= w->origins;
}

/* All ways from FROM over the stretch at hand. False: there are none. */
static bool extend(struct turns_search *s, const struct ways *from, struct ways *ret)
{
	ret->n = 0;
	if (s->choice)
		turns_find_inside(s, from->list, from->n);
	for (size_t i = 0; i < from->n; i++)
		for (size_t c = 0; c < s->n_candidates; c++) {
			struct turns_way w;

			if (!turns_may_go_on(s, &from->list[i], c))
				continue;
			w = from->list[i];
			turns_go_on(s, &w, c);
			add_way(ret, &w);
		}
	return ret->n > 0;
}

/* The ways behind the first stretch that WAYS come from, as bits. */
static uint64_t origins_of(const struct ways *ways)
{
	uint64_t origins = 0;

	for (size_t i = 0; i < ways->n; i++)
		origins |= ways->list[i].origins;
	return origins;
}

/* Whether the ways of BEGUN that ORIGINS has all have one thread. */
static bool is_one(const struct turns_search *s, const struct ways *begun, uint64_t origins)
{
	uint32_t first = TURNS_NONE;

	for (size_t i = 0; i < begun->n; i++) {
		const uint32_t turn = begun->list[i].past.turn;

		if ((origins >> i & 1) == 0)
			continue;
		if (s->turns[turn].uncertain || (first != TURNS_NONE && is_other(s, turn, first)))
			return false;
		first = turn;
	}
	return true;
}

static uint32_t lowest_turn(const struct ways *ways)
{
	uint32_t lowest = TURNS_NONE;

	for (size_t i = 0; i < ways->n; i++)
		lowest = MIN_OF(lowest, ways->list[i].past.turn);
	return lowest;
}

/* Looks at the stretches behind the first one until the first one is decided, or enough are seen.
 */
static void look_ahead(struct turns_search ahead, const struct ways *begun, struct ways *ways)
{
	struct turns_search *s = &ahead;
	struct ways next;
	size_t work = 0;

	for (size_t i = 1; i < TURNS_WINDOW && !is_one(s, begun, origins_of(ways)); i++) {
		const struct turns_stretch *stretch = s->q->stretch(s->q->userdata, i);

		if (!stretch || !find_candidates(s, stretch, lowest_turn(ways)))
			return;
		work += ways->n * s->n_candidates;
		if (work > MAX_WORK)
			return;
		find_proofs(s, i);
		if (!extend(s, ways, &next))
			return;
		*ways = next;
	}
}

/* Adds PAST, a possible way behind the first stretch, to STATE. There is room for each candidate,
 * and for SPARE ways more. */
static void add_state(struct turns_state *state, const struct turns_past *past, size_t *spare)
{
	for (size_t i = 0; i < state->n; i++) {
		if (state->at[i].turn != past->turn)
			continue;
		if (*spare == 0) {
			turns_join(&state->at[i], past);
			return;
		}
		--*spare;
		break;
	}
	state->at[state->n++] = *past;
}

static void find_reach(struct turns_answer *ret)
{
	const struct turns_state *state = &ret->state;

	ret->first = ret->last = state->at[0].turn;
	for (size_t i = 1; i < state->n; i++) {
		ret->first = MIN_OF(ret->first, state->at[i].turn);
		ret->last = MAX_OF(ret->last, state->at[i].turn);
	}
}

/* Whether decoding another CPU may tell how the thread of TURN left user code before. */
static bool waits_for(const struct turns_search *s, uint32_t turn)
{
	const struct turns_turn *t = &s->turns[turn];

	return t->before != TURNS_NONE && !t->hidden && t->before_cpu != s->q->cpu &&
	       !turns_is_passed(s, t);
}

/* Adds the thread of TURN to those that the stretch may belong to. False: any thread may be. */
static bool add_thread(const struct turns_turn *turn, struct turns_answer *ret)
{
	if (turn->uncertain)
		return false;
	for (size_t i = 0; i < ret->n_threads; i++)
		if (ret->threads[i] == turn->thread)
			return true;
	ret->threads[ret->n_threads++] = turn->thread;
	return true;
}

/* Not decided: names the candidates of the ways in RET's state, and their process if there is one.
 */
static void name_candidates(const struct turns_search *s, struct turns_answer *ret)
{
	for (size_t i = 0; i < ret->state.n; i++) {
		const uint32_t turn = ret->state.at[i].turn;

		ret->wait = ret->wait || waits_for(s, turn);
		if (!add_thread(&s->turns[turn], ret)) {
			ret->n_threads = 0;
			return;
		}
	}
	ret->process = ret->threads[0];
	for (size_t i = 1; i < ret->n_threads; i++)
		if (ret->threads[i]->pid != ret->threads[0]->pid)
			ret->process = NULL;
}

/* Answers. BEGUN: the ways as they were behind the first stretch. */
static void judge(const struct turns_search *s, const struct ways *begun, const struct ways *ways,
		  struct turns_answer *ret)
{
	const uint64_t origins = origins_of(ways);
	size_t spare = TURNS_CANDIDATES - s->n_candidates;

	for (size_t i = 0; i < begun->n; i++)
		if (origins >> i & 1)
			add_state(&ret->state, &begun->list[i].past, &spare);
	find_reach(ret);
	if (is_one(s, begun, origins) && !s->lax)
		ret->thread = s->turns[ret->state.at[0].turn].thread;
	else
		name_candidates(s, ret);
}

/* The usual case, for speed: the stretch lies well within the turn of the stretch before. */
static bool decide_same(const struct turns_question *q, struct turns_answer *ret)
{
	uint32_t at = turns_now(q->state);
	const struct turns_turn *turn;

	if (at == TURNS_NONE)
		return false;
	turn = &q->turns->cpus[q->cpu].list[at];
	if (q->first->enter_lo < turn->since || q->first->enter_hi >= turn->until ||
	    turn->uncertain || turns_is_closed(turn))
		return false;
	ret->thread = turn->thread;
	ret->process = NULL;
	ret->n_threads = 0;
	ret->first = ret->last = at;
	ret->wait = false;
	ret->same = true;
	return true;
}

void turns_begin(struct turns *t, size_t cpu, uint64_t lo, uint64_t hi, struct turns_state *ret)
{
	const struct turns_question none = {0};
	const struct turns_search s = {
		.q = &none, .turns = t->cpus[cpu].list, .n_turns = t->cpus[cpu].n};
	size_t i = first_until(&s, lo);

	t->cpus[cpu].begin = hi;
	*ret = (struct turns_state){0};
	for (; i < s.n_turns && s.turns[i].since <= hi; i++) {
		if (ret->n == TURNS_CANDIDATES) {
			ret->n = 0;
			return;
		}
		ret->at[ret->n++] = (struct turns_past){.turn = (uint32_t)i};
	}
}

/* There are more turns than can be told apart: the thread is known when it is the only one. */
static void answer_many(const struct turns_search *s, struct turns_answer *ret)
{
	const struct turns_turn *turn = &s->turns[s->candidates[0]];

	if (!turn->uncertain &&
	    (turn->other >= s->n_turns || s->turns[turn->other].since > s->stretch->enter_hi))
		ret->thread = turn->thread;
	ret->state.n = 1;
	ret->state.at[0] = (struct turns_past){.turn = s->candidates[0]};
	turns_doubt(&ret->state.at[0], s->candidates[0]);
	ret->state.at[0].loose = true;
	find_reach(ret);
}

/* Begins with the ways that the question's state says, or with one that knows nothing. */
static void begin_ways(const struct turns_question *q, struct ways *ret)
{
	ret->n = MAX_OF(q->state->n, (size_t)1);
	for (size_t i = 0; i < ret->n; i++) {
		ret->list[i] = (struct turns_way){0};
		if (i < q->state->n)
			ret->list[i].past = q->state->at[i];
		else
			ret->list[i].past = (struct turns_past){.vague = true, .loose = true};
	}
}

/* The ways over the first stretch. What contradicts itself says nothing: then of the evidence only
 * the code counts, and nothing is known any more of where threads left user code. */
static bool begin_search(struct turns_search *s, struct ways *ret)
{
	struct ways from;

	begin_ways(s->q, &from);
	if (extend(s, &from, ret))
		return true;
	s->lax = true;
	for (size_t i = 0; i < from.n; i++)
		turns_doubt(&from.list[i].past, from.list[i].past.turn);
	return extend(s, &from, ret);
}

static void search(const struct turns_question *q, struct turns_answer *ret)
{
	const struct turns_cpu *cpu = &q->turns->cpus[q->cpu];
	struct turns_search s = {.q = q, .turns = cpu->list, .n_turns = cpu->n};
	const struct turns_stretch *first;
	struct ways begun, ways;
	bool few;

	*ret = (struct turns_answer){.first = TURNS_NONE, .last = TURNS_NONE, .same = true};
	few = find_candidates(&s, q->first, lowest_start(q->state));
	if (few && is_choice(&s) && (first = q->stretch(q->userdata, 0)))
		few = find_candidates(&s, first, lowest_start(q->state));
	if (s.n_candidates == 0)
		return;
	ret->same = false;
	if (!few) {
		answer_many(&s, ret);
		return;
	}
	s.choice = is_choice(&s);
	if (s.choice)
		find_proofs(&s, 0);
	if (!begin_search(&s, &begun)) {
		ret->same = true;
		return;
	}
	for (uint32_t i = 0; i < begun.n; i++)
		begun.list[i].origins = (uint64_t)1 << i;
	ways = begun;
	if (!s.lax)
		look_ahead(s, &begun, &ways);
	judge(&s, &begun, &ways, ret);
}

void turns_decide(const struct turns_question *q, struct turns_answer *ret)
{
	assert(q->cpu < q->turns->n_cpus && q->state->n <= TURNS_CANDIDATES);
	if (!decide_same(q, ret))
		search(q, ret);
}
