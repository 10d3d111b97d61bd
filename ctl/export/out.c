/*
 * Buffered output: a failure is remembered, and tested at the end.
 */
#include "ctl/export/export_private.h"

#include "proto/memfd.h"

void out_init(struct out *o, int fd)
{
	o->fd = fd;
	o->error = 0;
	o->used = 0;
	o->total = 0;
}

int out_flush(struct out *o)
{
	if (o->error == 0)
		o->error = memfd_write_all(o->fd, o->buffer, o->used);
	o->used = 0;
	return o->error;
}

void out_block(struct out *o, const void *data, size_t size)
{
	const char *from = data;

	o->total += size;
	while (size > 0) {
		size_t part = MIN_OF(size, sizeof(o->buffer) - o->used);

		memcpy(o->buffer + o->used, from, part);
		o->used += part;
		from += part;
		size -= part;
		if (o->used == sizeof(o->buffer))
			out_flush(o);
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
