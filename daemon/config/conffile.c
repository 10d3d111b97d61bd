/*
 * Bytes -> settings, a line at a time. Called by conffile_find.c with what it has read.
 *
 * The rules are those of systemd's parser, so that nobody has to learn others; where it gives a
 * file up (a broken section header, a line that is too long) we leave out the least that is safe.
 */
#include "daemon/config/conffile.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "proto/base.h"

#define BLANKS	 " \t\n\r"
#define COMMENTS "#;"
#define BOM	 "\xef\xbb\xbf"

struct parser {
	const struct conffile_handler *handler;
	const char *file;
	unsigned line; /* the physical one */
	char section[CONFFILE_MAX_SECTION];
	enum { SECTION_NONE, SECTION_WANTED, SECTION_LEFT_OUT } state;
	/* What lines and their continuations have given so far. */
	char text[CONFFILE_MAX_LINE + 1];
	size_t used;
	unsigned first; /* line where it began; 0: nothing is open */
	bool overlong, no_text;
};

static void parser_warn(const struct parser *p, bool lost, const char *text)
{
	const struct conffile_warning warning = {p->file, p->first, text, lost};

	p->handler->warning(p->handler->userdata, &warning);
}

/* Bytes of the UTF-8 character at S, which has LEFT bytes; 0: it is none (Unicode, table 3-7). */
static size_t character_length(const uint8_t *s, size_t left)
{
	size_t n = s[0] < 0x80 ? 1 : s[0] < 0xc2 ? 0 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;

	if (n == 0 || n > left || s[0] > 0xf4)
		return 0;
	for (size_t i = 1; i < n; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) ||
	    (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f))
		return 0;
	return n;
}

/* UTF-8 without control characters: what may be shown and compared. */
static bool is_text(const char *s, size_t size)
{
	for (size_t i = 0, n; i < size; i += n) {
		uint8_t c = (uint8_t)s[i];

		n = character_length((const uint8_t *)s + i, size - i);
		if (n == 0 || (c < ' ' && c != '\t') || c == 0x7f)
			return false;
	}
	return true;
}

static void strip_end(char *s)
{
	size_t n = strlen(s);

	while (n > 0 && strchr(BLANKS, s[n - 1]))
		s[--n] = '\0';
}

static void parser_section(struct parser *p, char *text)
{
	size_t n = strlen(text);
	char say[CONFFILE_MAX_SECTION + 64];

	p->state = SECTION_LEFT_OUT;
	if (n < 3 || text[n - 1] != ']' || n - 2 >= sizeof(p->section)) {
		parser_warn(p, true, "section header is not valid, the section is ignored");
		return;
	}
	text[n - 1] = '\0';
	memcpy(p->section, text + 1, n - 1);
	if (strncmp(p->section, "X-", 2) == 0)
		return;
	if (p->handler->section(p->handler->userdata, p->section)) {
		p->state = SECTION_WANTED;
		return;
	}
	snprintf(say, sizeof(say), "unknown section [%s], ignored", p->section);
	parser_warn(p, false, say);
}

static void parser_assignment(struct parser *p, char *text)
{
	char *value = strchr(text, '=');

	if (p->state == SECTION_LEFT_OUT)
		return;
	if (!value || value == text) {
		parser_warn(p, true, "neither a [section] nor KEY=VALUE, ignored");
		return;
	}
	if (p->state == SECTION_NONE) {
		parser_warn(p, true, "a setting before the first [section], ignored");
		return;
	}
	*value++ = '\0';
	strip_end(text);
	if (strncmp(text, "X-", 2) == 0)
		return;
	const struct conffile_setting setting = {
		p->section, text, value + strspn(value, BLANKS), p->file, p->first,
	};
	p->handler->setting(p->handler->userdata, &setting);
}

/* A line is complete. */
static void parser_finish(struct parser *p)
{
	char *text = p->text + strspn(p->text, BLANKS);

	strip_end(text);
	if (p->overlong)
		parser_warn(p, true, "line is too long, ignored");
	else if (p->no_text)
		parser_warn(p, true, "line holds bytes that are no text, ignored");
	else if (*text == '[')
		parser_section(p, text);
	else if (*text)
		parser_assignment(p, text);
	/* Nobody knows where a broken line would have put what follows. */
	if ((p->overlong || p->no_text) && *text == '[')
		p->state = SECTION_LEFT_OUT;
	p->used = 0;
	p->first = 0;
	p->overlong = p->no_text = false;
}

static bool ends_in_backslash(const char *s, size_t n)
{
	size_t backslashes = 0;

	while (backslashes < n && s[n - 1 - backslashes] == '\\')
		backslashes++;
	return backslashes % 2 == 1;
}

static bool is_comment(const char *s, size_t n)
{
	while (n > 0 && (*s == ' ' || *s == '\t')) {
		s++;
		n--;
	}
	return n > 0 && memchr(COMMENTS, *s, strlen(COMMENTS));
}

/* N bytes at S, without what ended the line. */
static void parser_line(struct parser *p, const char *s, size_t n)
{
	bool goes_on = ends_in_backslash(s, n);
	size_t room = CONFFILE_MAX_LINE - p->used;

	p->line++;
	if (is_comment(s, n))
		return;
	if (p->first == 0)
		p->first = p->line;
	p->no_text |= !is_text(s, n);
	p->overlong |= n > room;
	memcpy(p->text + p->used, s, MIN_OF(n, room));
	p->used += MIN_OF(n, room);
	if (goes_on && p->used > 0 && n <= room)
		p->text[p->used - 1] = ' ';
	p->text[p->used] = '\0';
	if (!goes_on)
		parser_finish(p);
}

void conffile_parse(const char *file, const void *text, size_t size,
		    const struct conffile_handler *handler)
{
	struct parser p = {.handler = handler, .file = file};
	const char *at = text, *end = at + size;

	if (size >= strlen(BOM) && memcmp(at, BOM, strlen(BOM)) == 0)
		at += strlen(BOM);
	while (at < end) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		size_t n = (size_t)((newline ? newline : end) - at);
		bool cr = n > 0 && at[n - 1] == '\r';

		parser_line(&p, at, n - cr);
		at += n + (newline != NULL);
	}
	if (p.first)
		parser_finish(&p);
}
