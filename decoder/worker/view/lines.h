/*
 * Buffered text output, fast enough for hundreds of millions of short lines.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define LINES_BUFFER (1u << 18)

struct lines {
	int fd;	   /* borrowed */
	int error; /* the first error of write: -errno */
	size_t used;
	char *buffer;
};

/* 0 or -ENOMEM. */
int lines_init(struct lines *l, int fd);
void lines_done(struct lines *l);
/* V in lower-case hex without a prefix, then AFTER. */
void lines_hex(struct lines *l, uint64_t v, char after);
void lines_text(struct lines *l, const char *text, size_t size);
/* As printf, but slower than the others; text beyond 255 bytes is cut. */
__attribute__((format(printf, 2, 3))) void lines_print(struct lines *l, const char *format, ...);
/* 0 or the first error. */
int lines_flush(struct lines *l);
