/*
 * One header block of a tar. Used by the bundle's writer (in the recorder and the offline client)
 * and by its reader (in the worker). We write what every tar reads, and read what other tars write
 * for the same members, so that a bundle can be taken apart and put together by hand.
 */
#include "proto/bundle/bundle_tar.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "proto/base.h"

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

/* Eleven octal digits; beyond that big-endian bytes after a first byte of 0x80, as GNU and BSD tar
 * and star do. */
#define OCTAL_LIMIT (UINT64_C(1) << 33)

size_t bundle_tar_padding(uint64_t size)
{
	return (size_t)(-size & (BUNDLE_BLOCK - 1));
}

/* The sum of all bytes, those of the sum's own field taken as blanks. */
static unsigned checksum(const uint8_t *block)
{
	unsigned sum = SUM_SIZE * ' ';

	for (size_t i = 0; i < BUNDLE_BLOCK; i++)
		if (i < SUM_AT || i >= SUM_AT + SUM_SIZE)
			sum += block[i];
	return sum;
}

static void compose_size(uint8_t *field, uint64_t size)
{
	if (size < OCTAL_LIMIT) {
		snprintf((char *)field, NUMBER_SIZE, "%011" PRIo64, size);
		return;
	}
	field[0] = 0x80;
	for (unsigned i = 0; i < sizeof(size); i++)
		field[NUMBER_SIZE - 1 - i] = (uint8_t)(size >> (8 * i));
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
	compose_size(block + SIZE_AT, size);
	memcpy(block + MTIME_AT, "00000000000", NUMBER_SIZE);
	block[TYPE_AT] = '0';
	memcpy(block + MAGIC_AT, magic, MAGIC_SIZE);
	memcpy(block + DEVMAJOR_AT, "0000000", ID_SIZE);
	memcpy(block + DEVMINOR_AT, "0000000", ID_SIZE);
	snprintf((char *)block + SUM_AT, SUM_SIZE, "%06o", checksum(block));
	block[SUM_AT + SUM_SIZE - 1] = ' ';
	return 0;
}

/* Octal digits, then NULs or blanks to the field's end; blanks before them from old tars. */
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

static int parse_size(const uint8_t *field, uint64_t *ret)
{
	uint64_t v = 0;

	if (field[0] != 0x80)
		return parse_octal(field, NUMBER_SIZE, ret);
	for (size_t i = 1; i < NUMBER_SIZE; i++) {
		if (v >> 56)
			return -EBADMSG;
		v = v << 8 | field[i];
	}
	*ret = v;
	return 0;
}

static bool is_zero(const uint8_t *block)
{
	return block[0] == 0 && memcmp(block, block + 1, BUNDLE_BLOCK - 1) == 0;
}

int bundle_tar_parse(const uint8_t block[BUNDLE_BLOCK], char ret_name[BUNDLE_NAME_MAX + 1],
		     uint64_t *ret_size)
{
	uint64_t sum;

	if (is_zero(block))
		return BUNDLE_TAR_ZERO;
	if (parse_octal(block + SUM_AT, SUM_SIZE, &sum) < 0 || sum != checksum(block))
		return -EBADMSG;
	if (memcmp(block + MAGIC_AT, magic, MAGIC_SIZE) != 0 || block[TYPE_AT] != '0' ||
	    block[PREFIX_AT] != 0)
		return -EBADMSG;
	if (block[NAME_AT] == 0 || !memchr(block + NAME_AT, 0, NAME_SIZE))
		return -EBADMSG;
	memcpy(ret_name, block + NAME_AT, NAME_SIZE);
	return parse_size(block + SIZE_AT, ret_size);
}
