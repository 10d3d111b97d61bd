/*
 * Says what it costs to put a stretch into a turn: how unlikely it is that the turn's thread was
 * there, from how user code was left and entered.
 */
#include <string.h>

#include "decoder/worker/turns/turns_private.h"
#include "proto/base.h"

#define MAX_SKIPS 64u

/* A turn in which the thread executed no user code. Kernels do that (a thread is woken only to
 * block again). Where it is hardly ever seen, such a turn decides alone. */
#define COST_EMPTY	 3u
#define COST_EMPTY_USUAL 1u
#define EMPTY_RARE	 64u
#define COST_EMPTY_MAX	 9u
#define COST_LEFT_ODD	 1u /* preempted behind a system call, or blocked in the middle of code */
#define COST_LEFT_STUCK	 3u /* blocked in a system call that does not block */
#define COST_ENTER_SAME	 0u
#define COST_ENTER_KNOWN 1u /* nothing to compare with */
#define COST_ENTER_OTHER 3u /* a signal's handler, or another thread */
/* Behind a system call by which the thread did not leave: no handler begins there. */
#define COST_ENTER_FOREIGN 6u
#define COST_CHILDLESS	   3u

unsigned int turns_empty_cost(const struct turns *t)
{
	bool usual = t->n_empty > 0 && t->n_empty > t->n_used / EMPTY_RARE;

	return usual ? COST_EMPTY_USUAL : COST_EMPTY;
}

unsigned int turns_skip_cost(const struct turns_search *s, uint32_t from, uint32_t to)
{
	unsigned int cost = 0;

	for (uint32_t i = from + 1; i < to && i - from < MAX_SKIPS; i++)
		if (!turns_is_closed(&s->turns[i]) && !s->turns[i].uncertain)
			cost += s->empty;
	return MIN_OF(cost, COST_EMPTY_MAX);
}

/* How TURN was left on way W, or else as it was decoded. */
static const struct turns_left *left_on(const struct turns_search *s, const struct turns_way *w,
					uint32_t turn)
{
	for (size_t i = w->past.n_lefts; i-- > 0;)
		if (w->past.lefts[i].turn == turn)
			return &w->past.lefts[i].left;
	return &s->turns[turn].left;
}

/* How unlikely it is that the turn of W's last stretch ended there. */
static unsigned int end_cost(const struct turns_search *s, const struct turns_way *w)
{
	const struct turns_turn *turn = &s->turns[w->past.turn];
	const struct turns_left *left = left_on(s, w, w->past.turn);
	uint8_t how = left->how;

	if (turn->uncertain || turn->until == SPACE_NOW)
		return 0;
	if (left->sigreturn && !turn->preempted)
		return COST_LEFT_STUCK;
	if (turn->preempted ? how == TURNS_HOW_SYSCALL : how == TURNS_HOW_ASYNC)
		return COST_LEFT_ODD;
	return 0;
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
	const struct turns_turn *t = &s->turns[turn];

	if (w->past.turn == turn || t->before == TURNS_NONE)
		return left_on(s, w, turn);
	if (t->before_cpu == s->q->cpu)
		return left_on(s, w, t->before);
	return turns_is_passed(s, t) ? &s->q->turns->cpus[t->before_cpu].list[t->before].left
				     : &none;
}

/* The cost of entering at ENTER after LEFT. */
static unsigned int compare(const struct turns_left *left, uint64_t enter,
			    const struct turns_proof *proof)
{
	bool behind = proof->behind != TURNS_CALL_NONE;

	if (left->how == TURNS_HOW_UNKNOWN)
		return COST_ENTER_KNOWN;
	if (left->ip != 0 && (enter == left->ip || (left->again != 0 && enter == left->again)))
		return COST_ENTER_SAME;
	if (left->sigreturn || (left->ip == 0 && (left->how == TURNS_HOW_ASYNC || behind)))
		return COST_ENTER_KNOWN;
	return behind ? COST_ENTER_FOREIGN : COST_ENTER_OTHER;
}

/* The cost of CALL (enum turns_call) where WANTED must be. */
static unsigned int call_cost(uint8_t call, uint8_t wanted)
{
	if (call == wanted)
		return COST_ENTER_SAME;
	return call == TURNS_CALL_UNKNOWN ? COST_ENTER_KNOWN : COST_ENTER_FOREIGN;
}

static unsigned int enter_cost(const struct turns_search *s, const struct turns_way *w,
			       uint32_t turn, const struct turns_proof *proof)
{
	const struct turns_left *left;
	uint8_t call = TURNS_CALL_UNKNOWN;

	if (!s->choice || s->turns[turn].uncertain || s->stretch->broken)
		return COST_ENTER_KNOWN;
	left = last_left(s, w, turn);
	/* A new thread enters behind the system call that made it. */
	if (s->turns[turn].born && left->how == TURNS_HOW_UNKNOWN)
		return call_cost(proof->behind, TURNS_CALL_FORK);
	if (left->how == TURNS_HOW_ASYNC)
		call = TURNS_CALL_NONE;
	else if (left->how == TURNS_HOW_SYSCALL && left->ip != 0 && left->context != 0)
		call = (uint8_t)s->q->call(s->q->userdata, left);
	if (call == TURNS_CALL_EXIT)
		return COST_ENTER_FOREIGN;
	/* The thread comes back from making a thread, of which there is no record. */
	if (call == TURNS_CALL_FORK && left->since != 0 &&
	    !turns_has_birth(s->q->turns, s->turns[turn].thread->pid, left->since,
			     s->stretch->enter_hi))
		return COST_CHILDLESS;
	/* A new program's thread left the old program by exec. */
	return proof->fresh ? call_cost(call, TURNS_CALL_EXEC)
			    : compare(left, s->stretch->enter, proof);
}

void turns_remember(struct turns_past *w, uint32_t turn, const struct turns_left *left)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < w->n_lefts; i++)
		if (w->lefts[i].turn != turn)
			w->lefts[n++] = w->lefts[i];
	w->n_lefts = n;
	if (w->n_lefts == TURNS_MAX_LEFTS) {
		w->n_lefts--;
		memmove(&w->lefts[0], &w->lefts[1], w->n_lefts * sizeof(w->lefts[0]));
	}
	w->lefts[w->n_lefts++] = (struct turns_left_of){turn, *left};
}

void turns_go_on(const struct turns_search *s, struct turns_way *w, size_t c)
{
	const struct turns_proof *proof = &s->proofs[c];
	uint32_t turn = s->candidates[c];
	struct turns_left left = s->stretch->left;

	if (left.how != TURNS_HOW_ASYNC && proof->left.how != TURNS_HOW_UNKNOWN)
		left = proof->left;
	left.since = s->stretch->leave_lo;
	w->past.has_before = true;
	w->past.before = (struct turns_left){0};
	if (!s->stretch->broken && !proof->fresh)
		w->past.before = *last_left(s, w, turn);
	turns_carry_signals(&w->past.before, s->stretch->enter, &left);

	if (w->past.turn != TURNS_NONE && w->past.turn != turn && !s->stretch->broken)
		w->past.cost += end_cost(s, w) + turns_skip_cost(s, w->past.turn, turn);
	w->past.cost += enter_cost(s, w, turn, proof) + proof->cost;
	if (w->first == TURNS_NONE) {
		w->first = turn;
		w->choice = (uint8_t)c;
		w->first_bad = proof->cost >= TURNS_COST_IMPOSSIBLE;
	}
	w->past.turn = turn;
	turns_remember(&w->past, turn, &left);
}
