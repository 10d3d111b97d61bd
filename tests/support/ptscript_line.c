/*
 * Parses lines of a script and the numbers in them.
 */
#include "tests/support/ptscript_line.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int ptscript_fail(struct ptscript *s, unsigned line, const char *format, ...)
{
	char why[384];
	va_list ap;

	va_start(ap, format);
	vsnprintf(why, sizeof(why), format, ap);
	va_end(ap);
	snprintf(s->error, sizeof(s->error), "%.100s:%u: %s", s->path, line, why);
	return -EINVAL;
}

char *ptscript_trim(char *text)
{
	size_t n;

	while (isblank((unsigned char)*text))
		text++;
	n = strlen(text);
	while (n > 0 && isspace((unsigned char)text[n - 1]))
		n--;
	text[n] = '\0';
	return text;
}

static bool is_word(const char *text)
{
	if (*text == '\0' || isdigit((unsigned char)*text))
		return false;
	for (; *text != '\0'; text++)
		if (!isalnum((unsigned char)*text) && *text != '_' && *text != '.')
			return false;
	return true;
}

/* Splits "A, B" into arguments. Empty parentheses hold no argument. */
static int split(struct ptscript_line *l, char *text)
{
	char *rest = ptscript_trim(text), *arg;

	if (*rest == '\0')
		return 0;
	while ((arg = strsep(&rest, ",")) != NULL) {
		if (l->n_args == PTSCRIPT_MAX_ARGS)
			return ptscript_fail(l->script, l->number, "more than %u arguments",
					     PTSCRIPT_MAX_ARGS);
		l->args[l->n_args++] = ptscript_trim(arg);
		if (*l->args[l->n_args - 1] == '\0')
			return ptscript_fail(l->script, l->number, "an empty argument");
	}
	return 0;
}

static int take_args(struct ptscript_line *l, char *open)
{
	char *close = strrchr(open + 1, ')');

	if (close == NULL || *ptscript_trim(close + 1) != '\0')
		return ptscript_fail(l->script, l->number, "no ) at the end");
	*close = '\0';
	*open = '\0';
	return split(l, open + 1);
}

/* Parses the label; returns the place behind it. */
static char *take_label(struct ptscript_line *l, char *text)
{
	char *colon = strchr(text, ':'), *open = strchr(text, '(');

	if (colon == NULL || (open != NULL && open < colon))
		return text;
	*colon = '\0';
	l->label = ptscript_trim(text);
	return colon + 1;
}

static int take(struct ptscript_line *l, char *text)
{
	char *name = take_label(l, text), *open = strchr(name, '(');
	int r = open != NULL ? take_args(l, open) : 0;

	if (r != 0)
		return r;
	if (l->label != NULL && !is_word(l->label))
		return ptscript_fail(l->script, l->number, "`%s' is no label", l->label);
	name = ptscript_trim(name);
	if (*name == '\0' && l->n_args == 0 && open == NULL)
		return l->label != NULL
			       ? ptscript_fail(l->script, l->number, "nothing behind the label")
			       : 0;
	if (!is_word(name))
		return ptscript_fail(l->script, l->number, "`%s' is no name", name);
	l->name = name;
	return 0;
}

int ptscript_line_read(struct ptscript_line *l, const char *text, const char **ret_next)
{
	size_t n = strcspn(text, "\n");

	*ret_next = text[n] == '\n' ? text + n + 1 : text + n;
	l->label = l->name = NULL;
	l->n_args = 0;
	if (n >= sizeof(l->buffer))
		return ptscript_fail(l->script, l->number, "longer than %zu characters",
				     sizeof(l->buffer) - 1);
	memcpy(l->buffer, text, n);
	l->buffer[n] = '\0';
	l->buffer[strcspn(l->buffer, "#")] = '\0';
	return take(l, l->buffer);
}

/* Accepts digits only, decimal or behind 0x. Other forms that strtoull takes are refused. */
static bool plain_number(const char *text, uint64_t *ret)
{
	bool hex = strncmp(text, "0x", 2) == 0;
	const char *digits = hex ? text + 2 : text;
	char *end;

	if (!(hex ? isxdigit((unsigned char)*digits) : isdigit((unsigned char)*digits)))
		return false;
	errno = 0;
	*ret = strtoull(digits, &end, hex ? 16 : 10);
	return *end == '\0' && errno == 0;
}

static const struct ptscript_label *find_label(const struct ptscript *s, const char *name)
{
	for (size_t i = 0; i < s->n_labels; i++)
		if (strcmp(s->labels[i].name, name) == 0)
			return &s->labels[i];
	return NULL;
}

int ptscript_value(struct ptscript *s, unsigned line, const char *text, uint64_t *ret)
{
	char name[128];
	size_t n = strcspn(text, "+-");
	const struct ptscript_label *label;
	uint64_t more = 0;

	if (plain_number(text, ret))
		return 0;
	snprintf(name, sizeof(name), "%.*s", (int)n, text);
	if (!is_word(ptscript_trim(name)))
		return ptscript_fail(s, line, "`%s' is no number", text);
	label = find_label(s, ptscript_trim(name));
	if (label == NULL)
		return ptscript_fail(s, line, "no label `%s'", ptscript_trim(name));
	if (text[n] != '\0' && !plain_number(text + n + 1 + strspn(text + n + 1, " \t"), &more))
		return ptscript_fail(s, line, "`%s' is no number", text + n + 1);
	*ret = text[n] == '-' ? label->value - more : label->value + more;
	return 0;
}

int ptscript_number(const struct ptscript_line *l, size_t at, uint64_t max, uint64_t *ret)
{
	int r = ptscript_value(l->script, l->number, l->args[at], ret);

	if (r == 0 && *ret > max)
		return ptscript_fail(l->script, l->number, "0x%" PRIx64 " is more than 0x%" PRIx64,
				     *ret, max);
	return r;
}

bool ptscript_is(const struct ptscript_line *l, size_t at, const char *word)
{
	return at < l->n_args && strcmp(l->args[at], word) == 0;
}

char *ptscript_key(struct ptscript_line *l, size_t at)
{
	char *colon = at < l->n_args ? strchr(l->args[at], ':') : NULL, *key;

	if (colon == NULL)
		return NULL;
	*colon = '\0';
	key = ptscript_trim(l->args[at]);
	l->args[at] = ptscript_trim(colon + 1);
	return key;
}
