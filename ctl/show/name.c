/*
 * Shortens names of functions and source lines. Names come from traced programs: brackets need not
 * be in pairs, and every name is printed through say.c.
 */
#include "ctl/show/show_private.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/base/place.h"
#include "ctl/base/say.h"
#include "proto/base.h"

#define DOTS	 "..."
#define MAX_NAME 8192u

static bool is_in_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_' || c == '$' || (unsigned char)c >= 0x80;
}

/* The length of a C++ operator's name ("operator<<", "operator()") at NAME + AT, 0 if none is
 * there. */
static size_t operator_at(const char *name, size_t at)
{
	static const char word[] = "operator";
	const char *end = name + at + sizeof(word) - 1;

	if (strncmp(name + at, word, sizeof(word) - 1) != 0 || (at > 0 && is_in_word(name[at - 1])))
		return 0;
	end += strncmp(end, "()", 2) == 0 ? 2 : strspn(end, "<>=-");
	return (size_t)(end - name) - at;
}

/* The offset behind the bracket that closes the bracket at NAME + AT, or 0. Between round brackets
 * '<' may be "less than", and is not counted. */
static size_t close_of(const char *name, size_t at)
{
	const bool angle = name[at] == '<';
	size_t angles = 0, rounds = 0;

	for (size_t i = at; name[i] != '\0'; i++) {
		const char c = name[i];

		if (c == '(')
			rounds++;
		else if (c == ')' && rounds-- == 0)
			return 0;
		else if (angle && rounds == 0 && c == '<')
			angles++;
		else if (angle && rounds == 0 && c == '>' && name[i - 1] != '-')
			angles--;
		if (angles == 0 && rounds == 0)
			return i + 1;
	}
	return 0;
}

/* Replaces the text between all brackets of kind OPEN in NAME by dots. */
static void drop_between(char *name, char open)
{
	size_t from = 0, to = 0, n;

	while (name[from] != '\0') {
		size_t end = 0;

		n = operator_at(name, from);
		if (n == 0 && name[from] == open)
			end = close_of(name, from);
		if (n == 0)
			n = 1;
		/* A name such as "(anonymous namespace)::f" needs the text. */
		if (end > from + sizeof(DOTS) + 1 &&
		    (open == '<' || strncmp(name + end, "::", 2) != 0)) {
			const char closing = name[end - 1];

			name[to++] = open;
			memcpy(name + to, DOTS, sizeof(DOTS) - 1);
			to += sizeof(DOTS) - 1;
			name[to++] = closing;
			from = end;
			continue;
		}
		memmove(name + to, name + from, n);
		to += n;
		from += n;
	}
	name[to] = '\0';
}

static size_t width_of(const char *name)
{
	return text_columns(name, strlen(name));
}

/* How many bytes of NAME must go, with whole characters, for the rest to fit COLUMNS. The rest
 * begins neither with a dot nor with a mark that would join the dots in front of it. */
static size_t excess_of(const char *name, size_t columns)
{
	const size_t size = strlen(name);
	size_t left = width_of(name), at = 0, one, n;
	char shown[TEXT_SHOWN_MAX];

	for (; at < size; at += n, left -= one) {
		n = text_show_one(name + at, size - at, shown);
		one = text_columns(name + at, n);
		if (left <= columns && one > 0 && name[at] != '.')
			break;
	}
	return at;
}

/* A copy of NAME, the caller's, with room for dots: a byte that they replace can have four columns
 * (\xNN). NULL: no name, or no memory. */
static char *copy_of(const char *name)
{
	const size_t size = name ? strnlen(name, MAX_NAME) : 0;
	char *copy = name ? malloc(size + sizeof(DOTS)) : NULL;

	if (!copy)
		return NULL;
	memcpy(copy, name, size);
	copy[size] = '\0';
	return copy;
}

/* Keeps HEAD columns of the beginning and as much of the end as COLUMNS has room for, without
 * cutting a character. */
static void drop_middle(char *name, size_t head, size_t columns)
{
	size_t from = text_fit(name, strlen(name), head), to;

	while (from > 0 && name[from - 1] == '.')
		from--;
	head = text_columns(name, from);
	if (columns < head + sizeof(DOTS) - 1 || width_of(name) <= columns)
		return;
	to = from + excess_of(name + from, columns - head - (sizeof(DOTS) - 1));
	memmove(name + from + sizeof(DOTS) - 1, name + to, strlen(name + to) + 1);
	memcpy(name + from, DOTS, sizeof(DOTS) - 1);
}

size_t name_puts(FILE *out, const char *name, size_t columns)
{
	CLEANUP_FREE char *copy = copy_of(name);

	if (!copy || width_of(copy) <= columns)
		return text_puts(out, name, columns);
	drop_between(copy, '<');
	if (width_of(copy) > columns)
		drop_between(copy, '(');
	drop_middle(copy, columns / 2, columns);
	return text_puts(out, copy, columns);
}

size_t name_puts_place(FILE *out, struct json_object *place, size_t columns)
{
	CLEANUP_FREE char *text = place_text(place);

	return name_puts(out, text, columns);
}

size_t name_puts_source(FILE *out, const char *source, size_t columns)
{
	CLEANUP_FREE char *copy = copy_of(source);
	char *slash;

	if (!copy || width_of(copy) <= columns)
		return text_puts(out, source, columns);
	drop_middle(copy, 0, columns);
	/* Begin with a whole directory name, if the rest has one. */
	slash = strchr(copy, '/');
	if (slash && slash > copy + sizeof(DOTS) - 1)
		memmove(copy + sizeof(DOTS) - 1, slash, strlen(slash) + 1);
	return text_puts(out, copy, columns);
}

size_t name_puts_line(FILE *out, const char *source, size_t columns)
{
	const char *slash = source ? strrchr(source, '/') : NULL;

	return name_puts_source(out, slash ? slash + 1 : source, columns);
}
