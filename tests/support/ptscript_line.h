/*
 * One line of a trace or sideband section: "LABEL: NAME(ARGUMENT, ...) # remark"; everything but
 * the name is optional. Also the error messages and the parser of numbers for all of ptscript*.c.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/support/ptscript.h"

#define PTSCRIPT_MAX_ARGS 16u
#define PTSCRIPT_MAX_LINE 512u

struct ptscript_line {
	struct ptscript *script;
	unsigned number;
	const char *label; /* NULL: no label */
	const char *name;  /* NULL: an empty line */
	char *args[PTSCRIPT_MAX_ARGS];
	size_t n_args;
	char buffer[PTSCRIPT_MAX_LINE];
};

/* Sets s->error to "PATH:LINE: ..."; returns -EINVAL. */
int ptscript_fail(struct ptscript *s, unsigned line, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Reads the line at TEXT, up to a newline or the end; *ret_next: the start of the next line. 0 or
 * -EINVAL. */
int ptscript_line_read(struct ptscript_line *l, const char *text, const char **ret_next);

/* Strips blanks around TEXT by overwriting them. */
char *ptscript_trim(char *text);

/* Parses a number (decimal, 0x), a label, or a label plus or minus a number. 0 or -EINVAL. */
int ptscript_value(struct ptscript *s, unsigned line, const char *text, uint64_t *ret);

/* Parses argument AT as a number up to MAX. 0 or -EINVAL. */
int ptscript_number(const struct ptscript_line *l, size_t at, uint64_t max, uint64_t *ret);

/* Whether argument AT is WORD. */
bool ptscript_is(const struct ptscript_line *l, size_t at, const char *word);

/* Splits argument AT, "KEY: REST", at its colon. Returns the key; NULL: no colon. */
char *ptscript_key(struct ptscript_line *l, size_t at);
