/*
 * What the comparisons of this room share: both reports, and a ranked list of what was found.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include <json-c/json.h>

#include "ctl/diff/side.h"

struct comparison {
	struct side a, b;
	bool by_cpu; /* costs are CPU time, not shares of instructions */
	size_t limit;
	struct json_object *out;
};

struct found {
	double rank;
	size_t order; /* of discovery, for equal ranks */
	struct json_object *row;
};

struct finds {
	struct found *list;
	size_t n, capacity;
};

/* Adds ROW, which is taken over (NULL: no memory). 0 or -ENOMEM. */
int diff_add(struct finds *f, double rank, struct json_object *row);
/* Puts the LIMIT first of F under KEY, and how many there are under TOTAL_KEY; frees F. 0 or
 * -ENOMEM. */
int diff_put_finds(struct comparison *c, struct finds *f, const char *key, const char *total_key);

void diff_put(struct json_object *o, const char *key, struct json_object *value);
/* A number with four digits behind the point. */
struct json_object *diff_fixed(double v);
/* NULL for NULL. */
struct json_object *diff_string(const char *text);
struct json_object *diff_count(double n);

/* paths.c: call stacks of threads at the trigger that only one report has, or that many more
 * threads of one report have. Needs the comparison of functions. 0 or -ENOMEM. */
int diff_paths(struct comparison *c, struct finds *f);
