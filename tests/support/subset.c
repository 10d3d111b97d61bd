/*
 * Searches pieces in the truth. Each piece takes the earliest place that matches, which finds
 * places for all pieces whenever such places exist. Uses Knuth-Morris-Pratt, because a naive search
 * is quadratic in loops.
 */
#include "tests/support/subset.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N_CPUS (sizeof(((struct subset *)NULL)->gaps) / sizeof(uint64_t))

static void *must(void *p)
{
	if (p == NULL) {
		fprintf(stderr, "out of memory\n");
		exit(3);
	}
	return p;
}

static size_t slot_of(const struct subset *s, uint64_t ip)
{
	size_t mask = s->numbers.room - 1, at = (ip * 0x9e3779b97f4a7c15ull >> 24) & mask;

	while (s->numbers.ips[at] != 0 && s->numbers.ips[at] != ip)
		at = (at + 1) & mask;
	return at;
}

static void grow_numbers(struct subset *s)
{
	size_t room = s->numbers.room > 0 ? s->numbers.room * 2 : 4096;
	uint64_t *ips = s->numbers.ips;
	uint32_t *ids = s->numbers.ids;
	size_t old = s->numbers.room;

	s->by_id = must(realloc(s->by_id, room * sizeof(*s->by_id)));
	s->numbers.ips = must(calloc(room, sizeof(*ips)));
	s->numbers.ids = must(calloc(room, sizeof(*ids)));
	s->numbers.room = room;
	for (size_t i = 0; i < old; i++) {
		size_t at = ips[i] != 0 ? slot_of(s, ips[i]) : 0;

		if (ips[i] == 0)
			continue;
		s->numbers.ips[at] = ips[i];
		s->numbers.ids[at] = ids[i];
	}
	free(ips);
	free(ids);
}

static uint32_t number(struct subset *s, uint64_t ip)
{
	size_t at;

	if (s->numbers.n * 2 >= s->numbers.room)
		grow_numbers(s);
	at = slot_of(s, ip);
	if (s->numbers.ips[at] == 0) {
		s->numbers.ips[at] = ip;
		s->numbers.ids[at] = (uint32_t)s->numbers.n;
		s->by_id[s->numbers.n++] = ip;
	}
	return s->numbers.ids[at];
}

static void append(struct subset_ips *a, uint32_t id)
{
	if (a->n == a->room) {
		a->room = a->room > 0 ? a->room * 2 : 256;
		a->ids = must(realloc(a->ids, a->room * sizeof(*a->ids)));
	}
	a->ids[a->n++] = id;
}

struct subset_lane *subset_lane(struct subset *s, uint32_t pid, uint32_t tid, uint32_t cpu)
{
	struct subset_lane *l;

	for (size_t i = 0; i < s->n_lanes; i++) {
		l = s->lanes[i];
		if (l->tid == tid && l->cpu == cpu && l->pid == pid)
			return l;
	}
	l = must(calloc(1, sizeof(*l)));
	s->lanes = must(realloc(s->lanes, (s->n_lanes + 1) * sizeof(*s->lanes)));
	s->lanes[s->n_lanes++] = l;
	l->pid = pid;
	l->tid = tid;
	l->cpu = cpu;
	return l;
}

void subset_executed(struct subset *s, struct subset_lane *l, uint64_t ip)
{
	append(&l->truth, number(s, ip));
}

void subset_decoded(struct subset *s, struct subset_lane *l, uint64_t ip)
{
	append(&l->piece, number(s, ip));
	l->total++;
}

/* next[i]: length of the longest proper border of the first i + 1. */
static uint32_t *borders(const uint32_t *p, size_t m)
{
	uint32_t *next = must(malloc(m * sizeof(*next))), k = 0;

	next[0] = 0;
	for (size_t i = 1; i < m; i++) {
		while (k > 0 && p[k] != p[i])
			k = next[k - 1];
		if (p[k] == p[i])
			k++;
		next[i] = k;
	}
	return next;
}

struct found {
	size_t at;	      /* SIZE_MAX: nowhere */
	size_t best, best_at; /* longest matching prefix so far, and its place */
};

static struct found search(const struct subset_ips *truth, size_t from, const struct subset_ips *p)
{
	struct found f = {.at = SIZE_MAX};
	uint32_t *next = borders(p->ids, p->n);
	size_t k = 0;

	for (size_t i = from; i < truth->n && f.at == SIZE_MAX; i++) {
		while (k > 0 && p->ids[k] != truth->ids[i])
			k = next[k - 1];
		if (p->ids[k] == truth->ids[i])
			k++;
		if (k > f.best) {
			f.best = k;
			f.best_at = i + 1 - k;
		}
		if (k == p->n)
			f.at = i + 1 - k;
	}
	free(next);
	return f;
}

static size_t common(const struct subset_ips *truth, size_t from, const struct subset_ips *p)
{
	size_t n = 0;

	while (n < p->n && from + n < truth->n && truth->ids[from + n] == p->ids[n])
		n++;
	return n;
}

/* Prints what follows in both behind the first N addresses of the piece, to help find the cause. */
static void explain(const struct subset *s, struct subset_lane *l, const char *what,
		    const struct found *f)
{
	char text[256] = "";
	size_t used = 0;

	for (size_t i = f->best; i < l->piece.n && i < f->best + 4; i++)
		used += (size_t)snprintf(text + used, sizeof(text) - used, " %" PRIx64,
					 s->by_id[l->piece.ids[i]]);
	used += (size_t)snprintf(text + used, sizeof(text) - used, ", executed");
	for (size_t i = f->best_at + f->best; i < l->truth.n && i < f->best_at + f->best + 4; i++)
		used += (size_t)snprintf(text + used, sizeof(text) - used, " %" PRIx64,
					 s->by_id[l->truth.ids[i]]);
	snprintf(l->wrong, sizeof(l->wrong),
		 "%s: piece %" PRIu64 " of %zu instructions, searched from %zu of %zu executed; "
		 "the first %zu were executed from %zu on; then decoded%s",
		 what, l->pieces, l->piece.n, l->pos, l->truth.n, f->best, f->best_at, text);
}

/* The first piece must begin where the truth begins: no gap precedes it. */
static void take_first(const struct subset *s, struct subset_lane *l)
{
	struct found f = {.best = common(&l->truth, 0, &l->piece)};

	if (f.best < l->piece.n)
		explain(s, l, "without a gap before it", &f);
	l->pos = f.best;
}

static void take_later(const struct subset *s, struct subset_lane *l, bool last)
{
	struct found f = {.at = SIZE_MAX};
	size_t at = l->truth.n - l->piece.n;

	if (l->piece.n > l->truth.n - l->pos) {
		explain(s, l, "more than was executed", &f);
	} else if (last) {
		f.best = common(&l->truth, at, &l->piece);
		f.best_at = at;
		if (f.best < l->piece.n)
			explain(s, l, "without a gap behind it", &f);
		l->pos = l->truth.n;
	} else {
		f = search(&l->truth, l->pos, &l->piece);
		if (f.at == SIZE_MAX)
			explain(s, l, "not executed", &f);
		else
			l->pos = f.at + l->piece.n;
	}
}

static void end_piece(const struct subset *s, struct subset_lane *l, bool last)
{
	uint64_t gaps = s->gaps[l->cpu % N_CPUS];

	if (l->wrong[0] != '\0' || (l->piece.n == 0 && !(last && gaps == 0))) {
		l->piece.n = 0;
		return;
	}
	l->pieces++;
	if (gaps == 0)
		take_first(s, l);
	else
		take_later(s, l, last);
	if (last && gaps == 0 && l->pos < l->truth.n && l->wrong[0] == '\0') {
		struct found f = {.best = l->pos};

		explain(s, l, "missing without a gap", &f);
	}
	l->piece.n = 0;
}

void subset_gap(struct subset *s, uint32_t cpu)
{
	for (size_t i = 0; i < s->n_lanes; i++)
		if (s->lanes[i]->cpu == cpu)
			end_piece(s, s->lanes[i], false);
	s->gaps[cpu % N_CPUS]++;
}

void subset_end(struct subset *s)
{
	for (size_t i = 0; i < s->n_lanes; i++)
		end_piece(s, s->lanes[i], true);
}

void subset_done(struct subset *s)
{
	for (size_t i = 0; i < s->n_lanes; i++) {
		free(s->lanes[i]->truth.ids);
		free(s->lanes[i]->piece.ids);
		free(s->lanes[i]);
	}
	free(s->lanes);
	free(s->numbers.ips);
	free(s->numbers.ids);
	free(s->by_id);
	memset(s, 0, sizeof(*s));
}
