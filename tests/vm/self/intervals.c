/*
 * Compares the times of instructions.
 */
#include "tests/vm/self/intervals.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "proto/base.h"

/* Wrong times that are printed. */
#define MAX_SAID 5u

void intervals_append(struct intervals *t, size_t at, uint64_t lo, uint64_t hi, bool enters)
{
	struct interval *last = t->n > 0 ? &t->v[t->n - 1] : NULL;

	if (last && last->lo == lo && last->hi == hi && !enters)
		return;
	if (last && last->at == at) {
		*last = (struct interval){at, lo, hi, enters || last->enters};
		return;
	}
	if (ARRAY_RESERVE(t->v, t->capacity, t->n + 1) < 0)
		abort();
	t->v[t->n++] = (struct interval){at, lo, hi, enters};
}

void intervals_done(struct intervals *t)
{
	free(t->v);
}

size_t intervals_not_after(const struct intervals *claimed, size_t at, const struct intervals *real,
			   size_t pos)
{
	size_t claim = FIRST_WHERE(i, claimed->n, claimed->v[i].at > at), k;
	uint64_t hi = claim > 0 ? claimed->v[claim - 1].hi : UINT64_MAX;

	if (hi > UINT64_MAX - INTERVALS_SLOP)
		return pos;
	k = FIRST_WHERE(i, real->n, real->v[i].lo > hi + INTERVALS_SLOP);
	return k < real->n ? MIN_OF(pos, real->v[k].at + INTERVALS_LOOK) : pos;
}

/* The time of a place before mark K at which the unit certainly read the clock later, and not
 * behind mark K. 0: none is known. */
static uint64_t time_before(const struct intervals *real, size_t k)
{
	const size_t at = real->v[k].at;
	size_t before;

	if (real->v[k].enters) {
		for (before = k; before > 0; before--)
			if (real->v[before - 1].enters)
				return real->v[before - 1].lo;
	}
	before = FIRST_WHERE(i, k, real->v[i].at + INTERVALS_LOOK > at);
	return before > 0 ? real->v[before - 1].lo : 0;
}

static void judge(struct intervals_result *r, const struct interval *claim, uint64_t time,
		  uint64_t before, bool tell)
{
	const bool wrong =
		claim->lo > time + INTERVALS_SLOP ||
		(before != 0 && claim->hi < UINT64_MAX && claim->hi + INTERVALS_SLOP < before);

	if (claim->lo != 0 && claim->hi != UINT64_MAX) {
		r->known++;
		r->wide += claim->hi - claim->lo;
	}
	if (!wrong && time <= claim->hi)
		r->within++;
	else if (!wrong)
		r->behind++;
	else if (r->wrong++ < MAX_SAID && tell)
		fprintf(stderr,
			"entry %zu executed at %" PRIu64 ", decoded as of %" PRIu64 " to %" PRIu64
			"; the unit read the clock behind %" PRIu64 "\n",
			claim->at, time, claim->lo, claim->hi, before);
}

struct intervals_result intervals_compare(const struct intervals *claimed,
					  const struct intervals *real, const uint32_t *match,
					  size_t from, size_t to, bool tell)
{
	struct intervals_result r = {0};
	size_t claim = FIRST_WHERE(i, claimed->n, claimed->v[i].at > from), k = SIZE_MAX;

	claim -= claim > 0;
	for (size_t i = from; i < to && claimed->n > 0; i++) {
		while (claim + 1 < claimed->n && claimed->v[claim + 1].at <= i)
			claim++;
		if (match[i] == 0 || claimed->v[claim].at > i)
			continue;
		if (k == SIZE_MAX)
			k = FIRST_WHERE(m, real->n, real->v[m].at >= match[i] - 1u);
		while (k < real->n && real->v[k].at < match[i] - 1u)
			k++;
		if (k == real->n)
			break;
		if (real->v[k].at == match[i] - 1u)
			judge(&r, &claimed->v[claim], real->v[k].lo, time_before(real, k), tell);
	}
	return r;
}
