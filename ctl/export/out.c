/*
 * Buffered output: a failure is remembered, and tested at the end.
 */
#include "ctl/export/export_private.h"

#include <zlib.h>

#include "proto/memfd.h"

/* RFC 1952, and zlib.h, deflateInit2(): a gzip header instead of zlib's own. */
#define GZIP_WINDOW (15 + 16)

struct gzip {
	z_stream stream;
	uint8_t buffer[65536];
};

void out_init(struct out *o, int fd)
{
	o->fd = fd;
	o->error = 0;
	o->used = 0;
	o->gzip = NULL;
}

void out_done(struct out *o)
{
	if (o->gzip)
		deflateEnd(&o->gzip->stream);
	free(o->gzip);
	o->gzip = NULL;
}

int out_compress(struct out *o)
{
	struct gzip *g = calloc(1, sizeof(*g));

	if (!g)
		return -ENOMEM;
	if (deflateInit2(&g->stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, GZIP_WINDOW, 8,
			 Z_DEFAULT_STRATEGY) != Z_OK) {
		free(g);
		return -ENOMEM;
	}
	o->gzip = g;
	return 0;
}

/* Compresses and writes the buffer. */
static void deflate_buffer(struct out *o, int flush)
{
	struct gzip *g = o->gzip;

	g->stream.next_in = (uint8_t *)o->buffer;
	g->stream.avail_in = (unsigned)o->used;
	do {
		g->stream.next_out = g->buffer;
		g->stream.avail_out = sizeof(g->buffer);
		/* Fails only for a stream in disorder, which this one cannot be. */
		deflate(&g->stream, flush);
		o->error =
			memfd_write_all(o->fd, g->buffer, sizeof(g->buffer) - g->stream.avail_out);
	} while (o->error == 0 && g->stream.avail_out == 0);
}

static void write_buffer(struct out *o, bool last)
{
	if (o->error == 0 && o->gzip)
		deflate_buffer(o, last ? Z_FINISH : Z_NO_FLUSH);
	else if (o->error == 0)
		o->error = memfd_write_all(o->fd, o->buffer, o->used);
	o->used = 0;
}

int out_finish(struct out *o)
{
	write_buffer(o, true);
	return o->error;
}

void out_block(struct out *o, const void *data, size_t size)
{
	const char *from = data;

	while (size > 0) {
		size_t part = MIN_OF(size, sizeof(o->buffer) - o->used);

		memcpy(o->buffer + o->used, from, part);
		o->used += part;
		from += part;
		size -= part;
		if (o->used == sizeof(o->buffer))
			write_buffer(o, false);
	}
}

void out_text(struct out *o, const char *text)
{
	out_block(o, text, strlen(text));
}

void out_number(struct out *o, uint64_t v)
{
	char digits[20];
	size_t at = sizeof(digits);

	do
		digits[--at] = (char)('0' + v % 10);
	while ((v /= 10) > 0);
	out_block(o, digits + at, sizeof(digits) - at);
}

void out_hex(struct out *o, uint64_t v)
{
	char digits[18];
	size_t at = sizeof(digits);

	do
		digits[--at] = "0123456789abcdef"[v & 15];
	while ((v >>= 4) > 0);
	digits[--at] = 'x';
	digits[--at] = '0';
	out_block(o, digits + at, sizeof(digits) - at);
}

void out_escaped(struct out *o, const char *text, const char *specials)
{
	for (;;) {
		size_t plain = strcspn(text, specials);
		unsigned char c = (unsigned char)text[plain];
		char escape[] = {'\\', 'x', "0123456789abcdef"[c >> 4], "0123456789abcdef"[c & 15]};

		out_block(o, text, plain);
		if (c == '\0')
			return;
		out_block(o, escape, sizeof(escape));
		text += plain + 1;
	}
}

void out_quoted(struct out *o, const char *text, char quote)
{
	out_block(o, &quote, 1);
	for (;;) {
		size_t plain = (size_t)(strchrnul(text, quote) - text);

		out_block(o, text, plain);
		if (text[plain] == '\0')
			break;
		out_block(o, &quote, 1);
		out_block(o, &quote, 1);
		text += plain + 1;
	}
	out_block(o, &quote, 1);
}
