/*
 * Parses the sections of a script and keeps its labels.
 */
#include "tests/support/ptscript.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/ptscript_line.h"

static void *must(void *p)
{
	if (p == NULL) {
		fprintf(stderr, "out of memory\n");
		exit(3);
	}
	return p;
}

static const char *const heads[] = {
	[PTSCRIPT_PROGRAM] = "program",	  [PTSCRIPT_TRACE] = "trace",
	[PTSCRIPT_SIDEBAND] = "sideband", [PTSCRIPT_OPTIONS] = "options",
	[PTSCRIPT_EXPECT] = "expect ",
};
#define N_HEADS (sizeof(heads) / sizeof(heads[0]))

/* Whether LINE, of N bytes, is a section's header; *ret_colon: the position of its colon. */
static bool is_head(const char *line, size_t n, enum ptscript_kind *ret, size_t *ret_colon)
{
	for (size_t i = 0; i < N_HEADS; i++) {
		size_t k = strlen(heads[i]), colon = k;

		if (n <= k || memcmp(line, heads[i], k) != 0)
			continue;
		if (i == PTSCRIPT_EXPECT)
			colon += strcspn(line + k, ":\n");
		if (colon >= n || line[colon] != ':')
			continue;
		*ret = (enum ptscript_kind)i;
		*ret_colon = colon;
		return true;
	}
	return false;
}

static char *copy_trimmed(const char *text, size_t n)
{
	char *whole = must(strndup(text, n)), *copy = must(strdup(ptscript_trim(whole)));

	free(whole);
	return copy;
}

static int begin_section(struct ptscript *s, enum ptscript_kind kind, unsigned line,
			 const char *head, size_t n, size_t colon)
{
	size_t skip = strlen(heads[kind]);
	struct ptscript_section *section;

	if (kind != PTSCRIPT_EXPECT && ptscript_find(s, kind) != NULL)
		return ptscript_fail(s, line, "a second section `%s'", heads[kind]);
	s->sections = must(realloc(s->sections, (s->n_sections + 1) * sizeof(*s->sections)));
	section = &s->sections[s->n_sections++];
	*section = (struct ptscript_section){.kind = kind, .line = line};
	section->text = must(strdup(""));
	section->words = copy_trimmed(head + colon + 1, n - colon - 1);
	if (kind == PTSCRIPT_EXPECT)
		section->view = copy_trimmed(head + skip, colon - skip);
	if (kind == PTSCRIPT_EXPECT && *section->view == '\0')
		return ptscript_fail(s, line, "the name of a view is missing before the colon");
	return 0;
}

/* Lines before the first section must be remarks. */
static int check_preface(struct ptscript *s, unsigned line, const char *text, size_t n)
{
	size_t blank = strspn(text, " \t");

	if (blank >= n || text[blank] == '#')
		return 0;
	return ptscript_fail(s, line, "neither a section nor a remark");
}

static void end_section(struct ptscript *s, const char *begin, const char *end)
{
	struct ptscript_section *last = &s->sections[s->n_sections - 1];

	free(last->text);
	last->text = must(strndup(begin, (size_t)(end - begin)));
}

/* Reads one line of N bytes. *BEGIN: where the text of the current section begins. */
static int take_line(struct ptscript *s, unsigned line, const char *text, size_t n,
		     const char **begin)
{
	enum ptscript_kind kind;
	size_t colon;

	if (!is_head(text, n, &kind, &colon))
		return s->n_sections == 0 ? check_preface(s, line, text, n) : 0;
	if (s->n_sections > 0)
		end_section(s, *begin, text);
	*begin = text + n + (text[n] == '\n');
	return begin_section(s, kind, line, text, n, colon);
}

int ptscript_parse(struct ptscript *s, const char *path, const char *text)
{
	const char *begin = text;
	unsigned line = 1;
	int r = 0;

	*s = (struct ptscript){.path = path};
	bytes_out_init(&s->trace, 16u << 20);
	bytes_out_init(&s->sideband, 16u << 20);
	for (; *text != '\0' && r == 0; line++) {
		size_t n = strcspn(text, "\n");

		r = take_line(s, line, text, n, &begin);
		text += n + (text[n] == '\n');
	}
	if (r == 0 && s->n_sections > 0)
		end_section(s, begin, text);
	return r;
}

void ptscript_done(struct ptscript *s)
{
	for (size_t i = 0; i < s->n_sections; i++) {
		free(s->sections[i].view);
		free(s->sections[i].words);
		free(s->sections[i].text);
	}
	for (size_t i = 0; i < s->n_labels; i++)
		free(s->labels[i].name);
	free(s->sections);
	free(s->labels);
	bytes_out_done(&s->trace);
	bytes_out_done(&s->sideband);
}

const struct ptscript_section *ptscript_find(const struct ptscript *s, enum ptscript_kind kind)
{
	for (size_t i = 0; i < s->n_sections; i++)
		if (s->sections[i].kind == kind)
			return &s->sections[i];
	return NULL;
}

int ptscript_add_label(struct ptscript *s, const char *name, uint64_t value)
{
	for (size_t i = 0; i < s->n_labels; i++)
		if (strcmp(s->labels[i].name, name) == 0)
			return -EEXIST;
	s->labels = must(realloc(s->labels, (s->n_labels + 1) * sizeof(*s->labels)));
	s->labels[s->n_labels++] = (struct ptscript_label){must(strdup(name)), value};
	return 0;
}
