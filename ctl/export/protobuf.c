/*
 * Writes messages in the encoding of protocol buffers: varints, doubles and length-delimited
 * fields, which is all that the formats here need (protobuf.dev, "Encoding").
 */
#include "ctl/export/export_private.h"

#include <assert.h>
#include <string.h>

#define VARINT	  0u
#define FIXED64	  1u
#define DELIMITED 2u
/* A length is written behind what it measures is known, into these bytes: a varint may have bytes
 * more than it needs. */
#define LENGTH_SIZE 4u

static size_t varint(uint64_t v, uint8_t to[static 10])
{
	size_t n = 0;

	for (; v > 127; v >>= 7)
		to[n++] = (uint8_t)(v | 128);
	to[n++] = (uint8_t)v;
	return n;
}

static void put(struct bytes_out *m, uint64_t v)
{
	uint8_t bytes[10];

	bytes_put_block(m, bytes, varint(v, bytes));
}

void pb_number(struct bytes_out *m, uint32_t field, uint64_t v)
{
	put(m, field << 3 | VARINT);
	put(m, v);
}

void pb_double(struct bytes_out *m, uint32_t field, double v)
{
	uint8_t bytes[sizeof(v)];
	uint64_t bits;

	memcpy(&bits, &v, sizeof(bits));
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(bits >> (8 * i));
	put(m, field << 3 | FIXED64);
	bytes_put_block(m, bytes, sizeof(bytes));
}

void pb_text(struct bytes_out *m, uint32_t field, const char *text)
{
	size_t size = strlen(text);

	put(m, field << 3 | DELIMITED);
	put(m, size);
	bytes_put_block(m, text, size);
}

size_t pb_begin(struct bytes_out *m, uint32_t field)
{
	put(m, field << 3 | DELIMITED);
	bytes_put_space(m, LENGTH_SIZE);
	return m->size;
}

void pb_end(struct bytes_out *m, size_t begun)
{
	size_t size = m->size - begun;

	if (m->error)
		return;
	assert(size < 1u << (7 * LENGTH_SIZE));
	for (size_t i = 0; i < LENGTH_SIZE; i++)
		m->data[begun - LENGTH_SIZE + i] =
			(uint8_t)((size >> (7 * i) & 127) | (i < LENGTH_SIZE - 1 ? 128 : 0));
}

int pb_write(struct out *o, uint32_t field, struct bytes_out *m)
{
	uint8_t bytes[10];
	int r = m->error;

	if (r < 0)
		return r;
	out_block(o, bytes, varint(field << 3 | DELIMITED, bytes));
	out_block(o, bytes, varint(m->size, bytes));
	out_block(o, m->data, m->size);
	bytes_out_reset(m);
	return o->error;
}
