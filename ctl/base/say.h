/*
 * Speaks to people for ptsnapctl: messages, exit codes, and text from strangers made safe.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "proto/base.h"

/* The exit codes of ptsnapctl, as in ptsnapctl(1), EXIT STATUS. */
enum exit_code {
	EXIT_CODE_OK = 0,
	EXIT_CODE_FAILURE = 1,
	EXIT_CODE_USAGE = 2,
	EXIT_CODE_NO_REPORT = 3,
	EXIT_CODE_PERMISSION = 4,
	EXIT_CODE_UNREACHABLE = 5,
	EXIT_CODE_NOT_TRACING = 6,
	EXIT_CODE_BUSY = 7,
	EXIT_CODE_TOO_MANY_ERRORS = 8,
	EXIT_CODE_TIMEOUT = 124, /* as timeout(1) */
};

/* Prints the line "ptsnapctl: MESSAGE", escaped, on stderr. stdout is for data only. */
void say(const char *format, ...) PRINTF_LIKE(1, 2);
/* The same; returns CODE: return say_error(EXIT_CODE_USAGE, "...", ...). */
int say_error(int code, const char *format, ...) PRINTF_LIKE(2, 3);

struct worker_said;
/* Prints what a decoder wrote to standard error, one message for each line. */
void say_worker(const struct worker_said *said);

/*
 * Names, reasons and messages come from traced processes and from the recorder: untrusted text. A
 * control character, invalid UTF-8, or a character that reorders or hides its neighbours prints as
 * \xNN or \u{NNNN}.
 */

/* With ALL, text_puts() and messages escape all that is not ASCII, too: for a terminal whose
 * charset is not UTF-8, on which the bytes of one character may be controls. Returns what was in
 * force; at first, ALL is false. */
bool text_escape_all(bool all);
/* Copies the first character of TEXT, SIZE bytes and not empty, to SHOWN, escaped if it must not
 * appear as it is; SHOWN is then valid UTF-8. Returns the character's length in TEXT. */
#define TEXT_SHOWN_MAX 16
size_t text_show_one(const char *text, size_t size, char shown[static TEXT_SHOWN_MAX]);
/* The columns of a terminal that text_puts() fills with the SIZE bytes at TEXT: a character has
 * one, two (East Asian scripts, pictures), or none (marks that join the character before). */
size_t text_columns(const char *text, size_t size);
/* How many of the SIZE bytes at TEXT, from the first, fill at most COLUMNS columns. */
size_t text_fit(const char *text, size_t size, size_t columns);
/* Prints TEXT (NULL prints "-"), escaped, in at most COLUMNS columns (0: no limit). The last
 * character of a text that is cut is "~". Returns the number of columns printed. */
size_t text_puts(FILE *out, const char *text, size_t columns);
/* Copies JSON, a document of SIZE bytes, with unsafe characters as \uNNNN and invalid UTF-8 as
 * \ufffd. *ret is the caller's and ends in a NUL that *ret_size (may be NULL) does not count. 0 or
 * -ENOMEM. */
int text_json(const char *json, size_t size, char **ret, size_t *ret_size);
/* Prints the C string JSON, made safe by text_json(), and a newline; nothing for NULL. */
void text_puts_json(FILE *out, const char *json);
/* Whether TEXT is valid UTF-8, as the recorder demands of requests. */
bool text_is_utf8(const char *text);
