/*
 * What the check's parts read with, and how they say what they found.
 */
#include <ctype.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "capture/proc/number.h"
#include "capture/proc/procfile.h"
#include "daemon/check/check_private.h"

/* What was cut says so. */
static void mark_cut(char *text, size_t size, int wanted)
{
	if (wanted >= (int)size)
		strcpy(text + size - 4, "...");
}

void check_say(struct check *c, enum finding_level level, const char *what, const char *fix,
	       const char *format, ...)
{
	struct finding f = {.level = level};
	va_list args;
	int n;

	if (level == FINDING_FAILURE && c->emulated)
		f.level = FINDING_NOTE;
	snprintf(f.what, sizeof(f.what), "%s", what);
	va_start(args, format);
	n = vsnprintf(f.text, sizeof(f.text), format, args);
	va_end(args);
	mark_cut(f.text, sizeof(f.text), n);
	mark_cut(f.fix, sizeof(f.fix), snprintf(f.fix, sizeof(f.fix), "%s", fix));
	finding_clean(&f);
	c->failures += f.level == FINDING_FAILURE;
	c->fn(c->userdata, &f);
}

ssize_t check_read(const char *root, const char *path, char *ret, size_t size)
{
	char full[PATH_MAX];
	ssize_t n;

	*ret = '\0';
	if (snprintf(full, sizeof(full), "%s/%s", root, path) >= (int)sizeof(full))
		return -ENAMETOOLONG;
	n = procfile_read(AT_FDCWD, full, ret, size);
	if (n < 0)
		*ret = '\0';
	if (n > 0 && ret[n - 1] == '\n')
		ret[--n] = '\0';
	return n;
}

bool check_exists(const char *root, const char *path)
{
	char full[PATH_MAX];

	return snprintf(full, sizeof(full), "%s/%s", root, path) < (int)sizeof(full) &&
	       access(full, F_OK) == 0;
}

bool check_number(const char *root, const char *path, int64_t *ret)
{
	char text[64];
	uint64_t value;
	bool negative;

	if (check_read(root, path, text, sizeof(text)) <= 0)
		return false;
	negative = *text == '-';
	if (!number_parse(text + negative, 10, INT64_MAX, "", NULL, &value))
		return false;
	*ret = negative ? -(int64_t)value : (int64_t)value;
	return true;
}

bool check_value(const char *text, const char *key, char *ret, size_t size)
{
	size_t length = strlen(key);

	*ret = '\0';
	for (const char *line = text; *line;) {
		size_t end = strcspn(line, "\n"), name = strcspn(line, "\t:\n");

		if (name == length && memcmp(line, key, length) == 0) {
			size_t blank = name + strspn(line + name, "\t: ");

			blank = MIN_OF(blank, end);
			snprintf(ret, size, "%.*s", (int)(end - blank), line + blank);
			return true;
		}
		line += end + (line[end] == '\n');
	}
	return false;
}

bool check_word(const char *text, const char *word)
{
	size_t length = strlen(word);

	for (const char *at = text; (at = strstr(at, word)); at += length)
		if ((at == text || at[-1] == ' ') && (at[length] == ' ' || !at[length]))
			return true;
	return false;
}

bool check_capable(const struct check *c, enum check_capability capability)
{
	return c->capabilities >> capability & 1;
}

bool check_trace_kernel(const struct check *c)
{
	return c->config->trace & SOURCE_TRACE_KERNEL;
}

struct check_size check_bytes(uint64_t bytes)
{
	static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
	struct check_size ret;
	double value = (double)bytes;
	size_t unit = 0;

	while (value >= 1024 && unit + 1 < ARRAY_SIZE(units)) {
		value /= 1024;
		unit++;
	}
	snprintf(ret.text, sizeof(ret.text), "%.*f %s", unit && value < 100 ? 1 : 0, value,
		 units[unit]);
	return ret;
}
