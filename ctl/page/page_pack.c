/*
 * The page's block: numbers and texts to bytes, compressed, written as base64.
 */
#include <assert.h>
#include <string.h>

#include "proto/base.h"
#include "proto/callstream.h"
#include "proto/memfd.h"

#include "ctl/page/page_private.h"

_Static_assert(sizeof(((struct pack *)0)->packed) % 3 == 0, "no padding inside");
_Static_assert(sizeof(((struct pack *)0)->packed) / 3 * 4 + 1 == sizeof(((struct pack *)0)->text),
	       "a line holds a full buffer");

int pack_init(struct pack *k, int fd)
{
	k->fd = fd;
	k->error = 0;
	k->n_in = 0;
	k->n_packed = 0;
	k->deflate = (z_stream){0};
	return deflateInit(&k->deflate, Z_DEFAULT_COMPRESSION) == Z_OK ? 0 : -ENOMEM;
}

void pack_done(struct pack *k)
{
	deflateEnd(&k->deflate);
}

static size_t base64(const uint8_t *in, size_t n, char *to)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	char *const begin = to;

	for (size_t i = 0; i < n; i += 3) {
		size_t left = n - i;
		uint32_t v = (uint32_t)in[i] << 16;

		if (left > 1)
			v |= (uint32_t)in[i + 1] << 8;
		if (left > 2)
			v |= in[i + 2];
		*to++ = digits[v >> 18];
		*to++ = digits[v >> 12 & 63];
		*to++ = left > 1 ? digits[v >> 6 & 63] : '=';
		*to++ = left > 2 ? digits[v & 63] : '=';
	}
	*to++ = '\n';
	return (size_t)(to - begin);
}

/* Writes the line of the packed bytes. */
static void put_line(struct pack *k)
{
	size_t n;

	if (k->n_packed == 0 || k->error < 0)
		return;
	n = base64(k->packed, k->n_packed, k->text);
	k->n_packed = 0;
	k->error = memfd_write_all(k->fd, k->text, n);
}

/* Compresses the bytes that wait. */
static void squeeze(struct pack *k, int flush)
{
	int r;

	k->deflate.next_in = k->in;
	k->deflate.avail_in = (uInt)k->n_in;
	k->n_in = 0;
	do {
		k->deflate.next_out = k->packed + k->n_packed;
		k->deflate.avail_out = (uInt)(sizeof(k->packed) - k->n_packed);
		r = deflate(&k->deflate, flush);
		assert(r != Z_STREAM_ERROR);
		k->n_packed = sizeof(k->packed) - k->deflate.avail_out;
		if (k->deflate.avail_out == 0)
			put_line(k);
	} while (k->error == 0 &&
		 (flush == Z_FINISH ? r != Z_STREAM_END : k->deflate.avail_in > 0));
}

void pack_byte(struct pack *k, uint8_t byte)
{
	if (k->n_in == sizeof(k->in))
		squeeze(k, Z_NO_FLUSH);
	if (k->error == 0)
		k->in[k->n_in++] = byte;
}

void pack_number(struct pack *k, uint64_t v)
{
	for (; v > 127; v >>= 7)
		pack_byte(k, (uint8_t)(v | 128));
	pack_byte(k, (uint8_t)v);
}

void pack_two(struct pack *k, uint64_t v)
{
	pack_number(k, v >> 32);
	pack_number(k, v & UINT32_MAX);
}

void pack_text(struct pack *k, const char *text)
{
	size_t n = strnlen(text, CALLSTREAM_MAX_TEXT);

	pack_number(k, n);
	for (size_t i = 0; i < n; i++)
		pack_byte(k, (uint8_t)text[i]);
}

int pack_finish(struct pack *k)
{
	if (k->error == 0)
		squeeze(k, Z_FINISH);
	put_line(k);
	return k->error;
}
