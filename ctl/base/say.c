/*
 * Prints messages, and text that ptsnapctl did not write itself. A process name with escape
 * sequences must not drive the terminal of the person who reads a report.
 */
#include "ctl/base/say.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "decoder/run/worker_run.h"

static void say_list(const char *format, va_list arguments)
{
	CLEANUP_FREE char *line = NULL;

	fputs("ptsnapctl: ", stderr);
	if (vasprintf(&line, format, arguments) < 0) {
		line = NULL;
		fputs("out of memory\n", stderr);
		return;
	}
	text_puts(stderr, line, 0);
	fputc('\n', stderr);
}

void say(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	say_list(format, arguments);
	va_end(arguments);
}

int say_error(int code, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	say_list(format, arguments);
	va_end(arguments);
	return code;
}

void say_worker(const struct worker_said *said)
{
	char line[512];
	size_t at = 0;

	while (worker_said_line(said, &at, line, sizeof(line)))
		say("ptsnap-decode says: %s", line);
	if (said->dropped > 0)
		say("ptsnap-decode says %" PRIu64 " bytes more, which are left out", said->dropped);
}

/* Whether C is a control character, or moves or hides its neighbours: C1 controls, soft hyphen,
 * zero width and bidirectional marks, line separators, surrogates, BOM, interlinear marks, tags. */
static bool is_unsafe(uint32_t c)
{
	/* clang-format off */
	static const struct { uint32_t first, last; } ranges[] = {
		{0x0000, 0x001f}, {0x007f, 0x009f}, {0x00ad, 0x00ad}, {0x061c, 0x061c},
		{0x180e, 0x180e}, {0x200b, 0x200f}, {0x2028, 0x202e}, {0x2060, 0x206f},
		{0xd800, 0xdfff}, {0xfeff, 0xfeff}, {0xfff9, 0xfffb}, {0xe0000, 0xe007f},
	};
	/* clang-format on */

	for (size_t i = 0; i < ARRAY_SIZE(ranges); i++)
		if (c >= ranges[i].first && c <= ranges[i].last)
			return true;
	return false;
}

/* The number of bytes of the character at TEXT, 0 if they are not valid UTF-8 (Unicode 15, table
 * 3-7). Surrogates pass. */
static size_t decode(const uint8_t *text, size_t size, uint32_t *ret)
{
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	uint8_t b = text[0];
	size_t n = b < 0x80 ? 1 : b >= 0xf0 ? 4 : b >= 0xe0 ? 3 : b >= 0xc0 ? 2 : 0;
	uint32_t c = n == 1 ? b : b & (0x7fu >> n);

	if (n == 0 || n > size || b > 0xf4)
		return 0;
	for (size_t i = 1; i < n; i++) {
		if ((text[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (text[i] & 0x3f);
	}
	if (c < least[n] || c > 0x10ffff)
		return 0;
	*ret = c;
	return n;
}

/* The columns that a terminal gives to C: 2 for the scripts of East Asia and for pictures, 0 for
 * marks that join the character before. One that the locale does not know has one. */
static size_t columns_of_character(uint32_t c)
{
	int n = c < 0x300 ? 1 : wcwidth((wchar_t)c);

	return n < 0 ? 1 : (size_t)n;
}

static bool escapes_all;

bool text_escape_all(bool all)
{
	bool before = escapes_all;

	escapes_all = all;
	return before;
}

/* Writes one character of TEXT to SHOWN, escaped if necessary, and with ALL if it is not ASCII;
 * returns its length in TEXT. */
static size_t show_one(const uint8_t *text, size_t size, bool all, char shown[TEXT_SHOWN_MAX],
		       size_t *ret_columns)
{
	uint32_t c = 0;
	size_t n = decode(text, size, &c);

	if (n > 0 && !is_unsafe(c) && !(all && c > 0x7f)) {
		memcpy(shown, text, n);
		shown[n] = '\0';
		*ret_columns = columns_of_character(c);
		return n;
	}
	if (n > 1)
		snprintf(shown, TEXT_SHOWN_MAX, "\\u{%x}", (unsigned)c);
	else
		snprintf(shown, TEXT_SHOWN_MAX, "\\x%02x", (unsigned)text[0]);
	*ret_columns = strlen(shown);
	return n ? n : 1;
}

size_t text_show_one(const char *text, size_t size, char shown[static TEXT_SHOWN_MAX])
{
	size_t columns;

	return show_one((const uint8_t *)text, size, false, shown, &columns);
}

size_t text_columns(const char *text, size_t size)
{
	char shown[TEXT_SHOWN_MAX];
	size_t sum = 0, one;

	for (size_t at = 0; at < size; sum += one)
		at += show_one((const uint8_t *)text + at, size - at, escapes_all, shown, &one);
	return sum;
}

size_t text_fit(const char *text, size_t size, size_t columns)
{
	char shown[TEXT_SHOWN_MAX];
	size_t at = 0, used = 0, one, n;

	for (; at < size; at += n, used += one) {
		n = show_one((const uint8_t *)text + at, size - at, escapes_all, shown, &one);
		if (used + one > columns)
			break;
	}
	return at;
}

size_t text_puts(FILE *out, const char *text, size_t columns)
{
	const uint8_t *start = (const uint8_t *)(text ? text : "-"), *pos = start;
	const uint8_t *end = start + strlen((const char *)start);
	size_t used = 0, limit = SIZE_MAX, one;
	char shown[TEXT_SHOWN_MAX];

	/* Only a text that does not fit loses its last column to "~". */
	while (columns > 0 && pos < end && used <= columns) {
		pos += show_one(pos, (size_t)(end - pos), escapes_all, shown, &one);
		used += one;
	}
	if (used > columns)
		limit = columns - 1;
	used = 0;
	for (pos = start; pos < end; used += one) {
		size_t n = show_one(pos, (size_t)(end - pos), escapes_all, shown, &one);

		if (one > limit - used)
			break;
		fputs(shown, out);
		pos += n;
	}
	if (limit == SIZE_MAX)
		return used;
	fputc('~', out);
	return used + 1;
}

int text_json(const char *json, size_t size, char **ret, size_t *ret_size)
{
	/* One byte may become six, and four bytes twelve (a surrogate pair). */
	char *to = size < SIZE_MAX / 8 ? malloc(6 * size + 16) : NULL;
	const uint8_t *s = (const uint8_t *)json;
	size_t used = 0, n;

	if (!to)
		return -ENOMEM;
	for (; size > 0; s += n, size -= n) {
		uint32_t c = 0xfffd;

		n = decode(s, size, &c);
		if (n > 0 && (!is_unsafe(c) || c == '\n' || c == '\t')) {
			memcpy(to + used, s, n);
			used += n;
		} else if (n > 0 && c > 0xffff) {
			used += (size_t)snprintf(to + used, 16, "\\u%04x\\u%04x",
						 (unsigned)(0xd800 + ((c - 0x10000) >> 10)),
						 (unsigned)(0xdc00 + ((c - 0x10000) & 0x3ff)));
		} else {
			used += (size_t)snprintf(to + used, 16, "\\u%04x",
						 n > 0 ? (unsigned)c : 0xfffd);
		}
		n = n > 0 ? n : 1;
	}
	to[used] = '\0';
	*ret = to;
	if (ret_size)
		*ret_size = used;
	return 0;
}

void text_puts_json(FILE *out, const char *json)
{
	CLEANUP_FREE char *safe = NULL;

	if (!json || text_json(json, strlen(json), &safe, NULL) < 0)
		return;
	fputs(safe, out);
	fputc('\n', out);
}

bool text_is_utf8(const char *text)
{
	size_t size = strlen(text), n;
	uint32_t c;

	for (; size > 0; text += n, size -= n) {
		n = decode((const uint8_t *)text, size, &c);
		if (n == 0 || (c >= 0xd800 && c <= 0xdfff))
			return false;
	}
	return true;
}
