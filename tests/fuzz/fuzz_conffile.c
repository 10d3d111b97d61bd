/*
 * Fuzzes the parser of configuration files. Invariants: settings are text without surrounding
 * blanks, come in the order of their lines, and have a line number that exists.
 */
#include "daemon/config/conffile.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "proto/base.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

struct seen {
	unsigned line, lines;
};

static void check_line(struct seen *s, unsigned line)
{
	assert(line >= s->line && line >= 1 && line <= s->lines);
	s->line = line;
}

static void check_text(const char *text)
{
	size_t n = strlen(text);

	assert(n <= CONFFILE_MAX_LINE);
	for (size_t i = 0; i < n; i++)
		assert((uint8_t)text[i] >= ' ' || text[i] == '\t');
}

static void check_stripped(const char *text)
{
	check_text(text);
	assert(!*text || (!strchr(" \t", *text) && !strchr(" \t", text[strlen(text) - 1])));
}

static bool on_section(void *userdata, const char *name)
{
	(void)userdata;
	assert(strlen(name) < CONFFILE_MAX_SECTION);
	check_text(name);
	return name[0] != 'u';
}

static void on_setting(void *userdata, const struct conffile_setting *s)
{
	check_line(userdata, s->line);
	check_stripped(s->key);
	check_stripped(s->value);
	assert(*s->key && !strchr(s->key, '=') && !strchr("#;[", *s->key));
	assert(*s->section && *s->section != 'u');
}

static void on_warning(void *userdata, const struct conffile_warning *w)
{
	check_line(userdata, w->line);
	check_text(w->text);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct seen seen = {.line = 1, .lines = 1};
	const struct conffile_handler handler = {&seen, NULL, on_section, on_setting, on_warning};

	for (size_t i = 0; i < size; i++)
		seen.lines += bytes[i] == '\n';
	conffile_parse("file", bytes, size, &handler);
	return 0;
}
