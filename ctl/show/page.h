/*
 * The page of `ptsnapctl info': lines that fit the terminal. show_info.c puts the page together,
 * show_suspects.c says what stands out, page.c has headings, paragraphs and what both need.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <json-c/json.h>

#include "ctl/show/show.h"

#define PAGE_LABEL 10u /* columns in front of the lines about the snapshot as a whole */

struct page {
	FILE *out;
	const struct show_style *style;
	struct json_object *report;
};

/* A paragraph is written to page_text() and then printed by page_end(), wrapped at blanks. */
struct page_text {
	FILE *out; /* NULL: no memory, and nothing is printed */
	char *text;
	size_t size;
};

/* Prints TEXT, the lines of a summary, in COLUMNS: a line that begins with a label of PAGE_LABEL
 * columns is wrapped behind the label, and any other line, of a table, is cut. */
void page_fit(FILE *out, const char *text, size_t columns);
void page_heading(const struct page *p, const char *text);
void page_begin(struct page_text *t);
/* Prints MARK in INDENT columns, and T behind it, wrapped at blanks and indented; at most MAX lines
 * (0: all), the last of which says that the text is cut. Frees T. */
void page_end(const struct page *p, struct page_text *t, const char *mark, size_t indent,
	      size_t max);

/* " 12.3 ms before the trigger", or " at an unknown time", for the relative time at PATH of O. */
void page_before(FILE *out, struct json_object *o, const char *path);
/* How long before the trigger the time at PATH of O is; false: unknown, or behind it. */
int page_age(struct json_object *o, const char *path, uint64_t *ret_ns);
/* The element of "threads" with this tid; NULL: there is none. */
struct json_object *page_thread(const struct page *p, uint64_t tid);
/* Writes "NAME < CALLER < ..." of thread T, from frame FIRST on, at most MAX frames; nothing
 * without a stack. Returns how many frames. */
size_t page_stack(const struct page *p, FILE *out, struct json_object *t, size_t first, size_t max);
/* "thread TID (COMM)". */
void page_who(const struct page *p, FILE *out, struct json_object *o, const char *path);

/* show_names.c: what has no names, and what would give it names, behind an empty line. False:
 * nothing. */
bool page_names(const struct page *p);

/* show_suspects.c: the suspects, or that there are none. */
void page_suspects(const struct page *p);
