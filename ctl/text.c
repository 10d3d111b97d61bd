/*
 * Everything that ptsnapctl prints for people and did not write itself goes through here. Escape
 * sequences in a process name must not drive the terminal of the one who looks at a report.
 */
#include "ctl/text.h"

#include <stdint.h>
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

size_t text_print(FILE *out, const char *text, size_t size, size_t columns)
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
