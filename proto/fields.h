/*
 * Lines of fields: items that are written as one line of text each, fields separated by tabs.
 *
 * A stream of one program for another (proto/callstream.h, proto/execstream.h) has a table of its
 * kinds of lines: a letter, and where the item's members go. Numbers are decimal, addresses hex
 * with 0x. A text is a stranger's: a byte that is not printable ASCII, a tab and a backslash are
 * written as \xNN, and a text longer than FIELDS_MAX_TEXT is cut.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FIELDS_MAX	8u    /* of one line */
#define FIELDS_MAX_TEXT 4096u /* bytes of one text, unescaped */
/* A line of at most three texts, escaped, and of numbers. */
#define FIELDS_MAX_LINE (4u * 4u * FIELDS_MAX_TEXT)

/* The type of the member. */
enum field_type {
	FIELD_END,    /* no field: the line has no more */
	FIELD_NUMBER, /* uint32_t */
	FIELD_LONG,   /* uint64_t */
	FIELD_HEX,    /* uint64_t */
	FIELD_TEXT,   /* const char *, never NULL */
	FIELD_WORD,   /* an enum, by the names in WORDS */
};

struct field {
	enum field_type type;
	size_t offset; /* of the member in the item */
	const char *const *words;
	size_t n_words;
};

struct fields_line {
	char letter;
	struct field fields[FIELDS_MAX];
};

/* Writes the line of ITEM with its newline and a terminating 0 to TO, FIELDS_MAX_LINE bytes.
 * Returns the length without the 0. */
size_t fields_compose(const struct fields_line *line, const void *item, char *to);

/* Finds which of the N kinds of LINES has the letter of TEXT. -1: none. */
int fields_kind(const struct fields_line *lines, size_t n, const char *text);

/* Reads TEXT, a line of that kind that ends with 0 and has no newline, into the members of ITEM;
 * unescapes texts in place, and ITEM points to them. False: it is no such line, and ITEM is
 * undefined. */
bool fields_parse(const struct fields_line *line, char *text, void *item);
