/*
 * Sums and orders for skim_json.c: sorted three times, by what is alike, by bytes within a group,
 * and the groups.
 */
#include "decoder/worker/skim/skim_rank.h"

#include <stdlib.h>

#include "decoder/worker/count/tally.h"
#include "proto/base.h"

static int compare_u64(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

static int compare_keys(const struct skim_cell *a, const struct skim_cell *b, unsigned int by)
{
	int r = 0;

	if ((by & SKIM_BY_SLICE) != 0)
		r = compare_u64(a->slice, b->slice);
	if (r == 0 && (by & SKIM_BY_CPU) != 0)
		r = compare_u64(a->cpu, b->cpu);
	if (r == 0 && (by & SKIM_BY_THREAD) != 0)
		r = tally_compare_threads(a->thread, b->thread);
	if (r == 0 && (by & SKIM_BY_THREAD) != 0)
		r = compare_u64(a->some, b->some);
	if (r == 0 && (by & SKIM_BY_FUNCTION) != 0)
		r = compare_u64(a->function, b->function);
	return r;
}

struct order {
	unsigned int group, row;
};

static int by_key(const void *a, const void *b, void *order)
{
	const struct order *o = order;
	int r = compare_keys(a, b, o->group);

	return r != 0 ? r : compare_keys(a, b, o->row);
}

/* Most first. */
static int compare_sums(const struct skim_cell *a, const struct skim_cell *b)
{
	return a->bytes != b->bytes ? compare_u64(b->bytes, a->bytes)
				    : compare_u64(b->samples, a->samples);
}

static int by_bytes(const void *a, const void *b, void *order)
{
	const struct order *o = order;
	int r = compare_sums(a, b);

	return r != 0 ? r : compare_keys(a, b, o->row);
}

static int groups_by_bytes(const void *a, const void *b, void *order)
{
	const struct skim_group *x = a, *y = b;
	const struct order *o = order;
	bool placed = (o->group & (SKIM_BY_SLICE | SKIM_BY_CPU)) != 0;
	int r = placed ? 0 : compare_sums(&x->sum, &y->sum);

	return r != 0 ? r : compare_keys(&x->sum, &y->sum, o->group);
}

static void add(struct skim_cell *to, const struct skim_cell *c)
{
	to->samples += c->samples;
	to->bytes += c->bytes;
}

/* Makes one of those rows that are alike. */
static void merge_rows(struct skim_ranking *r, struct order *order)
{
	size_t i, n = 0;

	qsort_r(r->rows, r->n_rows, sizeof(r->rows[0]), by_key, order);
	for (i = 0; i < r->n_rows; i++) {
		if (n > 0 && by_key(&r->rows[n - 1], &r->rows[i], order) == 0)
			add(&r->rows[n - 1], &r->rows[i]);
		else
			r->rows[n++] = r->rows[i];
	}
	r->n_rows = n;
}

/* They are mostly far fewer than the cells. */
static int fit_rows(struct skim_ranking *r)
{
	(void)ARRAY_FIT(r->rows, r->n_rows);
	r->groups = calloc(r->n_rows + 1, sizeof(*r->groups));
	return r->groups == NULL ? -ENOMEM : 0;
}

static void find_groups(struct skim_ranking *r, struct order *order)
{
	struct skim_group *g = NULL;
	size_t i;

	for (i = 0; i < r->n_rows; i++) {
		if (g == NULL || compare_keys(&g->sum, &r->rows[i], order->group) != 0) {
			g = &r->groups[r->n_groups++];
			*g = (struct skim_group){.sum = r->rows[i], .first = i, .n = 1};
		} else {
			add(&g->sum, &r->rows[i]);
			g->n++;
		}
	}
}

int skim_rank(const struct skim_map *m, unsigned int group, unsigned int row,
	      struct skim_ranking *ret)
{
	struct order order = {group, row};
	size_t i;

	*ret = (struct skim_ranking){0};
	ret->rows = calloc(m->n_cells + 1, sizeof(*ret->rows));
	if (ret->rows == NULL)
		return -ENOMEM;
	for (i = 0; i < m->n_cells; i++)
		if (m->cells[i].samples > 0)
			ret->rows[ret->n_rows++] = m->cells[i];
	merge_rows(ret, &order);
	if (fit_rows(ret) < 0)
		return -ENOMEM;
	find_groups(ret, &order);
	for (i = 0; i < ret->n_groups; i++)
		qsort_r(ret->rows + ret->groups[i].first, ret->groups[i].n, sizeof(ret->rows[0]),
			by_bytes, &order);
	qsort_r(ret->groups, ret->n_groups, sizeof(ret->groups[0]), groups_by_bytes, &order);
	return 0;
}

void skim_ranking_done(struct skim_ranking *r)
{
	free(r->rows);
	free(r->groups);
	*r = (struct skim_ranking){0};
}
