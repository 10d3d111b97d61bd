/*
 * The function at a file offset. An image's symbols are read when it is first asked for; between
 * two of them lies a function without a name, so that every place in the code belongs to exactly
 * one. Only in the worker; one thread at a time.
 */
#include "sideband/symbols.h"

#include <errno.h>
#include <stdlib.h>

#include "proto/base.h"
#include "sideband/elf.h"

/* How many symbols before the nearest may still reach over it (code with inner symbols). */
#define NESTING 8u

struct opened {
	bool tried;
	struct elf_file *elf; /* NULL: no ELF file, not at hand, or no memory */
};

struct symbols {
	struct image_set *images;
	struct opened *opened; /* by image */
	size_t n;
};

int symbols_new(struct image_set *images, struct symbols **ret)
{
	struct symbols *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->images = images;
	while (image_source(images, (uint32_t)s->n))
		s->n++;
	s->opened = calloc(s->n + 1, sizeof(*s->opened));
	if (!s->opened) {
		free(s);
		return -ENOMEM;
	}
	*ret = s;
	return 0;
}

void symbols_free(struct symbols *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->n; i++)
		elf_file_free(s->opened[i].elf);
	free(s->opened);
	free(s);
}

/* NULL: none. A piece from the middle of a file has no headers. */
static const struct elf_file *open_image(struct symbols *s, uint32_t image)
{
	const struct image_source *source;
	struct opened *o;

	if (image >= s->n)
		return NULL;
	o = &s->opened[image];
	if (o->tried)
		return o->elf;
	o->tried = true;
	source = image_source(s->images, image);
	if (source->bytes && source->offset == 0 &&
	    elf_file_new(source->bytes, source->size, &o->elf) != 0)
		o->elf = NULL;
	return o->elf;
}

/* The first of N symbols beyond OFFSET. */
static size_t first_beyond(const struct elf_symbol *symbols, size_t n, uint64_t offset)
{
	size_t lo = 0;

	while (lo < n) {
		size_t mid = lo + (n - lo) / 2;

		if (symbols[mid].offset > offset)
			n = mid;
		else
			lo = mid + 1;
	}
	return lo;
}

/* The bytes of symbol I, one without a size ends at the next one or at LIMIT; never beyond LIMIT.
 */
static uint64_t size_of(const struct elf_symbol *symbols, size_t n, size_t i, uint64_t limit)
{
	uint64_t room = limit > symbols[i].offset ? limit - symbols[i].offset : 0;

	if (symbols[i].size)
		return MIN_OF(symbols[i].size, room);
	if (i + 1 < n)
		return MIN_OF(symbols[i + 1].offset - symbols[i].offset, room);
	return room;
}

/* Where the last of the symbols that may reach to BEYOND ends, at least BEGIN. */
static uint64_t end_before(const struct elf_symbol *symbols, size_t n, size_t beyond,
			   uint64_t begin, uint64_t limit)
{
	uint64_t end = begin;

	for (size_t i = beyond; i-- > 0 && beyond - i <= NESTING && symbols[i].offset >= begin;)
		end = MAX_OF(end, symbols[i].offset + size_of(symbols, n, i, limit));
	return end;
}

void symbols_find(struct symbols *s, uint32_t image, uint64_t offset, struct symbol *ret)
{
	const struct elf_file *elf = open_image(s, image);
	const struct elf_symbol *symbols;
	uint64_t begin, end;
	size_t n, beyond;

	*ret = (struct symbol){.image = image, .offset = offset};
	if (!elf || !elf_file_code(elf, offset, &begin, &end))
		return;
	symbols = elf_file_symbols(elf, &n);
	beyond = first_beyond(symbols, n, offset);
	for (size_t i = beyond; i-- > 0 && beyond - i <= NESTING && symbols[i].offset >= begin;) {
		uint64_t size = size_of(symbols, n, i, end);

		if (offset - symbols[i].offset >= size)
			continue;
		*ret = (struct symbol){image, symbols[i].offset, size, symbols[i].name};
		return;
	}
	begin = end_before(symbols, n, beyond, begin, end);
	if (beyond < n)
		end = MIN_OF(end, symbols[beyond].offset);
	ret->offset = begin;
	ret->size = end - begin;
}

const uint8_t *symbols_build_id(struct symbols *s, uint32_t image, size_t *ret_size)
{
	const struct elf_file *elf = open_image(s, image);

	*ret_size = 0;
	return elf ? elf_file_build_id(elf, ret_size) : NULL;
}
