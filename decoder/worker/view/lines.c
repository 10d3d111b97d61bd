/*
 * A buffer and a hex formatter: printf would cost more time than decoding.
 */
#include "decoder/worker/view/views.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "proto/base.h"
#include "proto/memfd.h"

#define MAX_HEX 17u /* 16 digits and the character behind them */

int lines_init(struct lines *l, int fd)
{
	*l = (struct lines){.fd = fd, .buffer = malloc(LINES_BUFFER)};
	return l->buffer ? 0 : -ENOMEM;
}

void lines_done(struct lines *l)
{
	free(l->buffer);
	*l = (struct lines){.fd = -EBADF};
}

int lines_flush(struct lines *l)
{
	if (l->error == 0)
		l->error = memfd_write_all(l->fd, l->buffer, l->used);
	l->used = 0;
	return l->error;
}

void lines_hex(struct lines *l, uint64_t v, char after)
{
	static const char digits[] = "0123456789abcdef";
	unsigned n = v == 0 ? 1 : (67u - (unsigned)__builtin_clzll(v)) / 4;
	char *to;

	if (LINES_BUFFER - l->used < MAX_HEX)
		lines_flush(l);
	to = l->buffer + l->used;
	l->used += n + 1;
	to[n] = after;
	while (n-- > 0) {
		to[n] = digits[v & 15];
		v >>= 4;
	}
}

void lines_text(struct lines *l, const char *text, size_t size)
{
	while (size > 0) {
		size_t part;

		if (l->used == LINES_BUFFER)
			lines_flush(l);
		part = MIN_OF(size, LINES_BUFFER - l->used);
		memcpy(l->buffer + l->used, text, part);
		l->used += part;
		text += part;
		size -= part;
	}
}

void lines_print(struct lines *l, const char *format, ...)
{
	char text[256];
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (n > 0)
		lines_text(l, text, MIN_OF((size_t)n, sizeof(text) - 1));
}
