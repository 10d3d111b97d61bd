/*
 * Expands what a script expects: lines as a view prints them, with labels in braces. "{main}" is an
 * address in the view's format, "{main+4:4}" its last 4 digits, "{main:x}" without leading zeros.
 * Empty lines and lines that begin with a semicolon are skipped: they are for readers of the
 * script.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tests/support/ptscript.h"
#include "tests/support/ptscript_line.h"

struct expander {
	struct ptscript *script;
	unsigned line;
	struct bytes_out *out;
	bool wide; /* the view prints 16 digits */
};

/* libipt's tools print 16 digits; our own views do not. */
static bool is_wide(const struct ptscript_section *section)
{
	return strcmp(section->view, "packets") == 0 || strstr(section->words, "--ptxed") != NULL;
}

static int put_value(struct expander *e, uint64_t value, const char *form)
{
	char digits[17];
	uint64_t n = 16;
	int r = 0;

	snprintf(digits, sizeof(digits), "%016" PRIx64, value);
	if (form != NULL ? strcmp(form, "x") == 0 : !e->wide) {
		snprintf(digits, sizeof(digits), "%" PRIx64, value);
		n = strlen(digits);
	} else if (form != NULL) {
		r = ptscript_value(e->script, e->line, form, &n);
	}
	if (r == 0 && (n == 0 || n > strlen(digits)))
		r = ptscript_fail(e->script, e->line, "1 to 16 digits, not %s", form);
	if (r == 0)
		bytes_put_block(e->out, digits + strlen(digits) - n, (size_t)n);
	return r;
}

/* Parses TEXT, behind a brace; *ret_n: length including the closing brace. */
static int put_label(struct expander *e, const char *text, size_t *ret_n)
{
	char copy[128], *colon;
	size_t n = strcspn(text, "}\n");
	uint64_t value;
	int r;

	if (text[n] != '}' || n >= sizeof(copy))
		return ptscript_fail(e->script, e->line, "no } behind {");
	*ret_n = n + 1;
	memcpy(copy, text, n);
	copy[n] = '\0';
	colon = strchr(copy, ':');
	if (colon != NULL)
		*colon = '\0';
	r = ptscript_value(e->script, e->line, ptscript_trim(copy), &value);
	return r != 0 ? r : put_value(e, value, colon != NULL ? colon + 1 : NULL);
}

/* Expands one line of N bytes. */
static int put_line(struct expander *e, const char *text, size_t n)
{
	while (n > 0 && strchr(" \t\r", text[n - 1]) != NULL)
		n--;
	if (n == 0 || *text == ';')
		return 0;
	for (size_t i = 0; i < n;) {
		size_t skip = 1;
		int r = 0;

		if (text[i] == '{')
			r = put_label(e, text + i + 1, &skip);
		else
			bytes_put_u8(e->out, (uint8_t)text[i]);
		if (r != 0)
			return r;
		i += text[i] == '{' ? skip + 1 : 1;
	}
	bytes_put_u8(e->out, '\n');
	return 0;
}

int ptscript_expand(struct ptscript *s, const struct ptscript_section *section,
		    struct bytes_out *out)
{
	struct expander e = {
		.script = s, .line = section->line + 1, .out = out, .wide = is_wide(section)};
	const char *text = section->text;
	int r = 0;

	for (; *text != '\0' && r == 0; e.line++) {
		size_t n = strcspn(text, "\n");

		r = put_line(&e, text, n);
		text += n + (text[n] == '\n');
	}
	return r;
}
