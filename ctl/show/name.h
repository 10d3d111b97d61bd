/*
 * Names of functions and source lines of a report, shortened for people. Of C++ names template
 * arguments go first, then the parameters, then the middle: what is left out is "...".
 */
#pragma once

#include <stddef.h>
#include <stdio.h>

/* NAME (a stranger's; NULL: "-") in COLUMNS at most, as of text_print(). Returns the characters
 * printed. */
size_t name_puts(FILE *out, const char *name, size_t columns);
/* "FILE:LINE" likewise: of directories those next to the file are kept. */
size_t name_puts_source(FILE *out, const char *source, size_t columns);
/* Only "NAME-OF-THE-FILE:LINE". */
size_t name_puts_line(FILE *out, const char *source, size_t columns);
