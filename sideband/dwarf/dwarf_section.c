/*
 * The sections of DWARF that lines and inlining need, and no others: found by the section headers,
 * brought, counted, and unpacked where they are packed. Part of dwarf.c.
 *
 * They are unpacked here and not by libelf, which would change the headers in the file's own bytes
 * (elf_compress()), and before they are counted.
 */
#include <byteswap.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <zlib.h>
#include <zstd.h>

#include "proto/base.h"
#include "sideband/dwarf/dwarf_private.h"
#include "sideband/elf/elf_private.h"

#ifndef ELFCOMPRESS_ZSTD
#define ELFCOMPRESS_ZSTD 2
#endif

/* Of .zdebug sections, as GNU tools made them before there was SHF_COMPRESSED: this, and eight
 * bytes of size with the highest first. */
#define OLD_MAGIC "ZLIB"
#define OLD_SIZE  12u

enum packing { PACKING_NONE, PACKING_ZLIB, PACKING_ZSTD, PACKING_UNKNOWN };

struct found {
	uint64_t offset, size; /* in the file */
	bool compressed, old, there;
	enum packing packing;
	uint64_t skip;	   /* header before what is packed */
	uint64_t unpacked; /* bytes */
	bool copied;	   /* it ends where the file does */
};

static const char *const names[DWARF_N_SECTIONS] = {
	[DWARF_INFO] = "info",
	[DWARF_ABBREV] = "abbrev",
	[DWARF_LINE] = "line",
	[DWARF_STR] = "str",
	[DWARF_LINE_STR] = "line_str",
	[DWARF_RANGES] = "ranges",
	[DWARF_RNGLISTS] = "rnglists",
	[DWARF_ADDR] = "addr",
	[DWARF_STR_OFFSETS] = "str_offsets",
};

/* --- Finding --- */

static const char *after(const char *text, const char *prefix)
{
	size_t n = strlen(prefix);

	return strncmp(text, prefix, n) == 0 ? text + n : NULL;
}

/* The first one of a name counts, as for everybody else. */
static void take(const char *name, const GElf_Shdr *h, size_t file_size, struct found *found)
{
	const char *rest = after(name, ".debug_"), *old = after(name, ".zdebug_");

	if (!rest)
		rest = old;
	for (size_t i = 0; rest && i < DWARF_N_SECTIONS; i++) {
		if (found[i].there || strcmp(rest, names[i]) != 0)
			continue;
		found[i] = (struct found){.offset = h->sh_offset,
					  .size = h->sh_size,
					  .compressed = h->sh_flags & SHF_COMPRESSED,
					  .old = old != NULL,
					  .there = h->sh_offset <= file_size && h->sh_size > 0 &&
						   h->sh_size <= file_size - h->sh_offset};
	}
}

static void find_all(struct elf_file *f, struct found *found)
{
	Elf_Scn *scn = NULL;
	GElf_Shdr h;

	if (!elf_bring_section_names(f))
		return;
	while ((scn = elf_nextscn(f->elf, scn)))
		if (gelf_getshdr(scn, &h) && h.sh_type != SHT_NOBITS)
			take(elf_section_name(f, &h), &h, f->size, found);
}

/* --- Packing --- */

static void set_packing(struct found *f, uint32_t type, uint64_t size, uint64_t skip)
{
	f->skip = skip;
	f->unpacked = size;
	f->packing = type == ELFCOMPRESS_ZLIB	? PACKING_ZLIB
		     : type == ELFCOMPRESS_ZSTD ? PACKING_ZSTD
						: PACKING_UNKNOWN;
}

static void read_header(const uint8_t *at, bool narrow, struct found *f)
{
	Elf64_Chdr wide;
	Elf32_Chdr h;

	if (narrow && f->size >= sizeof(h)) {
		memcpy(&h, at, sizeof(h));
		set_packing(f, h.ch_type, h.ch_size, sizeof(h));
	} else if (!narrow && f->size >= sizeof(wide)) {
		memcpy(&wide, at, sizeof(wide));
		set_packing(f, wide.ch_type, wide.ch_size, sizeof(wide));
	}
}

static void read_old_header(const uint8_t *at, struct found *f)
{
	uint64_t big;

	if (f->size < OLD_SIZE || memcmp(at, OLD_MAGIC, strlen(OLD_MAGIC)) != 0)
		return;
	memcpy(&big, at + strlen(OLD_MAGIC), sizeof(big));
	set_packing(f, ELFCOMPRESS_ZLIB, bswap_64(big), OLD_SIZE);
}

/* The section's bytes are there. */
static void read_packing(const struct elf_bytes *bytes, struct found *f)
{
	const uint8_t *at = bytes->bytes + f->offset;

	f->unpacked = f->size;
	if (!f->compressed && !f->old)
		return;
	f->packing = PACKING_UNKNOWN;
	if (f->old)
		read_old_header(at, f);
	else
		read_header(at, bytes->bytes[EI_CLASS] == ELFCLASS32, f);
}

static bool unpack(const uint8_t *from, size_t size, enum packing packing, void *to, size_t to_size)
{
	uLongf n = to_size;

	if (packing == PACKING_NONE)
		memcpy(to, from, size);
	if (packing == PACKING_NONE)
		return true;
	if (packing == PACKING_ZSTD)
		return ZSTD_decompress(to, to_size, from, size) == to_size;
	return uncompress(to, &n, from, size) == Z_OK && n == to_size;
}

/* Text ends where its last string ends: nothing read from it leads further. */
static void end_text(struct dwarf_section *s)
{
	const uint8_t *end = memrchr(s->bytes, 0, s->size);

	s->size = end ? (size_t)(end - s->bytes) : 0;
}

/* 0 or -ENOMEM. What cannot be unpacked is not there. */
static int load(const uint8_t *bytes, const struct found *f, struct dwarf_section *ret)
{
	const uint8_t *from = bytes + f->offset + f->skip;
	void *to;

	if (f->packing == PACKING_NONE && !f->copied) {
		*ret = (struct dwarf_section){from, (size_t)f->size, NULL};
		return 0;
	}
	if (f->packing == PACKING_UNKNOWN || f->unpacked == 0)
		return 0;
	to = malloc((size_t)f->unpacked + DWARF_TAIL);
	if (!to)
		return -ENOMEM;
	memset((uint8_t *)to + f->unpacked, 0, DWARF_TAIL);
	if (!unpack(from, (size_t)(f->size - f->skip), f->packing, to, (size_t)f->unpacked)) {
		free(to);
		return 0;
	}
	*ret = (struct dwarf_section){to, (size_t)f->unpacked, to};
	return 0;
}

/* --- Bringing --- */

/* Of a file in pieces most may not be there; else it is what may be brought of all files. */
static int why_not(const struct elf_bytes *bytes, const struct found *f)
{
	return bytes->room && f->size > *bytes->room ? DWARF_LARGE : DWARF_NONE;
}

/* What is brought may be kept by whoever brings it. 0, DWARF_NONE or DWARF_LARGE. */
static int bring(const struct elf_bytes *bytes, struct dwarf_limits *limits, const struct found *f)
{
	if (!bytes->need)
		return 0;
	if (limits && f->size > limits->left)
		return DWARF_LARGE;
	if (limits)
		limits->left -= f->size;
	return bytes->need(bytes->userdata, f->offset, f->size) ? 0 : why_not(bytes, f);
}

/* What is packed, or copied, counts before it is brought as what it takes in the file, and what all
 * of them are unpacked before the first is. 0, DWARF_NONE or DWARF_LARGE. */
static int count(const struct elf_bytes *bytes, struct dwarf_limits *limits, struct found *found,
		 uint64_t *ret_packed)
{
	uint64_t sum = 0, packed = 0;
	int r;

	for (size_t i = 0; i < DWARF_N_SECTIONS; i++) {
		struct found *f = &found[i];

		if (!f->there)
			continue;
		if (f->size > DWARF_MAX_BYTES - sum)
			return DWARF_LARGE;
		r = bring(bytes, limits, f);
		if (r != 0)
			return r;
		read_packing(bytes, f);
		f->copied = bytes->size - f->offset - f->size < DWARF_TAIL;
		if (f->unpacked > DWARF_MAX_BYTES - sum)
			return DWARF_LARGE;
		sum += f->unpacked;
		packed += f->packing != PACKING_NONE || f->copied ? f->unpacked : 0;
	}
	*ret_packed = packed;
	return 0;
}

/* 0 or DWARF_LARGE. */
static int take_room(struct dwarf_sections *s, uint64_t *room, uint64_t bytes)
{
	if (!room)
		return 0;
	if (bytes > *room)
		return DWARF_LARGE;
	*room -= bytes;
	s->room = room;
	s->taken = bytes;
	return 0;
}

static int read_found(const struct elf_bytes *bytes, struct dwarf_limits *limits,
		      struct found *found, struct dwarf_sections *ret)
{
	uint64_t packed = 0;
	int r;

	if (!found[DWARF_INFO].there || !found[DWARF_ABBREV].there)
		return DWARF_NONE;
	r = count(bytes, limits, found, &packed);
	if (r == 0)
		r = take_room(ret, bytes->room, packed);
	for (size_t i = 0; i < DWARF_N_SECTIONS && r == 0; i++)
		if (found[i].there)
			r = load(bytes->bytes, &found[i], &ret->of[i]);
	if (r != 0)
		return r;
	if (ret->of[DWARF_INFO].size == 0 || ret->of[DWARF_ABBREV].size == 0)
		return DWARF_NONE;
	if (ret->of[DWARF_STR].size > 0)
		end_text(&ret->of[DWARF_STR]);
	if (ret->of[DWARF_LINE_STR].size > 0)
		end_text(&ret->of[DWARF_LINE_STR]);
	return 0;
}

int dwarf_sections_read(const struct elf_bytes *bytes, struct dwarf_limits *limits,
			struct dwarf_sections *ret)
{
	struct found found[DWARF_N_SECTIONS] = {0};
	struct elf_file *f;
	int r;

	*ret = (struct dwarf_sections){0};
	/* Checks the header tables, which libelf believes. */
	r = elf_file_open(bytes, ELF_BUILD_ID, &f);
	if (r != 0)
		return r == ELF_NOT ? DWARF_NONE : r;
	find_all(f, found);
	elf_file_free(f);
	return read_found(bytes, limits, found, ret);
}

void dwarf_sections_free(struct dwarf_sections *s)
{
	for (size_t i = 0; i < DWARF_N_SECTIONS; i++)
		free(s->of[i].owned);
	if (s->room)
		*s->room += s->taken;
}
