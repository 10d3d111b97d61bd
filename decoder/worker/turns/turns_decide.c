/*
 * Puts stretches into turns: searches for the cheapest way to put the next stretches of a CPU into
 * its turns, and for the cheapest way that has another thread in the first of them. Where time
 * leaves one thread there is nothing to search.
 *
 * A way is followed stretch by stretch, and knows where each thread left user code on it. Ways that
 * agree in all that matters for what follows become one, and the dearest are given up, so a
 * decision costs at most TURNS_WINDOW * MAX_WAYS * TURNS_CANDIDATES steps.
 */
#include <assert.h>
#include <string.h>

#include "decoder/worker/turns/turns_private.h"
#include "proto/base.h"

#define MAX_WAYS 64u /* as many as turns_way.origins has bits */

/* How much dearer all other ways must be. */
#define MARGIN 3u
/* Where there are more turns to choose from, chance makes a wrong way cheap more easily: each
 * candidate beyond FEW_CANDIDATES adds CANDIDATE_MARGIN, up to MORE_MARGIN. */
#define FEW_CANDIDATES	 4u
#define CANDIDATE_MARGIN 2u
#define MORE_MARGIN	 8u
/* Ways that are so much dearer than the cheapest are given up. */
#define HOPELESS 18u

struct ways {
	size_t n;
	uint8_t n_choice[TURNS_CANDIDATES]; /* ways of each choice for the first stretch */
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
static bool is_same_future(const struct turns_way *a, const struct turns_way *b)
{
	if (a->past.turn != b->past.turn || a->first != b->first ||
	    a->past.n_lefts != b->past.n_lefts)
		return false;
	for (size_t i = 0; i < a->past.n_lefts; i++) {
		const struct turns_left_of *x = &a->past.lefts[i], *y = &b->past.lefts[i];

		if (x->turn != y->turn || x->left.ip != y->left.ip || x->left.how != y->left.how)
			return false;
	}
	return true;
}

/* There are too many ways: the dearest has to go, but never the last one of a choice. Another way
 * of the same choice inherits its origins, so that they are not forgotten. */
static void replace_way(struct ways *ways, const struct turns_way *w)
{
	struct turns_way left = *w;
	size_t dearest = MAX_WAYS, i;

	for (i = 0; i < ways->n; i++)
		if (ways->n_choice[ways->list[i].choice] > 1 &&
		    (dearest == MAX_WAYS ||
		     ways->list[i].past.cost > ways->list[dearest].past.cost))
			dearest = i;
	if (dearest < MAX_WAYS &&
	    (ways->list[dearest].past.cost > w->past.cost || ways->n_choice[w->choice] == 0)) {
		left = ways->list[dearest];
		ways->list[dearest] = *w;
		ways->n_choice[left.choice]--;
		ways->n_choice[w->choice]++;
	}
	for (i = 0; i < ways->n; i++)
		if (ways->list[i].choice == left.choice) {
			ways->list[i].origins |= left.origins;
			return;
		}
}

static void add_way(struct ways *ways, const struct turns_way *w)
{
	for (size_t i = 0; i < ways->n; i++) {
		struct turns_way *at = &ways->list[i];
		const uint64_t origins = at->origins;

		if (!is_same_future(at, w))
			continue;
		/* Two ways with one future become one: it has the cheaper past, and the origins of
		 * both unless one is a good deal dearer. */
		if (w->past.cost + MARGIN <= at->past.cost) {
			*at = *w;
		} else if (w->past.cost < at->past.cost) {
			*at = *w;
			at->origins |= origins;
		} else if (w->past.cost < at->past.cost + MARGIN) {
			at->origins |= w->origins;
		}
		return;
	}
	if (ways->n == MAX_WAYS) {
		replace_way(ways, w);
		return;
	}
	ways->list[ways->n++] = *w;
	ways->n_choice[w->choice]++;
}

static const struct turns_way *cheapest(const struct ways *ways)
{
	const struct turns_way *best = &ways->list[0];

	for (size_t i = 1; i < ways->n; i++)
		if (ways->list[i].past.cost < best->past.cost)
			best = &ways->list[i];
	return best;
}

/* The cost of the cheapest way with another thread in the first stretch than BEST has; false: there
 * is none. */
static bool find_rival(const struct turns_search *s, const struct ways *ways,
		       const struct turns_way *best, unsigned int *ret)
{
	bool found = false;

	for (size_t i = 0; i < ways->n; i++) {
		const struct turns_way *w = &ways->list[i];

		if (!is_other(s, w->first, best->first) || (found && w->past.cost >= *ret))
			continue;
		*ret = w->past.cost;
		found = true;
	}
	return found;
}

/* All ways from FROM over the stretch at hand, without the hopeless ones. False: there are none. */
static bool extend(const struct turns_search *s, const struct ways *from, struct ways *ret)
{
	unsigned int limit;
	size_t n = 0;

	ret->n = 0;
	memset(ret->n_choice, 0, sizeof(ret->n_choice));
	for (size_t i = 0; i < from->n; i++)
		for (size_t c = 0; c < s->n_candidates; c++) {
			struct turns_way w = from->list[i];

			if (w.past.turn != TURNS_NONE && s->candidates[c] < w.past.turn)
				continue;
			turns_go_on(s, &w, c);
			add_way(ret, &w);
		}
	if (ret->n == 0)
		return false;
	limit = cheapest(ret)->past.cost + HOPELESS;
	for (size_t i = 0; i < ret->n; i++)
		if (ret->list[i].past.cost <= limit)
			ret->list[n++] = ret->list[i];
		else
			ret->n_choice[ret->list[i].choice]--;
	ret->n = n;
	return true;
}

/* Looks at the stretches behind the first one until the first one is decided, or all are seen. */
static void look_ahead(struct turns_search *s, struct ways *ways)
{
	uint32_t lowest = s->candidates[0];
	struct ways next;

	for (size_t i = 1; i < TURNS_WINDOW; i++) {
		const struct turns_way *best = cheapest(ways);
		const struct turns_stretch *stretch;
		unsigned int rival;

		if (!find_rival(s, ways, best, &rival))
			return;
		if (i > 1 && s->n_candidates == 1 && rival >= best->past.cost + s->margin)
			return;
		stretch = s->q->stretch(s->q->userdata, i);
		if (!stretch) {
			/* There are no more: the turns that were over before the end had none. */
			const uint32_t last = (uint32_t)first_until(s, s->q->end);

			for (size_t k = 0; k < ways->n && s->q->end != 0; k++)
				ways->list[k].past.cost +=
					turns_skip_cost(s, ways->list[k].past.turn, last);
			return;
		}
		if (!find_candidates(s, stretch, lowest))
			return;
		find_proofs(s, i);
		if (!extend(s, ways, &next))
			return;
		*ways = next;
	}
}

/* Adds PAST, a way behind the first stretch that agrees with the answer, to STATE, which keeps the
 * cheapest. */
static void add_state(struct turns_state *state, const struct turns_past *past)
{
	size_t dearest = 0;

	if (state->n < TURNS_CANDIDATES) {
		state->at[state->n++] = *past;
		return;
	}
	for (size_t i = 1; i < state->n; i++)
		if (state->at[i].cost > state->at[dearest].cost)
			dearest = i;
	if (past->cost < state->at[dearest].cost)
		state->at[dearest] = *past;
}

/* Costs become relative to the cheapest way. */
static void finish_state(struct turns_answer *ret)
{
	struct turns_state *state = &ret->state;
	unsigned int least = state->at[0].cost;

	ret->first = ret->last = state->at[0].turn;
	for (size_t i = 1; i < state->n; i++) {
		least = MIN_OF(least, state->at[i].cost);
		ret->first = MIN_OF(ret->first, state->at[i].turn);
		ret->last = MAX_OF(ret->last, state->at[i].turn);
	}
	for (size_t i = 0; i < state->n; i++)
		state->at[i].cost -= least;
}

/* Whether decoding another CPU may tell how the thread of TURN left user code before. */
static bool waits_for(const struct turns_search *s, uint32_t turn)
{
	const struct turns_turn *t = &s->turns[turn];

	if (t->thread && t->before == TURNS_NONE)
		return t->born && t->left.how == TURNS_HOW_UNKNOWN;
	return t->before != TURNS_NONE && t->before_cpu != s->q->cpu && !turns_is_passed(s, t);
}

/* A thread of the process of all candidates up to cost LIMIT; NULL: there are several processes, or
 * any thread is possible. */
static const struct timeline_thread *common_process(const struct turns_search *s,
						    const struct ways *ways, unsigned int limit)
{
	const struct timeline_thread *found = NULL;

	for (size_t i = 0; i < ways->n; i++) {
		const struct turns_turn *turn = &s->turns[ways->list[i].first];

		if (ways->list[i].past.cost > limit)
			continue;
		if (turn->uncertain || ways->list[i].first_bad ||
		    (found && found->pid != turn->thread->pid))
			return NULL;
		found = turn->thread;
	}
	return found;
}

/* Answers. BEGUN: the ways as they were behind the first stretch. */
static void judge(const struct turns_search *s, const struct ways *begun, const struct ways *ways,
		  struct turns_answer *ret)
{
	const struct turns_way *best = cheapest(ways);
	const struct turns_turn *turn = &s->turns[best->first];
	uint64_t origins = 0;
	unsigned int rival = 0;
	bool rivals = find_rival(s, ways, best, &rival), decided = !turn->uncertain;

	if (rivals)
		decided = decided && !best->first_bad && rival >= best->past.cost + s->margin;
	if (decided)
		ret->thread = turn->thread;
	else
		ret->process = common_process(s, ways, best->past.cost + s->margin - 1);
	for (size_t i = 0; i < ways->n; i++) {
		const struct turns_way *w = &ways->list[i];

		if (decided && is_other(s, w->first, best->first))
			continue;
		ret->wait = ret->wait || (!decided && waits_for(s, w->first));
		origins |= w->origins;
	}
	for (size_t i = 0; i < begun->n; i++)
		if (origins >> i & 1)
			add_state(&ret->state, &begun->list[i].past);
	finish_state(ret);
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
	ret->first = ret->last = at;
	ret->wait = false;
	ret->same = true;
	return true;
}

void turns_begin(const struct turns *t, size_t cpu, uint64_t lo, uint64_t hi,
		 struct turns_state *ret)
{
	const struct turns_question none = {0};
	const struct turns_search s = {
		.q = &none, .turns = t->cpus[cpu].list, .n_turns = t->cpus[cpu].n};
	size_t i = first_until(&s, lo);

	*ret = (struct turns_state){0};
	for (; i < s.n_turns && s.turns[i].since <= hi; i++) {
		if (ret->n == TURNS_CANDIDATES) {
			ret->n = 0;
			return;
		}
		ret->at[ret->n++] = (struct turns_past){.turn = (uint32_t)i};
	}
}

static void search(const struct turns_question *q, struct turns_answer *ret)
{
	static const struct turns_way none = {.past.turn = TURNS_NONE, .first = TURNS_NONE};
	const struct turns_cpu *cpu = &q->turns->cpus[q->cpu];
	struct turns_search s = {
		.q = q, .turns = cpu->list, .n_turns = cpu->n, .empty = turns_empty_cost(q->turns)};
	const struct turns_stretch *first;
	struct ways from, begun, ways;
	bool few;

	*ret = (struct turns_answer){.first = TURNS_NONE, .last = TURNS_NONE, .same = true};
	few = find_candidates(&s, q->first, lowest_start(q->state));
	if (few && is_choice(&s) && (first = q->stretch(q->userdata, 0)))
		few = find_candidates(&s, first, lowest_start(q->state));
	if (s.n_candidates == 0)
		return;
	ret->same = false;
	/* More turns than can be told apart: the thread is known when it is the only one. */
	if (!few) {
		const struct turns_turn *turn = &s.turns[s.candidates[0]];

		if (!turn->uncertain &&
		    (turn->other >= s.n_turns || s.turns[turn->other].since > s.stretch->enter_hi))
			ret->thread = turn->thread;
		ret->state.n = 1;
		ret->state.at[0] = (struct turns_past){.turn = s.candidates[0]};
		finish_state(ret);
		return;
	}
	s.margin = MARGIN;
	if (s.n_candidates > FEW_CANDIDATES)
		s.margin += (unsigned int)MIN_OF(
			CANDIDATE_MARGIN * (s.n_candidates - FEW_CANDIDATES), (size_t)MORE_MARGIN);
	/* The ways that the state says, or one way that knows nothing. */
	from.n = MAX_OF(q->state->n, (size_t)1);
	for (size_t i = 0; i < from.n; i++) {
		from.list[i] = none;
		if (i < q->state->n)
			from.list[i].past = q->state->at[i];
	}
	s.choice = is_choice(&s);
	if (s.choice)
		find_proofs(&s, 0);
	if (!extend(&s, &from, &begun)) {
		ret->same = true;
		return;
	}
	for (uint32_t i = 0; i < begun.n; i++)
		begun.list[i].origins = (uint64_t)1 << i;
	ways = begun;
	look_ahead(&s, &ways);
	judge(&s, &begun, &ways, ret);
}

void turns_decide(const struct turns_question *q, struct turns_answer *ret)
{
	assert(q->cpu < q->turns->n_cpus && q->state->n <= TURNS_CANDIDATES);
	if (!decide_same(q, ret))
		search(q, ret);
}
