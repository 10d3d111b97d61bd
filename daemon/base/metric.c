/*
 * Parses lines of a Prometheus text file.
 */
#include "daemon/base/metric.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base.h"

#define NUMBER_SIZE 64u

/* What is left of a line. */
struct cursor {
	const char *at, *end;
};

static bool at(const struct cursor *c, char wanted)
{
	return c->at < c->end && *c->at == wanted;
}

static bool take(struct cursor *c, char wanted)
{
	bool is = at(c, wanted);

	c->at += is;
	return is;
}

static void skip_blanks(struct cursor *c)
{
	while (at(c, ' ') || at(c, '\t'))
		c->at++;
}

/* Copies a name to RET. False: there is none, or it is too long. */
static bool take_name(struct cursor *c, bool colons, char ret[METRIC_NAME_SIZE])
{
	size_t n = 0;

	while (c->at < c->end &&
	       (isalpha((unsigned char)*c->at) || *c->at == '_' || (colons && *c->at == ':') ||
		(n > 0 && isdigit((unsigned char)*c->at)))) {
		if (n + 1 >= METRIC_NAME_SIZE)
			return false;
		ret[n++] = *c->at++;
	}
	ret[n] = '\0';
	return n > 0;
}

/* Copies the text between two quotes to RET, as far as RET has room. False: the line ends before
 * the second quote. *RET_CUT: the text is longer, or has a NUL. */
static bool take_quoted(struct cursor *c, char ret[METRIC_VALUE_SIZE], bool *ret_cut)
{
	size_t n = 0;

	*ret_cut = false;
	if (!take(c, '"'))
		return false;
	while (c->at < c->end && *c->at != '"') {
		char byte = *c->at++;

		if (byte == '\\' && c->at < c->end) {
			byte = *c->at++;
			if (byte == 'n')
				byte = '\n';
		}
		if (n + 1 < METRIC_VALUE_SIZE && byte)
			ret[n++] = byte;
		else
			*ret_cut = true;
	}
	ret[n] = '\0';
	return take(c, '"');
}

/* Takes NAME="VALUE" and what divides it from the next one. */
static bool take_label(struct cursor *c, struct metric_label *ret, bool *ret_cut)
{
	if (!take_name(c, false, ret->name))
		return false;
	skip_blanks(c);
	if (!take(c, '='))
		return false;
	skip_blanks(c);
	if (!take_quoted(c, ret->value, ret_cut))
		return false;
	skip_blanks(c);
	if (!take(c, ',') && !at(c, '}'))
		return false;
	skip_blanks(c);
	return true;
}

int metric_parse(const char *text, struct metric_series *ret)
{
	struct cursor c = {text, text + strlen(text)};
	struct metric_series s = {.n_labels = 0};
	bool cut = false;

	if (!take_name(&c, true, s.name))
		return -EINVAL;
	if (take(&c, '{')) {
		skip_blanks(&c);
		while (!take(&c, '}')) {
			if (s.n_labels == METRIC_MAX_LABELS ||
			    !take_label(&c, &s.labels[s.n_labels++], &cut) || cut)
				return -EINVAL;
		}
	}
	if (c.at != c.end)
		return -EINVAL;
	*ret = s;
	return 0;
}

/* A bit for each label of S that is LABEL. */
static uint32_t labels_of(const struct metric_series *s, const struct metric_label *label)
{
	uint32_t bits = 0;

	for (size_t i = 0; i < s->n_labels; i++)
		if (strcmp(s->labels[i].name, label->name) == 0 &&
		    strcmp(s->labels[i].value, label->value) == 0)
			bits |= 1u << i;
	return bits;
}

/* Whether the line at C is of series S; then C stands behind the labels. */
static bool take_series(struct cursor *c, const struct metric_series *s)
{
	uint32_t found = 0, wanted = (1u << s->n_labels) - 1;
	char name[METRIC_NAME_SIZE];
	struct metric_label label;
	bool cut;

	if (!take_name(c, true, name) || strcmp(name, s->name) != 0)
		return false;
	skip_blanks(c);
	if (!take(c, '{'))
		return wanted == 0;
	skip_blanks(c);
	while (!take(c, '}')) {
		if (!take_label(c, &label, &cut))
			return false;
		if (!cut)
			found |= labels_of(s, &label);
	}
	return found == wanted;
}

/* The value, which a time may follow. */
static bool take_value(struct cursor *c, double *ret)
{
	char text[NUMBER_SIZE], *end;
	size_t n = 0;

	skip_blanks(c);
	while (c->at < c->end && *c->at != ' ' && *c->at != '\t' && *c->at != '\r') {
		if (n + 1 >= sizeof(text))
			return false;
		text[n++] = *c->at++;
	}
	text[n] = '\0';
	*ret = strtod(text, &end);
	return n > 0 && end == text + n;
}

int metric_find(const char *text, size_t size, const struct metric_series *series, double above,
		double below, double *ret)
{
	const char *end = text + size, *newline;
	int r = -ENOENT;

	for (; text < end && (newline = memchr(text, '\n', (size_t)(end - text)));
	     text = newline + 1) {
		struct cursor c = {text, newline};
		double value;

		skip_blanks(&c);
		if (!take_series(&c, series) || !take_value(&c, &value))
			continue;
		*ret = value;
		r = 0;
		if (value > above || value < below)
			return METRIC_REACHED;
	}
	return r;
}
