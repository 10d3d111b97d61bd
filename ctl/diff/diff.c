/*
 * Compares two reports, row by row, and ranks what differs.
 */
#include "ctl/diff/diff.h"

#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/base/field.h"
#include "ctl/diff/diff_private.h"
#include "ctl/diff/noise.h"
#include "ctl/diff/side.h"
#include "proto/base.h"

/* A cost that is worth a line even if it rests on few calls: percent of a CPU or of all
 * instructions. */
#define LARGE_PERCENT 5.0

/* --- Costs --- */

static struct noise_sample sample(const struct comparison *c, const struct side *s,
				  const struct side_row *row)
{
	struct noise_sample sample = {.exposure = c->by_cpu ? s->seconds * 1e9 : s->insns};

	if (row) {
		sample.n = row->n;
		sample.v = c->by_cpu ? row->nsec : row->insns;
	}
	return sample;
}

static double diff_percent(double part, double whole)
{
	return whole > 0 ? fmin(part / whole * 100, 1e9) : 0;
}

static struct json_object *row_side(const struct side *s, const struct side_row *row,
				    const char *n_key)
{
	struct json_object *o = row ? json_object_new_object() : NULL;

	if (!o)
		return NULL;
	diff_put(o, n_key, diff_count(row->n));
	if (s->seconds > 0) {
		diff_put(o, "perSec", diff_fixed(row->n / s->seconds));
		diff_put(o, "cpuPercent", diff_fixed(diff_percent(row->nsec, s->seconds * 1e9)));
	}
	diff_put(o, "instructionsPercent", diff_fixed(diff_percent(row->insns, s->insns)));
	diff_put(o, "members", diff_count(row->parts));
	return o;
}

/* --- Functions and threads --- */

/* What a function that is missing in the cut list of S may have had at most; no more than THERE,
 * because nothing says that it had. */
static struct noise_sample unlisted(const struct comparison *c, const struct side *s,
				    struct noise_sample there)
{
	struct noise_sample most = {.exposure = c->by_cpu ? s->seconds * 1e9 : s->insns};
	double part, here;

	if (most.exposure <= 0 || there.exposure <= 0 || there.v <= 0)
		return most;
	most.v = c->by_cpu && s->insns > 0 ? s->floor_insns / s->insns * s->functions_nsec
					   : s->floor_insns;
	here = there.v / there.exposure * most.exposure;
	part = fmin(most.v / here, 1);
	most.v = here * part;
	most.n = there.n / there.exposure * most.exposure * part;
	return most;
}

/* What two rows differ in. */
struct verdict {
	double cost;	    /* of B less that of A, in percent */
	bool costs, counts; /* more than noise explains */
	bool large;	    /* the cost is, whatever the counts say */
	bool oftener;
};

static struct verdict judge(const struct comparison *c, struct noise_sample a,
			    struct noise_sample b, bool counted)
{
	const double pa = diff_percent(a.v, a.exposure), pb = diff_percent(b.v, b.exposure);
	struct verdict v = {.cost = pb - pa, .costs = noise_cost_differs(a, b)};

	v.large = a.exposure > 0 && b.exposure > 0 && fabs(v.cost) >= LARGE_PERCENT &&
		  fabs(v.cost) >= fmax(pa, pb) / 2;
	if (c->a.seconds > 0 && c->b.seconds > 0) {
		a.exposure = c->a.seconds;
		b.exposure = c->b.seconds;
	}
	v.counts = counted && noise_rate_differs(a, b);
	v.oftener = b.n * a.exposure > a.n * b.exposure;
	return v;
}

static const char *kind_of(const struct verdict *v, bool is_new, bool is_gone)
{
	if (is_new || is_gone)
		return is_new ? "new" : "gone";
	if (!v->costs && v->counts)
		return v->oftener ? "more-often" : "less-often";
	return v->cost > 0 ? "more" : "less";
}

static struct json_object *make_row(const struct comparison *c, const struct verdict *v,
				    const char *kind, const struct side_row *a,
				    const struct side_row *b, bool threads)
{
	struct json_object *row = json_object_new_object();

	if (!row)
		return NULL;
	diff_put(row, "kind", diff_string(kind));
	diff_put(row, threads ? "comm" : "name", diff_string((b ? b : a)->name));
	if (!threads)
		diff_put(row, "image", diff_string((b ? b : a)->image));
	diff_put(row, "costPercent", diff_fixed(v->cost));
	diff_put(row, "fewCounts", json_object_new_boolean(!v->costs && !v->counts));
	diff_put(row, "a", row_side(&c->a, a, threads ? "turns" : "calls"));
	diff_put(row, "b", row_side(&c->b, b, threads ? "turns" : "calls"));
	return row;
}

/* A or B is NULL if the report does not list the row. */
static int compare_row(struct comparison *c, struct finds *f, struct side_row *a,
		       struct side_row *b, bool threads)
{
	struct noise_sample sa = sample(c, &c->a, a), sb = sample(c, &c->b, b);
	const struct side *lacking = !a ? &c->a : &c->b;
	const bool cut = threads ? lacking->threads.cut : lacking->functions.cut;
	const bool known = (a && b) || !cut;
	/* How many turns a thread has says more about others than about the thread. */
	const bool counted = !threads ? known : known && !(a && b) && !lacking->turns_cut;
	struct verdict v;

	if (!known && !threads && !a)
		sa = unlisted(c, &c->a, sb);
	if (!known && !threads && !b)
		sb = unlisted(c, &c->b, sa);
	v = judge(c, sa, sb, counted);
	if (!v.costs && !v.counts && !v.large)
		return 0;
	if (known && !(a && b) && (v.costs || v.counts)) {
		(a ? a : b)->alone = true;
		(a ? a : b)->cost = v.cost;
	}
	return diff_add(f, fabs(v.cost),
			make_row(c, &v, kind_of(&v, known && !a, known && !b), a, b, threads));
}

/* Compares the rows of A with those of B, and those that only B has. */
static int compare_tables(struct comparison *c, struct finds *f, const struct side_table *a,
			  const struct side_table *b, bool threads)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < a->n; i++)
		r = compare_row(c, f, &a->rows[i],
				a->rows[i].other == SIZE_MAX ? NULL : &b->rows[a->rows[i].other],
				threads);
	for (size_t i = 0; r == 0 && i < b->n; i++)
		if (b->rows[i].other == SIZE_MAX)
			r = compare_row(c, f, NULL, &b->rows[i], threads);
	return r;
}

/* --- Durations --- */

static const char *const QUANTILES[NOISE_QUANTILES] = {"p50NSec", "p90NSec", "p99NSec", "maxNSec"};

static bool read_durations(const struct side *s, const struct side_row *row,
			   struct noise_durations *ret)
{
	struct json_object *o = row->durations;
	uint64_t v;

	if (!field_u64(o, "ended", &v))
		return false;
	ret->n = (double)v;
	ret->step = s->step;
	for (unsigned i = 0; i < NOISE_QUANTILES; i++) {
		if (!field_u64(o, QUANTILES[i], &v))
			return false;
		ret->at[i] = (double)v;
	}
	return true;
}

static struct json_object *durations_side(const struct noise_durations *d)
{
	struct json_object *o = json_object_new_object();

	diff_put(o, "ended", diff_count(d->n));
	for (unsigned i = 0; i < NOISE_QUANTILES; i++)
		diff_put(o, QUANTILES[i], diff_count(d->at[i]));
	return o;
}

static int compare_durations(struct comparison *c, struct finds *f, const struct side_row *ra,
			     const struct side_row *rb)
{
	/* The part of all calls that are as long as the quantile, or longer. */
	static const double beyond[NOISE_QUANTILES] = {0.5, 0.1, 0.01, 0};
	const double seconds = c->b.seconds > 0 ? c->b.seconds : 1;
	struct json_object *row, *differ;
	struct noise_durations a, b;
	double most = 0;

	if (!read_durations(&c->a, ra, &a) || !read_durations(&c->b, rb, &b))
		return 0;
	differ = json_object_new_array();
	for (unsigned q = 0; differ && q < NOISE_QUANTILES - 1; q++) {
		const double delta = (b.at[q] - a.at[q]) * beyond[q] * b.n / seconds;

		if (!noise_quantile_differs(&a, &b, q))
			continue;
		json_object_array_add(differ, diff_string(QUANTILES[q]));
		most = fabs(delta) > fabs(most) ? delta : most;
	}
	if (!differ || json_object_array_length(differ) == 0) {
		json_object_put(differ);
		return differ ? 0 : -ENOMEM;
	}
	row = json_object_new_object();
	diff_put(row, "kind", diff_string(most >= 0 ? "slower" : "faster"));
	diff_put(row, "name", diff_string(rb->name));
	diff_put(row, "image", diff_string(rb->image));
	diff_put(row, "differ", differ);
	diff_put(row, "a", durations_side(&a));
	diff_put(row, "b", durations_side(&b));
	return diff_add(f, fabs(most), row);
}

static int compare_all_durations(struct comparison *c, struct finds *f)
{
	const struct side_table *a = &c->a.functions, *b = &c->b.functions;
	int r = 0;

	for (size_t i = 0; r == 0 && i < a->n; i++)
		if (a->rows[i].other != SIZE_MAX)
			r = compare_durations(c, f, &a->rows[i], &b->rows[a->rows[i].other]);
	return r;
}

/* --- Gaps --- */

static int compare_gap(struct comparison *c, struct finds *f, const char *kind)
{
	struct noise_sample a = {.exposure = c->a.seconds}, b = {.exposure = c->b.seconds};
	struct json_object *row, *v;
	uint64_t na = 0, nb = 0;

	if (json_object_object_get_ex(field_get(c->a.report, "gapCounts"), kind, &v))
		field_u64(v, "", &na);
	if (json_object_object_get_ex(field_get(c->b.report, "gapCounts"), kind, &v))
		field_u64(v, "", &nb);
	a.n = (double)na;
	b.n = (double)nb;
	if (!noise_rate_differs(a, b))
		return 0;
	row = json_object_new_object();
	diff_put(row, "kind", diff_string(kind));
	diff_put(row, "a", json_object_new_uint64(na));
	diff_put(row, "b", json_object_new_uint64(nb));
	return diff_add(f, fabs(a.n / a.exposure - b.n / b.exposure), row);
}

/* Compares the kinds of FROM that LESS does not have. */
static int compare_gap_kinds(struct comparison *c, struct finds *f, struct json_object *from,
			     struct json_object *less)
{
	int r = 0;

	if (!json_object_is_type(from, json_type_object))
		return 0;
	json_object_object_foreach(from, kind, value)
	{
		(void)value;
		if (r == 0 && !json_object_object_get_ex(less, kind, NULL))
			r = compare_gap(c, f, kind);
	}
	return r;
}

static int compare_gaps(struct comparison *c, struct finds *f)
{
	struct json_object *a = field_get(c->a.report, "gapCounts");
	int r = compare_gap_kinds(c, f, a, NULL);

	return r < 0 ? r : compare_gap_kinds(c, f, field_get(c->b.report, "gapCounts"), a);
}

/* --- What both reports are --- */

static struct json_object *head(const struct side *s)
{
	static const struct {
		const char *key, *path;
	} keys[] = {
		{"id", "id"},
		{"realtimeUSec", "trigger.realtimeUSec"},
		{"hostname", "host.hostname"},
		{"instructions", "totals.instructions"},
		{"coveragePercent", "coverage.percent"},
		{"exactPercent", "coverage.exactPercent"},
		{"gaps", "totals.gaps"},
	};
	struct json_object *o = json_object_new_object();

	for (size_t i = 0; o && i < ARRAY_SIZE(keys); i++) {
		struct json_object *v = field_get(s->report, keys[i].path);

		diff_put(o, keys[i].key, v ? json_object_get(v) : NULL);
	}
	if (!o)
		return NULL;
	diff_put(o, "cpus", json_object_new_uint64(field_count(s->report, "cpus")));
	diff_put(o, "windowNSec", s->seconds > 0 ? diff_count(s->seconds * 1e9) : NULL);
	diff_put(o, "cpuPercent",
		 s->seconds > 0 && s->threads.n > 0
			 ? diff_fixed(diff_percent(s->nsec, s->seconds * 1e9))
			 : NULL);
	return o;
}

/* Names of what makes the comparison worse. */
static struct json_object *notes(const struct comparison *c)
{
	static const struct {
		const char *path, *note;
	} same[] = {
		{"configuration.source", "other-settings"},
		{"configuration.attr", "other-settings"},
		{"configuration.mtcPeriod", "other-settings"},
		{"host.hostname", "other-host"},
		{"host.cpu", "other-processor"},
		{"onlyUid", "other-user"},
	};
	struct json_object *list = json_object_new_array(), *x = c->a.report, *y = c->b.report;
	const char *last = "";

	for (size_t i = 0; list && i < ARRAY_SIZE(same); i++)
		if (!json_object_equal(field_get(x, same[i].path), field_get(y, same[i].path)) &&
		    strcmp(same[i].note, last) != 0) {
			last = same[i].note;
			json_object_array_add(list, diff_string(last));
		}
	if (list && !c->by_cpu)
		json_object_array_add(list, diff_string("no-times"));
	if (list && (c->a.functions.cut || c->b.functions.cut))
		json_object_array_add(list, diff_string("functions-cut"));
	return list;
}

static int compare(struct comparison *c)
{
	struct finds f = {0};
	int r = compare_tables(c, &f, &c->a.functions, &c->b.functions, false);

	r = MIN_OF(diff_put_finds(c, &f, "functions", "functionsTotal"), r);
	if (r == 0)
		r = compare_all_durations(c, &f);
	r = MIN_OF(diff_put_finds(c, &f, "durations", "durationsTotal"), r);
	if (r == 0)
		r = compare_tables(c, &f, &c->a.threads, &c->b.threads, true);
	r = MIN_OF(diff_put_finds(c, &f, "threads", "threadsTotal"), r);
	if (r == 0)
		r = compare_gaps(c, &f);
	r = MIN_OF(diff_put_finds(c, &f, "gaps", "gapsTotal"), r);
	if (r == 0)
		r = diff_paths(c, &f);
	return MIN_OF(diff_put_finds(c, &f, "paths", "pathsTotal"), r);
}

static int read_both(struct comparison *c, struct json_object *a, struct json_object *b)
{
	int r = side_read(&c->a, a), r2 = side_read(&c->b, b);

	if (r < 0 || r2 < 0)
		return -ENOMEM;
	r = side_functions(&c->a, &c->a, &c->b);
	if (r == 0)
		r = side_functions(&c->b, &c->a, &c->a);
	if (r == 0)
		r = side_paths(&c->a, &c->a, &c->b);
	if (r == 0)
		r = side_paths(&c->b, &c->a, &c->a);
	if (r < 0)
		return r;
	side_match(&c->a.functions, &c->b.functions);
	side_match(&c->a.threads, &c->b.threads);
	side_match(&c->a.paths, &c->b.paths);
	c->by_cpu = c->a.seconds > 0 && c->b.seconds > 0 && c->a.has_nsec && c->b.has_nsec;
	return 0;
}

int diff_reports(struct json_object *a, struct json_object *b, size_t limit,
		 struct json_object **ret)
{
	struct comparison c = {.limit = limit, .out = json_object_new_object()};
	int r = read_both(&c, a, b);

	if (r == 0 && !c.out)
		r = -ENOMEM;
	if (r == 0) {
		diff_put(c.out, "a", head(&c.a));
		diff_put(c.out, "b", head(&c.b));
		diff_put(c.out, "notes", notes(&c));
		diff_put(c.out, "costIs", diff_string(c.by_cpu ? "cpu" : "instructions"));
		r = compare(&c);
	}
	side_free(&c.a);
	side_free(&c.b);
	if (r == 0)
		*ret = c.out;
	else
		json_object_put(c.out);
	return r;
}
