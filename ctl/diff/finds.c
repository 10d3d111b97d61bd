/*
 * What was found, ranked, as JSON.
 */
#include "ctl/diff/diff_private.h"

#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "proto/base.h"

void diff_put(struct json_object *o, const char *key, struct json_object *value)
{
	json_object_object_add(o, key, value);
}

struct json_object *diff_fixed(double v)
{
	char text[64];

	v = isfinite(v) ? fmin(fmax(v, -1e15), 1e15) : 0;
	snprintf(text, sizeof(text), "%.4f", v);
	return json_object_new_double_s(v, text);
}

struct json_object *diff_string(const char *text)
{
	return text ? json_object_new_string(text) : NULL;
}

struct json_object *diff_count(double n)
{
	return json_object_new_uint64(n >= 0 && n < 1e19 ? (uint64_t)n : 0);
}

int diff_add(struct finds *f, double rank, struct json_object *row)
{
	if (!row || ARRAY_RESERVE(f->list, f->capacity, f->n + 1) < 0) {
		json_object_put(row);
		return -ENOMEM;
	}
	f->list[f->n] = (struct found){rank, f->n, row};
	f->n++;
	return 0;
}

static int by_rank(const void *va, const void *vb)
{
	const struct found *a = va, *b = vb;

	if (a->rank != b->rank)
		return a->rank > b->rank ? -1 : 1;
	return a->order < b->order ? -1 : 1;
}

int diff_put_finds(struct comparison *c, struct finds *f, const char *key, const char *total_key)
{
	struct json_object *list = json_object_new_array();

	diff_put(c->out, total_key, json_object_new_uint64(f->n));
	if (f->n > 1)
		qsort(f->list, f->n, sizeof(*f->list), by_rank);
	for (size_t i = 0; i < f->n; i++)
		if (!list || i >= c->limit || json_object_array_add(list, f->list[i].row) < 0)
			json_object_put(f->list[i].row);
	free(f->list);
	*f = (struct finds){0};
	if (!list)
		return -ENOMEM;
	diff_put(c->out, key, list);
	return 0;
}
