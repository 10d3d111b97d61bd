/*
 * The function at a file offset. An image's symbols are read when it is first asked for; between
 * two of them lies a function without a name, so that every place in the code belongs to exactly
 * one. Source lines are in symbols_lines.c. Only in the worker; one thread at a time.
 */
#include "sideband/symbols/symbols.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base.h"
#include "sideband/elf/elf.h"
#include "sideband/symbols/symbols_private.h"

/* How many symbols before the nearest may still reach over it (code with inner symbols). */
#define NESTING 8u

int symbols_new(struct image_set *images, struct symbols **ret)
{
	struct symbols *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->images = images;
	s->limits.left = SYMBOLS_MAX_DWARF;
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
	for (size_t i = 0; i < s->n; i++) {
		symbols_lines_done(&s->opened[i]);
		elf_file_free(s->opened[i].elf);
	}
	for (size_t i = 0; i < s->n_maps; i++)
		perfmap_free(s->maps[i].map);
	free(s->maps);
	free(s->opened);
	free(s);
}

void symbols_leave_out(struct symbols *s)
{
	s->left_out = true;
	s->n_maps = 0;
}

void symbols_use_debug_files(struct symbols *s)
{
	s->use_apart = true;
}

/* The first map of a process that is not before PID. */
static size_t map_at(const struct symbols *s, uint32_t pid)
{
	return FIRST_WHERE(i, s->n_maps, s->maps[i].pid >= pid);
}

int symbols_add_map(struct symbols *s, uint32_t pid, const void *text, size_t size)
{
	size_t at = map_at(s, pid);

	if (at < s->n_maps && s->maps[at].pid == pid)
		return 0;
	if (ARRAY_RESERVE(s->maps, s->maps_capacity, s->n_maps + 1) < 0)
		return -ENOMEM;
	memmove(&s->maps[at + 1], &s->maps[at], (s->n_maps - at) * sizeof(*s->maps));
	s->maps[at] = (struct symbols_map){.pid = pid, .text = text, .size = size};
	s->n_maps++;
	return 0;
}

bool symbols_has_map(const struct symbols *s, uint32_t pid)
{
	size_t at = map_at(s, pid);

	return at < s->n_maps && s->maps[at].pid == pid;
}

/* NULL: there is none. */
static struct perfmap *open_map(struct symbols *s, uint32_t pid)
{
	size_t at = map_at(s, pid);
	struct symbols_map *map;

	if (at == s->n_maps || s->maps[at].pid != pid)
		return NULL;
	map = &s->maps[at];
	if (!map->tried && perfmap_new(map->text, map->size, &map->map) != 0)
		map->map = NULL;
	map->tried = true;
	return map->map;
}

bool symbols_find_in_map(struct symbols *s, uint32_t pid, uint64_t address,
			 struct perfmap_function *ret)
{
	struct perfmap *map = open_map(s, pid);

	if (map)
		perfmap_find(map, address, ret);
	return map != NULL;
}

/* In the process' memory that SOURCE is. A function may reach over its ends. */
static void find_in_memory(struct symbols *s, const struct image_source *source, struct symbol *ret)
{
	struct perfmap *map = open_map(s, source->pid);
	struct perfmap_function f;
	uint64_t size = source->file_size ? source->file_size : source->size;
	uint64_t begin, end = source->address + size;

	if (!map)
		return;
	perfmap_find(map, source->address + ret->offset, &f);
	begin = MAX_OF(f.start, source->address);
	end = MIN_OF(f.start + f.size, end);
	if (begin >= end)
		return;
	ret->offset = begin - source->address;
	ret->size = end - begin;
	ret->name = f.name;
}

/* The file apart of IMAGE, which is O: its names are the image's, too. What is in the kernel has
 * its names and lines elsewhere. */
static void add_apart(struct symbols *s, uint32_t image, struct symbols_image *o)
{
	struct elf_bytes bytes;
	const uint8_t *id;
	uint32_t number;
	size_t size;

	id = elf_file_build_id(o->elf, &size);
	if (size == 0 || image_source(s->images, image)->apart ||
	    image_open_debug(s->images, image, id, size, &number) != 0 ||
	    image_elf_bytes(s->images, number, &bytes) != 0 ||
	    elf_file_add_names(o->elf, &bytes) != 0)
		return;
	o->has_apart = true;
	o->apart = number;
}

struct symbols_image *symbols_open_image(struct symbols *s, uint32_t image)
{
	struct symbols_image *o;

	if (image >= s->n || s->left_out)
		return NULL;
	o = &s->opened[image];
	if (!o->tried) {
		o->tried = true;
		if (image_open_elf(s->images, image, &o->elf) != 0)
			o->elf = NULL;
		if (o->elf && s->use_apart)
			add_apart(s, image, o);
	}
	return o->elf ? o : NULL;
}

/* NULL: none. */
static const struct elf_file *open_elf(struct symbols *s, uint32_t image)
{
	const struct symbols_image *o = symbols_open_image(s, image);

	return o ? o->elf : NULL;
}

/* The first of N symbols beyond OFFSET. */
static size_t first_beyond(const struct elf_symbol *symbols, size_t n, uint64_t offset)
{
	return FIRST_WHERE(i, n, symbols[i].offset > offset);
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

/* RET is symbol I. Those behind it may lie within it: before the place asked for, or, from BEYOND
 * on, behind it. */
static void leave_out_inner(struct symbol *ret, const struct elf_symbol *symbols, size_t n,
			    size_t i, size_t beyond, uint64_t limit)
{
	ret->begin = ret->offset;
	ret->end = ret->offset + ret->size;
	for (size_t inner = i + 1; inner < beyond; inner++)
		ret->begin = MAX_OF(ret->begin,
				    symbols[inner].offset + size_of(symbols, n, inner, limit));
	if (beyond < n)
		ret->end = MIN_OF(ret->end, symbols[beyond].offset);
}

/* All of an image, as of one in which there is no symbol. */
static void find_left_out(const struct image_source *source, struct symbol *ret)
{
	uint64_t size = source->file_size ? source->file_size : source->offset + source->size;

	if (ret->offset >= size)
		return;
	ret->offset = 0;
	ret->size = size;
}

void symbols_find(struct symbols *s, uint32_t image, uint64_t offset, struct symbol *ret)
{
	const struct image_source *source = image_source(s->images, image);
	const struct elf_file *elf;
	const struct elf_symbol *symbols;
	uint64_t begin, end;
	size_t n, beyond;

	*ret = (struct symbol){.image = image, .offset = offset};
	if (source && s->left_out) {
		find_left_out(source, ret);
		return;
	}
	if (source && source->memory && !source->vdso) {
		find_in_memory(s, source, ret);
		return;
	}
	elf = open_elf(s, image);
	if (!elf)
		return;
	if (!elf_file_code(elf, offset, &begin, &end)) {
		ret->begin = offset;
		ret->end = offset + 1;
		return;
	}
	symbols = elf_file_symbols(elf, &n);
	beyond = first_beyond(symbols, n, offset);
	for (size_t i = beyond; i-- > 0 && beyond - i <= NESTING && symbols[i].offset >= begin;) {
		uint64_t size = size_of(symbols, n, i, end);

		if (offset - symbols[i].offset >= size)
			continue;
		*ret = (struct symbol){image, symbols[i].offset, size, symbols[i].name, 0, 0};
		leave_out_inner(ret, symbols, n, i, beyond, end);
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
	const struct elf_file *elf = open_elf(s, image);

	*ret_size = 0;
	return elf ? elf_file_build_id(elf, ret_size) : NULL;
}
