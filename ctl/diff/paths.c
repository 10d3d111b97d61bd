/*
 * Call stacks of threads at the trigger that only one report has.
 *
 * A report has one stack of each thread, which is little: two ordinary moments of a program have
 * different stacks. A stack is listed if it leads through a function that is itself new or gone by
 * more than noise, which says how the program came to that function; or if so many threads have the
 * stack in one report and not in the other that chance does not explain it (noise.h).
 */
#include "ctl/diff/diff_private.h"

#include <math.h>
#include <stdint.h>

#include "ctl/base/field.h"
#include "ctl/base/place.h"
#include "ctl/diff/noise.h"
#include "proto/base.h"

/* A row's stack and the side that it is read with. */
struct path {
	const struct side *side, *names, *other;
	const struct side_row *row;
};

static struct path path_of(const struct comparison *c, const struct side_row *a,
			   const struct side_row *b)
{
	if (b)
		return (struct path){&c->b, &c->a, &c->a, b};
	return (struct path){&c->a, &c->a, &c->b, a};
}

/* The innermost function of P that only P's report has, by more than noise. NULL: none. */
static int find_reason(const struct path *p, const struct side_row **ret)
{
	const size_t n = field_count(p->row->thread, "stack");
	int r = 0;

	*ret = NULL;
	for (size_t i = 0; r == 0 && i < n && !*ret; i++) {
		const struct side_row *f;

		r = side_function_of(p->side, p->names, p->other,
				     place_of_frame(p->side->report, p->row->thread, i), &f);
		if (r == 0 && f && f->alone)
			*ret = f;
	}
	return r;
}

static struct json_object *threads_of(const struct side *s, const struct side_row *row)
{
	struct json_object *o = json_object_new_object();

	diff_put(o, "threads", diff_count(row ? row->n : 0));
	diff_put(o, "of", diff_count(s->stacks));
	return o;
}

static struct json_object *frames_of(const struct path *p)
{
	struct json_object *list = json_object_new_array();

	for (size_t i = 0; list && i < field_count(p->row->thread, "stack"); i++) {
		struct json_object *from = place_of_frame(p->side->report, p->row->thread, i);
		struct json_object *to = json_object_new_object();

		diff_put(to, "name", diff_string(place_name(from)));
		diff_put(to, "image", diff_string(side_image_path(p->side, from)));
		json_object_array_add(list, to);
	}
	return list;
}

static struct json_object *make_row(const struct comparison *c, const struct path *p,
				    const char *kind, const struct side_row *reason,
				    const struct side_row *a, const struct side_row *b)
{
	struct json_object *row = json_object_new_object();

	if (!row)
		return NULL;
	diff_put(row, "kind", diff_string(kind));
	diff_put(row, "comm", diff_string(p->row->name));
	diff_put(row, "function", diff_string(reason ? reason->name : NULL));
	diff_put(row, "costPercent", reason ? diff_fixed(reason->cost) : NULL);
	diff_put(row, "frames", frames_of(p));
	diff_put(row, "a", threads_of(&c->a, a));
	diff_put(row, "b", threads_of(&c->b, b));
	return row;
}

/* The part of all stacks, in percent: a cost for a path that leads to no new function. */
static double share(const struct side *s, const struct side_row *row)
{
	return row && s->stacks > 0 ? row->n / s->stacks * 100 : 0;
}

static int compare_path(struct comparison *c, struct finds *f, const struct side_row *a,
			const struct side_row *b)
{
	const struct noise_sample na = {.n = a ? a->n : 0, .exposure = c->a.stacks};
	const struct noise_sample nb = {.n = b ? b->n : 0, .exposure = c->b.stacks};
	const struct path p = path_of(c, a, b);
	const bool alone = !a || !b, cut = !a ? c->a.threads.cut : c->b.threads.cut;
	const bool more = share(&c->b, b) > share(&c->a, a);
	const struct side_row *reason = NULL;
	const char *kind = more ? "more-often" : "less-often";
	int r = alone ? find_reason(&p, &reason) : 0;

	if (r < 0)
		return r;
	if (!reason && !noise_rate_differs(na, nb))
		return 0;
	if (reason || (alone && !cut))
		kind = more ? "new" : "gone";
	return diff_add(f, reason ? fabs(reason->cost) : fabs(share(&c->b, b) - share(&c->a, a)),
			make_row(c, &p, kind, reason, a, b));
}

int diff_paths(struct comparison *c, struct finds *f)
{
	const struct side_table *a = &c->a.paths, *b = &c->b.paths;
	int r = 0;

	for (size_t i = 0; r == 0 && i < a->n; i++)
		r = compare_path(c, f, &a->rows[i],
				 a->rows[i].other == SIZE_MAX ? NULL : &b->rows[a->rows[i].other]);
	for (size_t i = 0; r == 0 && i < b->n; i++)
		if (b->rows[i].other == SIZE_MAX)
			r = compare_path(c, f, NULL, &b->rows[i]);
	return r;
}
