/*
 * Appends little-endian bytes to a growing buffer with a limit.
 */
#include "proto/bytes.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base.h"

#define MIN_CAPACITY 256u

void bytes_out_init(struct bytes_out *out, size_t limit)
{
	*out = (struct bytes_out){.limit = limit};
}

void bytes_out_done(struct bytes_out *out)
{
	free(out->data);
	*out = (struct bytes_out){.limit = out->limit};
}

void bytes_out_reset(struct bytes_out *out)
{
	out->size = 0;
	out->error = 0;
}

static int grow(struct bytes_out *out, size_t need)
{
	size_t capacity = MAX_OF(out->capacity, (size_t)MIN_CAPACITY);
	uint8_t *data;

	while (capacity < need && mul_ok(capacity, 2, &capacity))
		;
	capacity = MIN_OF(MAX_OF(capacity, need), out->limit);
	data = realloc(out->data, capacity);
	if (!data)
		return -ENOMEM;
	out->data = data;
	out->capacity = capacity;
	return 0;
}

uint8_t *bytes_put_space(struct bytes_out *out, size_t size)
{
	size_t need;
	uint8_t *at;

	if (out->error)
		return NULL;
	if (!add_ok(out->size, size, &need) || need > out->limit)
		out->error = -E2BIG;
	else if (need > out->capacity || !out->data)
		out->error = grow(out, need);
	if (out->error)
		return NULL;
	at = out->data + out->size;
	out->size = need;
	return at;
}

void bytes_put_block(struct bytes_out *out, const void *data, size_t size)
{
	uint8_t *at;

	if (size == 0)
		return;
	at = bytes_put_space(out, size);
	if (at)
		memcpy(at, data, size);
}

void bytes_put_u8(struct bytes_out *out, uint8_t v)
{
	bytes_put_block(out, &v, sizeof(v));
}

void bytes_put_u16(struct bytes_out *out, uint16_t v)
{
	v = htole16(v);
	bytes_put_block(out, &v, sizeof(v));
}

void bytes_put_u32(struct bytes_out *out, uint32_t v)
{
	v = htole32(v);
	bytes_put_block(out, &v, sizeof(v));
}

void bytes_put_u64(struct bytes_out *out, uint64_t v)
{
	v = htole64(v);
	bytes_put_block(out, &v, sizeof(v));
}
