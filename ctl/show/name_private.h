/*
 * Prints names of functions and source lines of a report, shortened to a number of columns.
 */
#pragma once

#include <stddef.h>
#include <stdio.h>

/*
 * Prints NAME (untrusted text; NULL prints "-") in at most COLUMNS characters, escaped as by
 * text_puts(), and returns the number of characters. A name that is too long loses first the
 * template arguments of C++, then the parameters, then its middle; "..." stands for what is left
 * out.
 */
size_t name_puts(FILE *out, const char *name, size_t columns);
/* Prints "FILE:LINE" likewise. The beginning of a path that is too long is left out. */
size_t name_puts_source(FILE *out, const char *source, size_t columns);
/* Prints "FILE:LINE" likewise, with the file's name only. */
size_t name_puts_line(FILE *out, const char *source, size_t columns);
