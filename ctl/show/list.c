/*
 * Selects rows of a list of the report, and prints them as a table or as JSON.
 */
#include "ctl/show/list.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/base/place.h"
#include "ctl/base/say.h"
#include "ctl/show/show_private.h"
#include "proto/base.h"

#define BOLD  "\033[1m"
#define PLAIN "\033[0m"

#define WIDE 120u /* columns of a line from which all columns have their full width */

/* --- Rows --- */

struct rows {
	const struct show_list *list;
	const struct show_select *select;
	struct json_object *report;
	size_t *index; /* of the rows to show; owned */
	size_t n, matching, unknown, total;
};

enum list_fits list_both(enum list_fits a, enum list_fits b)
{
	if (a == LIST_NO || b == LIST_NO)
		return LIST_NO;
	return a == LIST_UNKNOWN || b == LIST_UNKNOWN ? LIST_UNKNOWN : LIST_YES;
}

enum list_fits list_pattern_fits(const char *text, const char *pattern)
{
	if (!pattern)
		return LIST_YES;
	if (!text)
		return LIST_UNKNOWN;
	return fnmatch(pattern, text, 0) == 0 ? LIST_YES : LIST_NO;
}

enum list_fits list_text_fits(struct json_object *o, const char *path, const char *pattern)
{
	return list_pattern_fits(path ? field_text(o, path) : NULL, pattern);
}

static enum list_fits number_fits(struct json_object *o, const char *path, bool wanted, uint32_t n)
{
	uint64_t v;

	if (!wanted)
		return LIST_YES;
	if (!path || !field_u64(o, path, &v))
		return LIST_UNKNOWN;
	return v == n ? LIST_YES : LIST_NO;
}

enum list_fits list_row_fits(const struct show_list *l, struct json_object *report,
			     struct json_object *row, const struct show_select *s)
{
	enum list_fits fits = number_fits(row, l->pid, s->has_pid, s->pid);

	if (!l->of_threads) {
		fits = list_both(fits, number_fits(row, l->cpu, s->has_cpu, s->cpu));
		fits = list_both(fits, number_fits(row, l->tid, s->has_tid, s->tid));
		fits = list_both(fits, list_text_fits(row, l->comm, s->comm));
	}
	return l->place ? list_both(fits, l->place(report, row, s)) : fits;
}

/* 0 or -ENOMEM. */
static int rows_select(struct rows *rows)
{
	const uint64_t limit = rows->select->limit;
	size_t first = 0;

	rows->total = field_count(rows->report, rows->list->name);
	rows->index = calloc(rows->total + 1, sizeof(*rows->index));
	if (!rows->index)
		return -ENOMEM;
	for (size_t i = 0; i < rows->total; i++) {
		enum list_fits fits =
			list_row_fits(rows->list, rows->report,
				      field_at(rows->report, rows->list->name, i), rows->select);

		if (fits == LIST_YES)
			rows->index[rows->matching++] = i;
		rows->unknown += fits == LIST_UNKNOWN;
	}
	rows->n = rows->matching;
	if (limit == 0 || rows->n <= limit)
		return 0;
	rows->n = (size_t)limit;
	if (rows->list->newest)
		first = rows->matching - rows->n;
	memmove(rows->index, rows->index + first, rows->n * sizeof(*rows->index));
	return 0;
}

static struct json_object *row_at(const struct rows *rows, size_t i)
{
	return field_at(rows->report, rows->list->name, rows->index[i]);
}

struct json_object *list_cut(struct json_object *report, const char *what)
{
	for (size_t i = 0; what && i < field_count(report, "cut"); i++) {
		struct json_object *cut = field_at(report, "cut", i);
		const char *text = field_text(cut, "what");

		if (text && strcmp(text, what) == 0)
			return cut;
	}
	return NULL;
}

/* --- Remarks: what the table does not have --- */

#define REMARK_SIZE 200u
#define MAX_REMARKS 5u

struct remarks {
	char text[MAX_REMARKS][REMARK_SIZE];
	size_t n;
};

static void PRINTF_LIKE(2, 3) remark(struct remarks *r, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	vsnprintf(r->text[r->n++], REMARK_SIZE, format, ap);
	va_end(ap);
}

/* SELECTED: also about what the selection and the limit left out. */
static void remarks_make(struct remarks *r, const struct rows *rows, bool selected)
{
	const char *name = rows->list->name;
	struct json_object *cut = list_cut(rows->report, name);
	struct json_object *unlisted = list_cut(rows->report, rows->list->unlisted);

	r->n = 0;
	if (!json_object_is_type(field_get(rows->report, name), json_type_array))
		remark(r, "the report has no list of %s; the decoder that made it may be older",
		       name);
	else if (rows->total == 0 && selected)
		remark(r, "the list of %s in the report is empty", name);
	else if (rows->matching < rows->total && selected)
		remark(r, "%s of %s %s match", figure_count(rows->matching).text,
		       figure_count(rows->total).text, name);
	if (rows->unknown > 0)
		remark(r, "%s other %s may match, but the report does not say",
		       figure_count(rows->unknown).text, name);
	if (rows->n < rows->matching && selected)
		remark(r, "--limit left out %s %s%s", figure_count(rows->matching - rows->n).text,
		       rows->list->newest ? "older " : "", name);
	if (cut)
		remark(r, "the report has no room for all %s: it has %s of %s", name,
		       figure_field_count(cut, "kept").text, figure_field_count(cut, "total").text);
	if (unlisted)
		remark(r, "the table of %s in the decoder was full %s times", name,
		       figure_field_count(unlisted, "total").text);
}

/* --- The table --- */

#define MAX_COLUMNS 16u

/* The widths of the columns; 0: a column that is left out. */
struct layout {
	size_t width[MAX_COLUMNS];
	bool left_out;
};

static void layout_make(struct layout *l, const struct show_list *list, unsigned columns)
{
	size_t used = 0, weights = 0, spare;

	*l = (struct layout){0};
	for (size_t i = 0; i < list->n_columns; i++) {
		const struct list_column *c = &list->columns[i];

		l->width[i] = columns >= WIDE ? c->wide : c->narrow;
		l->left_out |= l->width[i] == 0;
		used += l->width[i] + (l->width[i] > 0);
		weights += l->width[i] > 0 ? c->weight : 0;
	}
	spare = columns + 1 > used ? columns + 1 - used : 0;
	for (size_t i = 0; i < list->n_columns && weights > 0; i++)
		if (l->width[i] > 0)
			l->width[i] += spare * list->columns[i].weight / weights;
}

static void blanks(FILE *out, size_t n)
{
	fprintf(out, "%*s", (int)n, "");
}

static bool has_units(const struct show_list *list)
{
	for (size_t i = 0; i < list->n_columns; i++)
		if (*list->columns[i].unit)
			return true;
	return false;
}

/* Blanks wait for what comes next, so that no line ends in blanks. */
static void head_line(FILE *out, const struct show_list *list, const struct layout *l, bool units)
{
	size_t pending = 0;

	for (size_t i = 0; i < list->n_columns; i++) {
		const struct list_column *c = &list->columns[i];
		const char *text = units ? c->unit : c->head;
		const size_t size = strlen(text);
		const size_t room = l->width[i] - MIN_OF(size, l->width[i]);

		if (l->width[i] == 0)
			continue;
		if (size > 0) {
			blanks(out, pending + (c->figure ? room : 0));
			fputs(text, out);
			pending = (c->figure ? 0 : room) + 1;
		} else {
			pending += l->width[i] + 1;
		}
	}
	fputc('\n', out);
}

static void row_line(FILE *out, const struct rows *rows, const struct layout *l, size_t row)
{
	struct list_cell cell = {.report = rows->report, .row = row_at(rows, row)};
	size_t pending = 0, used;

	for (size_t i = 0; i < rows->list->n_columns; i++) {
		const struct list_column *c = &rows->list->columns[i];

		cell.path = c->path;
		cell.width = l->width[i];
		if (cell.width == 0)
			continue;
		blanks(out, pending);
		if (c->figure) {
			fprintf(out, "%*s", (int)cell.width, c->figure(&cell).text);
			pending = 1;
		} else {
			used = c->text(out, &cell);
			pending = cell.width - MIN_OF(used, cell.width) + 1;
		}
	}
	fputc('\n', out);
}

static void print_left_out(FILE *out, const struct show_list *list, const struct layout *l)
{
	const char *before = "on a terminal of 120 columns also:";

	for (size_t i = 0; i < list->n_columns; i++) {
		const struct list_column *c = &list->columns[i];

		if (l->width[i] > 0)
			continue;
		fprintf(out, "%s %s%s%s", before, c->head, *c->unit ? " " : "", c->unit);
		before = ",";
	}
	fputc('\n', out);
}

static void print_table(FILE *out, const struct rows *rows, const struct show_style *style)
{
	struct remarks remarks;
	struct layout layout;

	layout_make(&layout, rows->list, style->columns);
	remarks_make(&remarks, rows, true);
	if (rows->n > 0) {
		fputs(style->color ? BOLD : "", out);
		head_line(out, rows->list, &layout, false);
		if (has_units(rows->list))
			head_line(out, rows->list, &layout, true);
		fputs(style->color ? PLAIN : "", out);
	}
	for (size_t i = 0; i < rows->n; i++)
		row_line(out, rows, &layout, i);
	if (rows->n > 0 && (remarks.n > 0 || layout.left_out))
		fputc('\n', out);
	for (size_t i = 0; i < remarks.n; i++)
		fprintf(out, "%s\n", remarks.text[i]);
	if (rows->n > 0 && layout.left_out)
		print_left_out(out, rows->list, &layout);
}

int show_list(FILE *out, struct json_object *report, const struct show_list *list,
	      const struct show_select *select, const struct show_style *style)
{
	struct rows rows = {.list = list, .select = select, .report = report};
	int r = rows_select(&rows);

	if (r == 0)
		print_table(out, &rows, style);
	free(rows.index);
	return r;
}

/* --- JSON --- */

int show_list_json(struct json_object *report, const struct show_list *list,
		   const struct show_select *select, bool quiet, struct json_object **ret)
{
	struct rows rows = {.list = list, .select = select, .report = report};
	struct remarks remarks;
	int r = rows_select(&rows);

	*ret = NULL;
	if (r == 0 && json_object_is_type(field_get(report, list->name), json_type_array)) {
		*ret = json_object_new_array();
		r = *ret ? 0 : -ENOMEM;
	}
	for (size_t i = 0; i < rows.n && r == 0 && *ret; i++) {
		struct json_object *row = place_expand(report, row_at(&rows, i));

		if (!row || json_object_array_add(*ret, row) < 0)
			r = -ENOMEM;
	}
	if (r == 0 && !quiet) {
		remarks_make(&remarks, &rows, false);
		for (size_t i = 0; i < remarks.n; i++)
			say("%s", remarks.text[i]);
	}
	free(rows.index);
	return r;
}
