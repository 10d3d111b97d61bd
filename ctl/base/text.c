/*
 * Everything that ptsnapctl prints for people and did not write itself goes through here. Escape
 * sequences in a process name must not drive the terminal of the one who looks at a report.
 */
#include "ctl/base/text.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base.h"

/* Ranges that are printable by their code but move or hide their neighbours: C1 controls, soft
 * hyphen, zero width and bidirectional marks, line separators, surrogates, BOM, interlinear marks,
 * tags. */
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

/* Bytes of the character at TEXT, 0 when it is not valid UTF-8 (Unicode 15, table 3-7). */
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

/* One character of TEXT as it is to be shown; returns its bytes in TEXT. */
static size_t show_one(const uint8_t *text, size_t size, char shown[16], size_t *ret_columns)
{
	uint32_t c = 0;
	size_t n = decode(text, size, &c);

	if (n > 0 && !is_unsafe(c)) {
		memcpy(shown, text, n);
		shown[n] = '\0';
		*ret_columns = 1;
		return n;
	}
	if (n > 1)
		snprintf(shown, 16, "\\u{%x}", (unsigned)c);
	else
		snprintf(shown, 16, "\\x%02x", (unsigned)text[0]);
	*ret_columns = strlen(shown);
	return n ? n : 1;
}

/* Whether all of TEXT fits into COLUMNS. */
static bool fits(const uint8_t *text, size_t size, size_t columns)
{
	size_t used = 0, one;
	char shown[16];

	while (size > 0 && used <= columns) {
		size_t n = show_one(text, size, shown, &one);

		text += n;
		size -= n;
		used += one;
	}
	return used <= columns;
}

/* TEXT's SIZE bytes, escaped, cut after COLUMNS characters (then the last one is "~"; 0: never
 * cut). Returns the characters printed. */
static size_t text_print(FILE *out, const char *text, size_t size, size_t columns)
{
	const uint8_t *pos = (const uint8_t *)text;
	size_t limit = SIZE_MAX, used = 0, one;
	bool cut = columns > 0 && !fits(pos, size, columns);
	char shown[16];

	if (cut)
		limit = columns - 1;
	while (size > 0) {
		size_t n = show_one(pos, size, shown, &one);

		if (one > limit - used)
			break;
		fputs(shown, out);
		used += one;
		pos += n;
		size -= n;
	}
	if (cut)
		fputc('~', out);
	return used + cut;
}

size_t text_puts(FILE *out, const char *text, size_t columns)
{
	if (!text)
		text = "-";
	return text_print(out, text, strlen(text), columns);
}

/* One character of JSON that is unsafe and so stands within a string. Returns its size. Space
 * between tokens is left alone. */
static size_t json_escape(uint32_t c, char to[16])
{
	if (c > 0xffff)
		return (size_t)snprintf(to, 16, "\\u%04x\\u%04x",
					(unsigned)(0xd800 + ((c - 0x10000) >> 10)),
					(unsigned)(0xdc00 + ((c - 0x10000) & 0x3ff)));
	return (size_t)snprintf(to, 16, "\\u%04x", (unsigned)c);
}

int text_json(const char *json, size_t size, char **ret, size_t *ret_size)
{
	/* Six bytes for one, twelve for four. */
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
		} else {
			used += json_escape(n > 0 ? c : 0xfffd, to + used);
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
