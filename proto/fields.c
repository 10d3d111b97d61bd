/*
 * Composes and parses lines of fields.
 */
#include "proto/fields.h"

#include <assert.h>
#include <string.h>

#include "proto/base.h"

/* --- Composing --- */

static char *put_number(char *to, uint64_t v)
{
	char digits[20];
	size_t n = 0;

	do {
		digits[n++] = (char)('0' + v % 10);
		v /= 10;
	} while (v > 0);
	while (n > 0)
		*to++ = digits[--n];
	return to;
}

static char *put_hex(char *to, uint64_t v)
{
	unsigned shift = 60;

	*to++ = '0';
	*to++ = 'x';
	while (shift > 0 && (v >> shift) == 0)
		shift -= 4;
	for (;; shift -= 4) {
		*to++ = "0123456789abcdef"[v >> shift & 15];
		if (shift == 0)
			return to;
	}
}

static bool is_plain(unsigned char c)
{
	return c >= ' ' && c <= '~' && c != '\\';
}

static char *put_text(char *to, const char *text)
{
	for (size_t i = 0; i < FIELDS_MAX_TEXT && text[i] != '\0'; i++) {
		unsigned char c = (unsigned char)text[i];

		if (is_plain(c)) {
			*to++ = (char)c;
			continue;
		}
		*to++ = '\\';
		*to++ = 'x';
		*to++ = "0123456789abcdef"[c >> 4];
		*to++ = "0123456789abcdef"[c & 15];
	}
	return to;
}

static char *put_field(char *to, const struct field *f, const void *item)
{
	const void *at = (const char *)item + f->offset;

	switch (f->type) {
	case FIELD_NUMBER: return put_number(to, *(const uint32_t *)at);
	case FIELD_LONG: return put_number(to, *(const uint64_t *)at);
	case FIELD_HEX: return put_hex(to, *(const uint64_t *)at);
	case FIELD_TEXT: return put_text(to, *(const char *const *)at);
	case FIELD_WORD:
		assert(*(const unsigned *)at < f->n_words);
		return stpcpy(to, f->words[*(const unsigned *)at]);
	default: return to;
	}
}

size_t fields_compose(const struct fields_line *line, const void *item, char *to)
{
	char *begin = to;

	*to++ = line->letter;
	for (size_t i = 0; i < FIELDS_MAX && line->fields[i].type != FIELD_END; i++) {
		*to++ = '\t';
		to = put_field(to, &line->fields[i], item);
	}
	*to++ = '\n';
	*to = '\0';
	return (size_t)(to - begin);
}

/* --- Parsing --- */

static bool get_number(const char *text, uint64_t max, uint64_t *ret)
{
	uint64_t v = 0;

	if (*text == '\0')
		return false;
	for (; *text != '\0'; text++) {
		if (*text < '0' || *text > '9' || __builtin_mul_overflow(v, (uint64_t)10, &v) ||
		    __builtin_add_overflow(v, (uint64_t)(*text - '0'), &v))
			return false;
	}
	*ret = v;
	return v <= max;
}

static int digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool get_hex(const char *text, uint64_t *ret)
{
	uint64_t v = 0;

	if (text[0] != '0' || text[1] != 'x' || text[2] == '\0' || strlen(text) > 2 + 16)
		return false;
	for (text += 2; *text != '\0'; text++) {
		if (digit(*text) < 0)
			return false;
		v = v << 4 | (uint64_t)digit(*text);
	}
	*ret = v;
	return true;
}

/* Unescapes in place. A text cannot contain a 0. */
static bool get_text(char *text, const char **ret)
{
	char *to = text;

	*ret = text;
	for (; *text != '\0'; to++) {
		if (!is_plain((unsigned char)*text) && *text != '\\')
			return false;
		if (*text != '\\') {
			*to = *text++;
			continue;
		}
		if (text[1] != 'x' || digit(text[2]) < 0 || digit(text[3]) < 0)
			return false;
		*to = (char)(digit(text[2]) << 4 | digit(text[3]));
		if (*to == '\0')
			return false;
		text += 4;
	}
	*to = '\0';
	return true;
}

static bool get_word(const char *text, const struct field *f, unsigned *ret)
{
	for (size_t i = 0; i < f->n_words; i++) {
		if (strcmp(f->words[i], text) == 0) {
			*ret = (unsigned)i;
			return true;
		}
	}
	return false;
}

static bool get_field(char *text, const struct field *f, void *item)
{
	void *at = (char *)item + f->offset;
	uint64_t v = 0;

	switch (f->type) {
	case FIELD_NUMBER:
		if (!get_number(text, UINT32_MAX, &v))
			return false;
		*(uint32_t *)at = (uint32_t)v;
		return true;
	case FIELD_LONG: return get_number(text, UINT64_MAX, at);
	case FIELD_HEX: return get_hex(text, at);
	case FIELD_TEXT: return get_text(text, at);
	case FIELD_WORD: return get_word(text, f, at);
	default: return false;
	}
}

/* Ends the field at *REST and moves *REST behind it; NULL: it was the last one. */
static char *next_field(char **rest)
{
	char *field = *rest, *tab = strchr(field, '\t');

	*rest = tab ? tab + 1 : NULL;
	if (tab)
		*tab = '\0';
	return field;
}

int fields_kind(const struct fields_line *lines, size_t n, const char *text)
{
	for (size_t i = 0; i < n; i++)
		if (text[0] == lines[i].letter && (text[1] == '\t' || text[1] == '\0'))
			return (int)i;
	return -1;
}

bool fields_parse(const struct fields_line *line, char *text, void *item)
{
	char *rest = text;

	next_field(&rest);
	for (size_t i = 0; i < FIELDS_MAX && line->fields[i].type != FIELD_END; i++)
		if (!rest || !get_field(next_field(&rest), &line->fields[i], item))
			return false;
	return !rest;
}
