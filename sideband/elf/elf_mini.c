/*
 * The small ELF file that some distributions pack by xz into .gnu_debugdata of a stripped one: it
 * has the symbols of functions that .dynsym lacks. It is a stranger's: what it may become is
 * limited before it is unpacked, and of it only symbol tables are read, so that it can hold no
 * further one. Part of elf.c.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <lzma.h>

#include "proto/base.h"
#include "sideband/elf/elf_private.h"

#define MAX_UNPACKED (UINT64_C(64) << 20)
/* What xz makes of symbol tables is a third to a tenth of them. */
#define MAX_RATIO 64u
/* The unpacker's own: so that what "xz -9" has packed can be read, which needs 65 MiB. */
#define MAX_DECODER_BYTES (UINT64_C(68) << 20)
#define FIRST_BYTES	  ((size_t)64 << 10)

struct unpacked {
	uint8_t *bytes;
	size_t size, capacity, most;
};

/* Up to its limit. */
static bool grow(struct unpacked *u)
{
	size_t capacity = u->capacity ? 2 * u->capacity : FIRST_BYTES;

	capacity = MIN_OF(capacity, u->most);
	if (capacity == 0 || ARRAY_FIT(u->bytes, capacity) < 0)
		return false;
	u->capacity = capacity;
	return true;
}

/* What was not needed is given back. */
static void shrink(struct unpacked *u)
{
	(void)ARRAY_FIT(u->bytes, u->size);
	u->capacity = u->size;
}

/* All of it, or false. Where there is no more room the unpacker knows whether it needs any. */
static bool unpack(lzma_stream *z, struct unpacked *u)
{
	lzma_ret r = LZMA_OK;

	if (lzma_stream_decoder(z, MAX_DECODER_BYTES, 0) != LZMA_OK)
		return false;
	while (r == LZMA_OK) {
		if (u->size == u->capacity && !grow(u))
			return false;
		z->next_out = u->bytes + u->size;
		z->avail_out = u->capacity - u->size;
		r = lzma_code(z, LZMA_FINISH);
		u->size = u->capacity - z->avail_out;
	}
	return r == LZMA_STREAM_END;
}

static void unpack_section(const struct elf_file *f, const GElf_Shdr *h, struct unpacked *ret)
{
	uint64_t most = MIN_OF(h->sh_size * MAX_RATIO, MAX_UNPACKED);
	lzma_stream z = LZMA_STREAM_INIT;

	*ret = (struct unpacked){.most = (size_t)(f->room ? MIN_OF(most, *f->room) : most)};
	z.next_in = f->bytes + h->sh_offset;
	z.avail_in = (size_t)h->sh_size;
	if (unpack(&z, ret)) {
		shrink(ret);
	} else {
		free(ret->bytes);
		*ret = (struct unpacked){0};
	}
	lzma_end(&z);
}

static bool find_section(struct elf_file *f, GElf_Shdr *ret)
{
	Elf_Scn *scn = NULL;

	if (!elf_have_section_names(f))
		return false;
	while ((scn = elf_nextscn(f->elf, scn)))
		if (gelf_getshdr(scn, ret) && ret->sh_type == SHT_PROGBITS &&
		    strcmp(elf_section_name(f, ret), ".gnu_debugdata") == 0)
			return ret->sh_offset <= f->size &&
			       ret->sh_size <= f->size - ret->sh_offset && elf_have_section(f, ret);
	return false;
}

int elf_add_mini(struct elf_file *f)
{
	struct unpacked u;
	GElf_Shdr h;
	int r;

	if (!find_section(f, &h))
		return 0;
	unpack_section(f, &h, &u);
	if (!u.bytes)
		return 0;
	f->mini_bytes = u.bytes;
	f->mini_bytes_had = u.size;
	if (f->room)
		*f->room -= u.size;
	r = elf_file_open(&(struct elf_bytes){.bytes = u.bytes, .size = u.size}, ELF_BUILD_ID,
			  &f->mini);
	if (r == 0)
		r = elf_add_tables(f, f->mini);
	else
		elf_drop_mini(f);
	return MIN_OF(r, 0);
}

void elf_drop_mini(struct elf_file *f)
{
	elf_file_free(TAKE_PTR(f->mini));
	free(TAKE_PTR(f->mini_bytes));
	if (f->room)
		*f->room += f->mini_bytes_had;
	f->mini_bytes_had = 0;
}
