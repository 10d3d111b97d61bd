/*
 * A list of the report as a table: list.c selects rows and prints, list_columns.c says which
 * columns each list has.
 *
 * A column is as wide as its table entry says, for a line of 80 columns or for a wide one; columns
 * with a weight share what is left. A column without a width on a narrow line is left out there,
 * and the table says so.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include <json-c/json.h>

#include "ctl/base/field.h"
#include "ctl/show/show.h"

/* One cell: PATH of ROW, of REPORT, in WIDTH columns. */
struct list_cell {
	struct json_object *report, *row;
	const char *path;
	size_t width;
};

struct list_column {
	const char *head, *unit;
	const char *path;
	unsigned narrow, wide; /* the width, or the least width of a column with a weight */
	unsigned weight;
	/* One of the two. A figure stands on the right of its column; text on the left, and the
	 * function returns how many columns it printed. */
	struct figure (*figure)(const struct list_cell *c);
	size_t (*text)(FILE *out, const struct list_cell *c);
};

enum list_fits { LIST_NO, LIST_YES, LIST_UNKNOWN };

struct show_list {
	const char *name;	    /* the verb, and the key of the report */
	const char *unlisted;	    /* what the report calls those beyond its tables, or NULL */
	const char *const *options; /* ends in NULL */
	const char *cpu, *pid, *tid, *comm; /* where a row has them; NULL: it has none */
	/* Whether a row is of the function and the image of the selection; NULL: always. */
	enum list_fits (*place)(struct json_object *report, struct json_object *row,
				const struct show_select *select);
	bool counted;	 /* see show_list_is_counted() */
	bool of_threads; /* place() says whether CPU, thread and name fit, too */
	bool newest;	 /* rows are in the order of time, and a limit keeps the last */
	const struct list_column *columns;
	size_t n_columns;
};

/* Whether ROW of LIST of REPORT is of the selection. */
enum list_fits list_row_fits(const struct show_list *list, struct json_object *report,
			     struct json_object *row, const struct show_select *select);
/* The element of "cut" of REPORT about WHAT (may be NULL), NULL if there is none. */
struct json_object *list_cut(struct json_object *report, const char *what);
/* Both are unknown if one is, unless the other one is no. */
enum list_fits list_both(enum list_fits a, enum list_fits b);
/* Whether TEXT (NULL: unknown) matches PATTERN (NULL: anything does). */
enum list_fits list_pattern_fits(const char *text, const char *pattern);
/* The same for the string at PATH of O. */
enum list_fits list_text_fits(struct json_object *o, const char *path, const char *pattern);
