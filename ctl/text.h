/*
 * What strangers wrote (names, reasons, messages of the recorder), made safe for a terminal:
 * controls, invalid UTF-8, and the characters that reorder or hide text are shown as \xNN or
 * \u{NNNN}.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* TEXT's SIZE bytes, escaped, cut after COLUMNS characters (then the last one is "~"; 0: never
 * cut). Returns the characters printed. */
size_t text_print(FILE *out, const char *text, size_t size, size_t columns);
/* The same for a C string; NULL prints "-". */
size_t text_puts(FILE *out, const char *text, size_t columns);
/* Whether TEXT is valid UTF-8, as the recorder demands of requests. */
bool text_is_utf8(const char *text);
