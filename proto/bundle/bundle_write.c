/*
 * Writes a bundle member by member, and has the header blocks of its tar.
 */
#include "proto/bundle/bundle.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>

#include "proto/base.h"
#include "proto/bundle/bundle_tar.h"
#include "proto/memfd.h"

/* clang-format off */
enum {
	NAME_AT = 0,	NAME_SIZE = 100,
	MODE_AT = 100,	UID_AT = 108,	GID_AT = 116,	ID_SIZE = 8,
	SIZE_AT = 124,	MTIME_AT = 136,	NUMBER_SIZE = 12,
	SUM_AT = 148,	SUM_SIZE = 8,
	TYPE_AT = 156,
	MAGIC_AT = 257,	MAGIC_SIZE = 8,
	DEVMAJOR_AT = 329, DEVMINOR_AT = 337,
	PREFIX_AT = 345,
};
/* clang-format on */

/* "ustar", NUL, version "00". */
static const char magic[] = "ustar\00000";

/* A size has eleven octal digits. A larger size has big-endian bytes behind a first byte of 0x80,
 * as in GNU tar, BSD tar and star. */
#define OCTAL_LIMIT (UINT64_C(1) << 33)

size_t bundle_tar_padding(uint64_t size)
{
	return (size_t)(-size & (BUNDLE_BLOCK - 1));
}

/* Returns the sum of all bytes, with blanks in the field of the sum. */
static unsigned checksum(const uint8_t *block)
{
	unsigned sum = SUM_SIZE * ' ';

	for (size_t i = 0; i < BUNDLE_BLOCK; i++)
		if (i < SUM_AT || i >= SUM_AT + SUM_SIZE)
			sum += block[i];
	return sum;
}

int bundle_tar_compose(const char *name, uint64_t size, uint8_t block[BUNDLE_BLOCK])
{
	size_t length = strlen(name);

	if (length == 0 || length > BUNDLE_NAME_MAX)
		return -EINVAL;
	memset(block, 0, BUNDLE_BLOCK);
	memcpy(block + NAME_AT, name, length);
	memcpy(block + MODE_AT, "0000644", ID_SIZE);
	memcpy(block + UID_AT, "0000000", ID_SIZE);
	memcpy(block + GID_AT, "0000000", ID_SIZE);
	if (size < OCTAL_LIMIT) {
		snprintf((char *)block + SIZE_AT, NUMBER_SIZE, "%011" PRIo64, size);
	} else {
		block[SIZE_AT] = 0x80;
		for (unsigned i = 0; i < sizeof(size); i++)
			block[SIZE_AT + NUMBER_SIZE - 1 - i] = (uint8_t)(size >> (8 * i));
	}
	memcpy(block + MTIME_AT, "00000000000", NUMBER_SIZE);
	block[TYPE_AT] = '0';
	memcpy(block + MAGIC_AT, magic, MAGIC_SIZE);
	memcpy(block + DEVMAJOR_AT, "0000000", ID_SIZE);
	memcpy(block + DEVMINOR_AT, "0000000", ID_SIZE);
	snprintf((char *)block + SUM_AT, SUM_SIZE, "%06o", checksum(block));
	block[SUM_AT + SUM_SIZE - 1] = ' ';
	return 0;
}

/* Parses octal digits, followed by NULs or blanks. Old tars write blanks before the digits. */
static int parse_octal(const uint8_t *field, size_t size, uint64_t *ret)
{
	uint64_t v = 0;
	size_t i = 0, first;

	while (i < size && field[i] == ' ')
		i++;
	first = i;
	while (i < size && field[i] >= '0' && field[i] <= '7')
		v = v << 3 | (uint64_t)(field[i++] - '0');
	if (i == first)
		return -EBADMSG;
	while (i < size && (field[i] == ' ' || field[i] == 0))
		i++;
	*ret = v;
	return i == size ? 0 : -EBADMSG;
}

int bundle_tar_parse(const uint8_t block[BUNDLE_BLOCK], char ret_name[BUNDLE_NAME_MAX + 1],
		     uint64_t *ret_size)
{
	uint64_t sum, size = 0;

	if (block[0] == 0 && memcmp(block, block + 1, BUNDLE_BLOCK - 1) == 0)
		return BUNDLE_TAR_ZERO;
	if (parse_octal(block + SUM_AT, SUM_SIZE, &sum) < 0 || sum != checksum(block))
		return -EBADMSG;
	if (memcmp(block + MAGIC_AT, magic, MAGIC_SIZE) != 0 || block[TYPE_AT] != '0' ||
	    block[PREFIX_AT] != 0)
		return -EBADMSG;
	if (block[NAME_AT] == 0 || !memchr(block + NAME_AT, 0, NAME_SIZE))
		return -EBADMSG;
	memcpy(ret_name, block + NAME_AT, NAME_SIZE);
	if (block[SIZE_AT] != 0x80)
		return parse_octal(block + SIZE_AT, NUMBER_SIZE, ret_size);
	for (size_t i = 1; i < NUMBER_SIZE; i++) {
		if (size >> 56)
			return -EBADMSG;
		size = size << 8 | block[SIZE_AT + i];
	}
	*ret_size = size;
	return 0;
}

static const uint8_t zeros[16384];

void bundle_writer_init(struct bundle_writer *w, int fd)
{
	*w = (struct bundle_writer){.fd = fd};
}

static int fail(struct bundle_writer *w, int error)
{
	if (!w->error)
		w->error = error;
	return w->error;
}

static int write_bytes(struct bundle_writer *w, const void *data, size_t size)
{
	int r;

	if (w->error)
		return w->error;
	r = memfd_write_all(w->fd, data, size);
	if (r < 0)
		return fail(w, r);
	w->bytes += size;
	return 0;
}

static int write_zeros(struct bundle_writer *w, uint64_t size)
{
	while (size > 0 && !w->error) {
		size_t part = (size_t)MIN_OF(size, (uint64_t)sizeof(zeros));

		write_bytes(w, zeros, part);
		size -= part;
	}
	return w->error;
}

/* Refuses a bundle that would be too large for the reader, with the two blocks at its end. */
static int write_header(struct bundle_writer *w, const char *name, uint64_t size)
{
	uint8_t block[BUNDLE_BLOCK];
	int r;

	if (w->error)
		return w->error;
	if (size > BUNDLE_MAX_BYTES ||
	    w->bytes + size + bundle_tar_padding(size) + 3 * BUNDLE_BLOCK > BUNDLE_MAX_BYTES)
		return fail(w, -EFBIG);
	r = bundle_tar_compose(name, size, block);
	return r < 0 ? fail(w, r) : write_bytes(w, block, sizeof(block));
}

int bundle_write_member(struct bundle_writer *w, const char *name, const void *data, size_t size)
{
	write_header(w, name, size);
	write_bytes(w, data, size);
	return write_zeros(w, bundle_tar_padding(size));
}

int bundle_write_parts(struct bundle_writer *w, const char *name, const struct iovec *parts,
		       size_t n)
{
	uint64_t size = 0;

	for (size_t i = 0; i < n; i++)
		if (__builtin_add_overflow(size, parts[i].iov_len, &size))
			return fail(w, -EFBIG);
	write_header(w, name, size);
	for (size_t i = 0; i < n; i++)
		write_bytes(w, parts[i].iov_base, parts[i].iov_len);
	return write_zeros(w, bundle_tar_padding(size));
}

int bundle_write_file(struct bundle_writer *w, const char *name, int from, uint64_t offset,
		      uint64_t size, uint64_t *ret_copied)
{
	struct memfd_copied copied;
	int r;

	*ret_copied = 0;
	r = write_header(w, name, size);
	if (r < 0)
		return r;
	r = memfd_copy_readable(from, offset, size, w->fd, &copied);
	w->bytes += copied.bytes;
	*ret_copied = copied.bytes;
	if (r < 0)
		return fail(w, r);
	return write_zeros(w, size - copied.bytes + bundle_tar_padding(size));
}

int bundle_write_end(struct bundle_writer *w, const struct manifest *m)
{
	CLEANUP(bytes_out_done) struct bytes_out text;
	int r;

	bytes_out_init(&text, MANIFEST_MAX_TEXT);
	r = manifest_write(m, &text);
	if (r < 0)
		return fail(w, r);
	bundle_write_member(w, BUNDLE_MANIFEST_NAME, text.data, text.size);
	return write_zeros(w, 2 * BUNDLE_BLOCK);
}
