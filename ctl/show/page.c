/*
 * Headings, paragraphs, threads and stacks of a page.
 */
#include "ctl/show/page.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/base/field.h"
#include "ctl/base/place.h"
#include "ctl/base/say.h"
#include "ctl/show/show_private.h"
#include "proto/base.h"

#define BOLD  "\033[1m"
#define RED   "\033[1;31m"
#define PLAIN "\033[0m"

#define NAME_COLUMNS 60
#define MAX_INLINED  3u /* functions inlined at one frame */

void page_heading(const struct page *p, const char *text)
{
	fprintf(p->out, p->style->color ? "\n" BOLD "%s" PLAIN "\n" : "\n%s\n", text);
}

void page_begin(struct page_text *t)
{
	*t = (struct page_text){0};
	t->out = open_memstream(&t->text, &t->size);
}

/* The length of the word at TEXT; a number and its unit are one word. */
static size_t word_of(const char *text)
{
	const size_t n = strcspn(text, " ");
	const size_t unit = text[n] == ' ' ? strcspn(text + n + 1, " ") : 0;

	if (n == 0 || !strchr("0123456789", *text) || unit == 0 || unit > 3 ||
	    strchr("0123456789(", text[n + 1]))
		return n;
	return n + 1 + unit;
}

/* Prints TEXT in lines of WIDTH columns, each but the first behind INDENT blanks. */
static void wrap(FILE *out, const char *text, size_t width, size_t indent, size_t max)
{
	size_t column = 0, lines = 1;

	while (*text != '\0') {
		const size_t n = text_fit(text, word_of(text), width);
		const size_t columns = text_columns(text, n);

		if (n > 0 && column > 0 && column + 1 + columns > width) {
			if (max > 0 && lines == max) {
				fputs(" ...", out);
				break;
			}
			fprintf(out, "\n%*s", (int)indent, "");
			column = 0;
			lines++;
		}
		if (n > 0) {
			fprintf(out, "%s%.*s", column > 0 ? " " : "", (int)n, text);
			column += columns + (column > 0);
		}
		text += n + (text[n] == ' ');
	}
	fputc('\n', out);
}

void page_end(const struct page *p, struct page_text *t, const char *mark, size_t indent,
	      size_t max)
{
	/* The last line may end in " ...". */
	const size_t width = p->style->columns - indent - 4;
	const bool color = p->style->color && *mark == '!';

	if (!t->out || fclose(t->out) == EOF)
		return;
	fprintf(p->out, "%s%s%s%*s", color ? RED : "", mark, color ? PLAIN : "",
		(int)(indent - MIN_OF(indent, text_columns(mark, strlen(mark)))), "");
	wrap(p->out, t->text, width, indent, max);
	free(t->text);
}

/* "Label     text" */
static bool has_label(const char *line, size_t size)
{
	return size > PAGE_LABEL && line[0] >= 'A' && line[0] <= 'Z' && line[PAGE_LABEL - 1] == ' ';
}

void page_fit(FILE *out, const char *text, size_t columns)
{
	size_t size;

	for (; *text != '\0'; text += size + (text[size] == '\n')) {
		size = strcspn(text, "\n");
		CLEANUP_FREE char *line = strndup(text, size);

		if (!line)
			return;
		if (text_columns(line, size) > columns && has_label(line, size)) {
			fprintf(out, "%.*s", (int)PAGE_LABEL, line);
			wrap(out, line + PAGE_LABEL, columns - PAGE_LABEL, PAGE_LABEL, 0);
			continue;
		}
		text_puts(out, line, columns);
		fputc('\n', out);
	}
}

int page_age(struct json_object *o, const char *path, uint64_t *ret_ns)
{
	int64_t at;

	if (!field_i64(o, path, &at) || at > 0)
		return 0;
	*ret_ns = 0 - (uint64_t)at;
	return 1;
}

void page_before(FILE *out, struct json_object *o, const char *path)
{
	uint64_t ns;

	if (page_age(o, path, &ns))
		fprintf(out, " %s before the trigger", figure_nsec(ns).text);
	else
		fputs(" at an unknown time", out);
}

struct json_object *page_thread(const struct page *p, uint64_t tid)
{
	const size_t n = field_count(p->report, "threads");
	uint64_t v;

	for (size_t i = 0; i < n; i++) {
		struct json_object *t = field_at(p->report, "threads", i);

		if (field_u64(t, "tid", &v) && v == tid)
			return t;
	}
	return NULL;
}

/* The functions that are inlined at frame F, innermost first. */
static void put_inlined(const struct page *p, FILE *out, struct json_object *f)
{
	const size_t n = field_count(f, "inlined");

	for (size_t i = 0; i < n && i < MAX_INLINED; i++) {
		name_puts(out, field_text(field_at(f, "inlined", i), "name"), NAME_COLUMNS);
		fprintf(out, " (inlined)%s", p->style->utf8 ? " \u2190 " : " <- ");
	}
	if (n > MAX_INLINED)
		fputs(p->style->utf8 ? "... \u2190 " : "... <- ", out);
}

size_t page_stack(const struct page *p, FILE *out, struct json_object *t, size_t first, size_t max)
{
	const size_t n = field_count(t, "stack");
	size_t i;

	for (i = first; i < n && i - first < max; i++) {
		struct json_object *f = place_of_frame(p->report, t, i);

		if (i > first)
			fputs(p->style->utf8 ? " \u2190 " : " <- ", out);
		put_inlined(p, out, f);
		name_puts(out, place_name(f), NAME_COLUMNS);
	}
	if (i < n)
		fputs(p->style->utf8 ? " \u2190 ..." : " <- ...", out);
	return i > first ? i - first : 0;
}

void page_who(const struct page *p, FILE *out, struct json_object *o, const char *path)
{
	uint64_t tid;

	if (!field_u64(o, path, &tid)) {
		fputs("an unknown thread", out);
		return;
	}
	fprintf(out, "thread %ju", (uintmax_t)tid);
	if (field_text(page_thread(p, tid), "comm")) {
		fputs(" (", out);
		text_puts(out, field_text(page_thread(p, tid), "comm"), 16);
		fputs(")", out);
	}
}
