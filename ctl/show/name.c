/*
 * Names shortened. Called by the parts of show.c. Every name is a stranger's: nothing here takes
 * brackets to be in pairs, and all goes out through text.c.
 */
#include "ctl/show/name.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/base/text.h"
#include "proto/base.h"

#define DOTS	 "..."
#define MAX_NAME 8192u

static bool is_in_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_' || c == '$' || (unsigned char)c >= 0x80;
}

/* The bytes of an operator's name at NAME + AT, brackets among them; 0: there is none. */
static size_t operator_at(const char *name, size_t at)
{
	static const char word[] = "operator";
	const char *end = name + at + sizeof(word) - 1;

	if (strncmp(name + at, word, sizeof(word) - 1) != 0 || (at > 0 && is_in_word(name[at - 1])))
		return 0;
	end += strncmp(end, "()", 2) == 0 ? 2 : strspn(end, "<>=-");
	return (size_t)(end - name) - at;
}

/* Behind the bracket that closes the one at NAME + AT; 0: none does. Within round ones what is
 * "less" and what is a bracket nobody knows. */
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

/* What may go between OPEN and the bracket that closes it. "(anonymous namespace)" and the like
 * are names; so they have no comma and something behind them. */
static bool may_go(const char *name, size_t open, size_t end)
{
	if (end - open <= sizeof(DOTS) + 1)
		return false;
	return name[open] == '<' || strncmp(name + end, "::", 2) != 0;
}

/* In NAME, what lies between brackets of kind OPEN becomes dots. */
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
		if (end > 0 && may_go(name, from, end)) {
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

static bool is_inside(char c)
{
	return ((unsigned char)c & 0xc0) == 0x80;
}

static size_t width_of(const char *name)
{
	size_t n = 0;

	for (; *name != '\0'; name++)
		n += !is_inside(*name);
	return n;
}

/* Leaves HEAD bytes and as many of the end as COLUMNS still has, all characters whole. */
static void drop_middle(char *name, size_t head, size_t columns)
{
	const size_t size = strlen(name);
	size_t tail;

	while (head > 0 && (is_inside(name[head]) || name[head - 1] == '.'))
		head--;
	if (columns < head + sizeof(DOTS) - 1 || size <= columns)
		return;
	tail = size - (columns - head - (sizeof(DOTS) - 1));
	while (is_inside(name[tail]) || name[tail] == '.')
		tail++;
	memmove(name + head + sizeof(DOTS) - 1, name + tail, size - tail + 1);
	memcpy(name + head, DOTS, sizeof(DOTS) - 1);
}

size_t name_puts(FILE *out, const char *name, size_t columns)
{
	CLEANUP_FREE char *copy = name != NULL ? strndup(name, MAX_NAME) : NULL;

	if (copy == NULL || width_of(copy) <= columns)
		return text_puts(out, name, columns);
	drop_between(copy, '<');
	if (width_of(copy) > columns)
		drop_between(copy, '(');
	drop_middle(copy, columns / 2, columns);
	return text_puts(out, copy, columns);
}

size_t name_puts_source(FILE *out, const char *source, size_t columns)
{
	CLEANUP_FREE char *copy = source != NULL ? strndup(source, MAX_NAME) : NULL;
	char *slash;

	if (copy == NULL || width_of(copy) <= columns)
		return text_puts(out, source, columns);
	drop_middle(copy, 0, columns);
	/* From a whole directory on, if there is one. */
	slash = strchr(copy, '/');
	if (slash != NULL && slash > copy + sizeof(DOTS) - 1)
		memmove(copy + sizeof(DOTS) - 1, slash, strlen(slash) + 1);
	return text_puts(out, copy, columns);
}

size_t name_puts_line(FILE *out, const char *source, size_t columns)
{
	const char *slash = source != NULL ? strrchr(source, '/') : NULL;

	return name_puts_source(out, slash != NULL ? slash + 1 : source, columns);
}
