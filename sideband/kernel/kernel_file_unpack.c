/*
 * The kernel in a bzImage (/boot/vmlinuz-*): Documentation/arch/x86/boot.rst, "payload_offset".
 * Part of kernel_file.c. Behind the payload stands how long it is unpacked. Of the methods that a
 * kernel may be packed with, zstd is what distributions use by now; lz4's legacy frames are a few
 * lines; for the others there is no library in the worker.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <zstd.h>

#include "proto/base.h"
#include "proto/bytes.h"
#include "sideband/kernel/kernel_file_private.h"

#define SETUP_SIZE   0x250u
#define MAX_PAYLOAD  (256u << 20)
#define MAX_UNPACKED (512u << 20)
#define LZ4_LEGACY   0x184c2102u

struct out {
	uint8_t *bytes;
	size_t n, size;
};

static uint32_t le32(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

/* --- LZ4: github.com/lz4/lz4, doc/lz4_Block_format.md --- */

/* 15 in the token means that bytes follow, the last of which is not 255. */
static size_t lz4_length(struct bytes_in *in, unsigned token)
{
	size_t length = token;
	uint8_t more = 255;

	while (token == 15 && more == 255 && !in->bad) {
		more = bytes_get_u8(in);
		length += more;
	}
	return length;
}

/* Byte by byte, as source and target may overlap. */
static int lz4_copy(struct out *out, size_t distance, size_t length)
{
	if (distance == 0 || distance > out->n || length > out->size - out->n)
		return -EBADMSG;
	for (size_t i = 0; i < length; i++, out->n++)
		out->bytes[out->n] = out->bytes[out->n - distance];
	return 0;
}

static int lz4_block(struct bytes_in *in, struct out *out)
{
	int r = 0;

	while (r == 0 && bytes_in_left(in) > 0) {
		unsigned token = bytes_get_u8(in);
		size_t length = lz4_length(in, token >> 4), distance;
		const uint8_t *literals = bytes_get_block(in, length);

		if (!literals || length > out->size - out->n)
			return -EBADMSG;
		memcpy(out->bytes + out->n, literals, length);
		out->n += length;
		/* The last sequence has no match. */
		if (bytes_in_left(in) == 0)
			return 0;
		distance = bytes_get_u16(in);
		length = lz4_length(in, token & 15) + 4;
		r = in->bad ? -EBADMSG : lz4_copy(out, distance, length);
	}
	return r;
}

static int lz4_unpack(const uint8_t *payload, size_t size, struct out *out)
{
	struct bytes_in in, block;
	int r = 0;

	bytes_in_init(&in, payload, size);
	bytes_get_u32(&in);
	while (r == 0 && out->n < out->size && bytes_in_left(&in) > 4) {
		uint32_t packed = bytes_get_u32(&in);
		const uint8_t *bytes = bytes_get_block(&in, packed);

		if (!bytes)
			return -EBADMSG;
		bytes_in_init(&block, bytes, packed);
		r = lz4_block(&block, out);
	}
	return r;
}

/* --- Zstandard --- */

static int zstd_unpack(const uint8_t *payload, size_t size, struct out *out)
{
	size_t packed = ZSTD_findFrameCompressedSize(payload, size), n;

	if (ZSTD_isError(packed) || packed > size)
		return -EBADMSG;
	n = ZSTD_decompress(out->bytes, out->size, payload, packed);
	if (ZSTD_isError(n))
		return -EBADMSG;
	out->n = n;
	return 0;
}

/* --- The image --- */

static int unpack(const uint8_t *payload, size_t size, struct out *out)
{
	if (le32(payload) == LZ4_LEGACY)
		return lz4_unpack(payload, size, out);
	if (le32(payload) == ZSTD_MAGICNUMBER)
		return zstd_unpack(payload, size, out);
	return -EPROTONOSUPPORT;
}

/* Where the payload lies. */
static int find_payload(const struct kernel_elf *file, uint64_t *ret_offset, uint64_t *ret_size)
{
	CLEANUP_FREE uint8_t *setup = NULL;
	int r = kernel_elf_read(file, 0, SETUP_SIZE, &setup);

	if (r < 0)
		return r;
	/* Version 2.08 of the boot protocol. */
	if (memcmp(setup + 0x202, "HdrS", 4) != 0 || setup[0x207] < 2 ||
	    (setup[0x207] == 2 && setup[0x206] < 8))
		return -EBADMSG;
	*ret_offset = ((uint64_t)(setup[0x1f1] ? setup[0x1f1] : 4) + 1) * 512 + le32(setup + 0x248);
	*ret_size = le32(setup + 0x24c);
	return *ret_size < 8 || *ret_size > MAX_PAYLOAD ? -EBADMSG : 0;
}

int kernel_file_unpack(const struct kernel_source *source, uint8_t **ret, size_t *ret_size)
{
	/* Only to read from. */
	struct kernel_elf file = {.source = source};
	CLEANUP_FREE uint8_t *payload = NULL;
	struct out out = {0};
	uint64_t offset, size;
	int r = find_payload(&file, &offset, &size);

	if (r == 0)
		r = kernel_elf_read(&file, offset, size, &payload);
	if (r < 0)
		return r;
	out.size = le32(payload + size - 4);
	if (out.size == 0 || out.size > MAX_UNPACKED)
		return -EBADMSG;
	out.bytes = malloc(out.size);
	r = out.bytes ? unpack(payload, (size_t)size, &out) : -ENOMEM;
	if (r < 0) {
		free(out.bytes);
		return r;
	}
	*ret = out.bytes;
	*ret_size = out.n;
	return 0;
}
