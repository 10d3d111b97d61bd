/*
 * What strangers wrote (names, reasons, messages of the recorder), made safe for a terminal:
 * controls, invalid UTF-8, and the characters that reorder or hide text are shown as \xNN or
 * \u{NNNN}.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* The same for a C string; NULL prints "-". */
size_t text_puts(FILE *out, const char *text, size_t columns);
/* JSON, a document of SIZE bytes, with such characters as \uNNNN; invalid UTF-8 becomes \ufffd.
 * *ret is malloc'ed and ends in a NUL, *ret_size (may be NULL) does not count that. 0 or -ENOMEM.
 */
int text_json(const char *json, size_t size, char **ret, size_t *ret_size);
/* That of the C string JSON (NULL: nothing), and a newline. */
void text_puts_json(FILE *out, const char *json);
/* Whether TEXT is valid UTF-8, as the recorder demands of requests. */
bool text_is_utf8(const char *text);
