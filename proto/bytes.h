/*
 * Little-endian bytes: a reader that never leaves its bounds, and a buffer that never exceeds its
 * limit. All parsers and composers use these functions, so that no other code computes whether
 * enough bytes are left.
 */
#pragma once

#include <endian.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct bytes_in {
	const uint8_t *pos;
	const uint8_t *end;
	bool bad; /* something was read beyond the end; every later read returns 0 */
};

/* Reading is inline, because a recorder reads every record of the sideband. */
static inline void bytes_in_init(struct bytes_in *in, const void *data, size_t size)
{
	static const uint8_t nothing[1];

	in->pos = size > 0 ? (const uint8_t *)data : nothing;
	in->end = in->pos + size;
	in->bad = false;
}

static inline size_t bytes_in_left(const struct bytes_in *in)
{
	return in->bad ? 0 : (size_t)(in->end - in->pos);
}

/* Returns the next SIZE bytes (borrowed), or NULL, and sets BAD, if there are fewer. */
static inline const uint8_t *bytes_get_block(struct bytes_in *in, size_t size)
{
	const uint8_t *at = in->pos;

	if (in->bad || size > (size_t)(in->end - in->pos)) {
		in->bad = true;
		return NULL;
	}
	in->pos += size;
	return at;
}

static inline uint8_t bytes_get_u8(struct bytes_in *in)
{
	const uint8_t *at = bytes_get_block(in, 1);

	return at ? *at : 0;
}

static inline uint16_t bytes_get_u16(struct bytes_in *in)
{
	const uint8_t *at = bytes_get_block(in, sizeof(uint16_t));
	uint16_t v = 0;

	if (at)
		memcpy(&v, at, sizeof(v));
	return le16toh(v);
}

static inline uint32_t bytes_get_u32(struct bytes_in *in)
{
	const uint8_t *at = bytes_get_block(in, sizeof(uint32_t));
	uint32_t v = 0;

	if (at)
		memcpy(&v, at, sizeof(v));
	return le32toh(v);
}

static inline uint64_t bytes_get_u64(struct bytes_in *in)
{
	const uint8_t *at = bytes_get_block(in, sizeof(uint64_t));
	uint64_t v = 0;

	if (at)
		memcpy(&v, at, sizeof(v));
	return le64toh(v);
}

/* Reads SIZE bytes and returns the NUL-terminated string in them (a fixed or padded field), or
 * NULL, and sets BAD, if there is no NUL. */
static inline const char *bytes_get_string(struct bytes_in *in, size_t size)
{
	const uint8_t *at = bytes_get_block(in, size);

	if (!at || !memchr(at, 0, size)) {
		in->bad = true;
		return NULL;
	}
	return (const char *)at;
}

struct bytes_out {
	uint8_t *data; /* owned */
	size_t size;
	size_t capacity;
	size_t limit; /* of size */
	int error;    /* 0, -ENOMEM, -E2BIG (limit); stays, and the content is incomplete */
};

void bytes_out_init(struct bytes_out *out, size_t limit);
void bytes_out_done(struct bytes_out *out);
/* Drops the content and the error, but keeps the memory. */
void bytes_out_reset(struct bytes_out *out);
void bytes_put_u8(struct bytes_out *out, uint8_t v);
void bytes_put_u16(struct bytes_out *out, uint16_t v);
void bytes_put_u32(struct bytes_out *out, uint32_t v);
void bytes_put_u64(struct bytes_out *out, uint64_t v);
void bytes_put_block(struct bytes_out *out, const void *data, size_t size);
/* Returns SIZE new bytes, which the caller fills before the next call, or NULL on error. */
uint8_t *bytes_put_space(struct bytes_out *out, size_t size);
