/*
 * Says which ways to put stretches into turns are possible: whether a thread may enter user code
 * where a stretch begins, from where the thread left user code on that way; and keeps what each way
 * knows of that.
 */
#include <string.h>

#include "decoder/worker/turns/turns_private.h"
#include "proto/base.h"

/* --- What a way knows --- */

void turns_drop(struct turns_past *w, uint32_t turn)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < w->n_lefts; i++)
		if (w->lefts[i].turn != turn)
			w->lefts[n++] = w->lefts[i];
	w->n_lefts = n;
}

/* W has no room for what it knows of TURN: it knows nothing from there on that it has not itself.
 */
static void forget(struct turns_past *w, uint32_t turn)
{
	w->unsure = w->vague ? MIN_OF(w->unsure, turn) : turn;
	w->vague = true;
}

void turns_doubt(struct turns_past *w, uint32_t turn)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < w->n_lefts; i++)
		if (w->lefts[i].turn < turn)
			w->lefts[n++] = w->lefts[i];
	w->n_lefts = n;
	forget(w, turn);
}

void turns_remember(struct turns_past *w, uint32_t turn, const struct turns_left *left)
{
	const struct turns_left_of of = {turn, *left};
	uint32_t at;

	turns_drop(w, turn);
	if (w->n_lefts == TURNS_MAX_LEFTS) {
		forget(w, w->lefts[0].turn);
		w->n_lefts--;
		memmove(&w->lefts[0], &w->lefts[1], w->n_lefts * sizeof(w->lefts[0]));
	}
	/* Turns come nearly in order. */
	for (at = w->n_lefts; at > 0 && w->lefts[at - 1].turn > turn; at--)
		w->lefts[at] = w->lefts[at - 1];
	w->lefts[at] = of;
	w->n_lefts++;
}

bool turns_is_same_left(const struct turns_left *a, const struct turns_left *b)
{
	return a->ip == b->ip && a->again == b->again && a->context == b->context &&
	       a->inside == b->inside;
}

static const struct turns_left *find_left(const struct turns_past *w, uint32_t turn)
{
	for (uint32_t i = w->n_lefts; i-- > 0;)
		if (w->lefts[i].turn == turn)
			return &w->lefts[i].left;
	return NULL;
}

/* W forgets what V does not know as well. */
static void keep_common(struct turns_past *w, const struct turns_past *v)
{
	struct turns_past kept = *w;

	kept.n_lefts = 0;
	for (uint32_t i = 0; i < w->n_lefts; i++) {
		const struct turns_left *other = find_left(v, w->lefts[i].turn);

		if (other && turns_is_same_left(other, &w->lefts[i].left))
			kept.lefts[kept.n_lefts++] = w->lefts[i];
		else
			forget(&kept, w->lefts[i].turn);
	}
	*w = kept;
}

void turns_join(struct turns_past *a, const struct turns_past *b)
{
	struct turns_past other = *b;

	keep_common(&other, a);
	keep_common(a, b);
	if (other.vague)
		forget(a, other.unsure);
	a->loose = a->loose || b->loose;
}

/* --- Where threads left user code --- */

/* How TURN was left on way W, or else as it was decoded. */
static const struct turns_left *left_on(const struct turns_search *s, const struct turns_way *w,
					uint32_t turn)
{
	static const struct turns_left none;
	const struct turns_left *left = find_left(&w->past, turn);

	if (s->turns[turn].stopped)
		return &none;
	if (left)
		return left;
	return w->past.vague && turn >= w->past.unsure ? &none : &s->turns[turn].left;
}

bool turns_is_passed(const struct turns_search *s, const struct turns_turn *t)
{
	return t->before < s->q->turns->cpus[t->before_cpu].passed;
}

/* How the thread of TURN left user code last, on way W. */
static const struct turns_left *last_left(const struct turns_search *s, const struct turns_way *w,
					  uint32_t turn)
{
	static const struct turns_left none;
	const struct turns_turn *t = &s->turns[turn], *before;

	if (w->past.turn == turn)
		return left_on(s, w, turn);
	if (t->before == TURNS_NONE || t->hidden)
		return &none;
	if (t->before_cpu == s->q->cpu)
		return left_on(s, w, t->before);
	before = &s->q->turns->cpus[t->before_cpu].list[t->before];
	return turns_is_passed(s, t) && !before->stopped ? &before->left : &none;
}

/* --- Where threads may enter --- */

/* More turns without a stretch in a row are rare, and of them nothing is known. */
#define MAX_EMPTY 16u

/* Whether LEFT, where the stretch begins, shows that no handler of candidate C begins there. */
static bool is_shown(const struct turns_search *s, const struct turns_left *left, size_t c)
{
	const uint32_t context = s->proofs[c].context;

	return left->context != 0 && context != 0 &&
	       (left->context == context ||
		s->q->alike(s->q->userdata, left->context, context, left->ip));
}

void turns_find_inside(struct turns_search *s, const struct turns_way *ways, size_t n)
{
	for (size_t c = 0; c < s->n_candidates; c++) {
		const uint8_t behind = s->proofs[c].behind;

		s->inside[c] = behind == TURNS_CALL_FORK || behind == TURNS_CALL_OTHER;
	}
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < s->n_candidates; k++) {
			const struct turns_left *left;

			if (s->candidates[k] < ways[i].past.turn)
				continue;
			left = last_left(s, &ways[i], s->candidates[k]);
			if (!left->inside || left->ip != s->stretch->enter)
				continue;
			for (size_t c = 0; c < s->n_candidates; c++)
				s->inside[c] = s->inside[c] || is_shown(s, left, c);
		}
}

/* Whether TURN, the first turn of a new thread, has no stretch yet on W. Then the thread enters
 * behind the system call that made it, unless by a handler. */
static bool is_unborn(const struct turns_search *s, const struct turns_way *w, uint32_t turn)
{
	const struct turns_turn *t = &s->turns[turn];

	return t->born && !t->hidden && w->past.turn != turn && !w->past.vague &&
	       t->since > s->q->turns->cpus[s->q->cpu].begin;
}

bool turns_may_go_on(const struct turns_search *s, const struct turns_way *w, size_t c)
{
	const struct turns_proof *proof = &s->proofs[c];
	const uint64_t enter = s->stretch->enter;
	uint32_t turn = s->candidates[c];
	const struct turns_left *left;

	if (turn < w->past.turn || proof->impossible)
		return false;
	if (!s->choice || s->lax || s->turns[turn].uncertain || s->stretch->broken || proof->fresh)
		return true;
	left = last_left(s, w, turn);
	if (left->ip == 0)
		return !is_unborn(s, w, turn) || !s->inside[c] ||
		       proof->behind == TURNS_CALL_FORK || proof->behind == TURNS_CALL_UNKNOWN;
	return enter == left->ip || (left->again != 0 && enter == left->again) || !s->inside[c];
}

/* Whether it is known on W that TURN, which has no stretch, left its thread where it was. */
static bool is_empty(const struct turns_search *s, const struct turns_way *w, uint32_t turn)
{
	const struct turns_turn *t = &s->turns[turn], *last = &s->turns[w->past.turn];

	/* Since a stop the trace may have been off. */
	return t->stops == last->stops && !last->stopped && !t->uncertain && !t->fresh &&
	       t->since > s->q->turns->cpus[s->q->cpu].begin &&
	       !(w->past.vague && turn >= w->past.unsure);
}

/* W goes on in TURN: in the turns between nothing was executed. */
static void pass_empty(const struct turns_search *s, struct turns_way *w, uint32_t turn)
{
	uint32_t n = 0;

	for (uint32_t i = w->past.turn + 1; i < turn && n < MAX_EMPTY; i++, n++) {
		struct turns_left left;

		i = s->turns[i].open;
		if (i >= turn)
			return;
		left = is_empty(s, w, i) ? *last_left(s, w, i) : (struct turns_left){0};
		if (left.ip == 0)
			continue;
		if (s->turns[i].before_cpu == s->q->cpu)
			turns_drop(&w->past, s->turns[i].before);
		turns_remember(&w->past, i, &left);
	}
}

void turns_go_on(const struct turns_search *s, struct turns_way *w, size_t c)
{
	const struct turns_proof *proof = &s->proofs[c];
	uint32_t turn = s->candidates[c];
	const struct turns_turn *t = &s->turns[turn];

	/* Threads may have executed unseen in any turn since then. */
	if (s->stretch->broken)
		turns_doubt(&w->past, w->past.turn);
	else if (!w->past.loose && !s->lax)
		pass_empty(s, w, turn);
	w->past.loose = false;
	/* Nobody asks for the thread's turn before any more. */
	if (turn != w->past.turn && t->before != TURNS_NONE && t->before_cpu == s->q->cpu)
		turns_drop(&w->past, t->before);
	w->past.turn = turn;
	turns_remember(&w->past, turn, proof->left.ip != 0 ? &proof->left : &s->stretch->left);
}
