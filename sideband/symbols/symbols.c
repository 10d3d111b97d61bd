/*
 * The function and the source lines at a file offset.
 *
 * The symbols, DWARF and perf map of an image are read on the first question about the image. A
 * span between two symbols is a function without a name and with unknown bounds, because every
 * place in the code belongs to exactly one function.
 */
#include "sideband/symbols/symbols.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base.h"
#include "sideband/dwarf/dwarf.h"
#include "sideband/elf/elf.h"
#include "sideband/symbols/jitdump.h"

/* A place is searched in so many symbols that begin before it: symbols may lie in other symbols. */
#define NESTING 8u

/* The files of an image that are open. */
struct opened {
	bool tried;
	struct elf_file *elf; /* NULL: no ELF file, not at hand, or no memory */
	bool has_debug;
	uint32_t debug; /* the number of its debug file (image_open_debug()) */
	enum symbols_dwarf dwarf_state;
	struct dwarf_file *dwarf; /* where the state is OWN or APART */
};

struct map {
	uint32_t pid;
	const void *text; /* borrowed */
	size_t size;
	const struct jitdump *dump; /* borrowed; instead of a text */
	bool tried;
	struct perfmap *map; /* NULL: not read, or no memory */
};

struct symbols {
	struct image_set *images;
	struct opened *opened; /* by image */
	size_t n;
	struct map *maps; /* in order of pid */
	size_t n_maps, maps_capacity;
	bool left_out;	/* nothing is read */
	bool use_debug; /* debug files are asked for */
	bool asked;	/* an ELF file or a map was looked for: no more settings */
	struct dwarf_limits limits;
};

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
		dwarf_file_free(s->opened[i].dwarf);
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
	assert(!s->asked);
	s->left_out = true;
	s->n_maps = 0;
}

void symbols_use_debug_files(struct symbols *s)
{
	assert(!s->asked);
	s->use_debug = true;
}

/* --- Perf maps --- */

/* The first map of a process that is not before PID. */
static size_t map_at(const struct symbols *s, uint32_t pid)
{
	return FIRST_WHERE(i, s->n_maps, s->maps[i].pid >= pid);
}

static int add_map(struct symbols *s, uint32_t pid, const struct map *map)
{
	size_t at = map_at(s, pid);

	if (at < s->n_maps && s->maps[at].pid == pid)
		return 0;
	if (ARRAY_RESERVE(s->maps, s->maps_capacity, s->n_maps + 1) < 0)
		return -ENOMEM;
	memmove(&s->maps[at + 1], &s->maps[at], (s->n_maps - at) * sizeof(*s->maps));
	s->maps[at] = *map;
	s->n_maps++;
	return 0;
}

int symbols_add_map(struct symbols *s, uint32_t pid, const void *text, size_t size)
{
	return add_map(s, pid, &(struct map){.pid = pid, .text = text, .size = size});
}

int symbols_add_dump(struct symbols *s, uint32_t pid, const struct jitdump *dump)
{
	return add_map(s, pid, &(struct map){.pid = pid, .dump = dump});
}

bool symbols_has_map(const struct symbols *s, uint32_t pid)
{
	size_t at = map_at(s, pid);

	return at < s->n_maps && s->maps[at].pid == pid;
}

/* The newest comes first. */
static const char *on_load(void *userdata, size_t i, uint64_t *ret_begin, uint64_t *ret_size)
{
	size_t n;
	const struct jitdump_load *load = jitdump_loads(userdata, &n) + (n - 1 - i);

	*ret_begin = load->address;
	*ret_size = load->size;
	return load->name;
}

static int read_map(const struct map *map, struct perfmap **ret)
{
	size_t n;

	if (!map->dump)
		return perfmap_new(map->text, map->size, ret);
	(void)jitdump_loads(map->dump, &n);
	return perfmap_new_of(n, on_load, (void *)(uintptr_t)map->dump, ret);
}

/* NULL: there is none. */
static struct perfmap *open_map(struct symbols *s, uint32_t pid)
{
	size_t at = map_at(s, pid);
	struct map *map;

	s->asked = true;
	if (at == s->n_maps || s->maps[at].pid != pid)
		return NULL;
	map = &s->maps[at];
	if (!map->tried && read_map(map, &map->map) != 0)
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
	return map;
}

/* --- ELF files --- */

/* The names of the debug file of IMAGE, which is O, are added to the image's own. Images of the
 * kernel have no debug file: the kernel's names come from elsewhere. */
static void add_debug_file(struct symbols *s, uint32_t image, struct opened *o)
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
	o->has_debug = true;
	o->debug = number;
}

/* NULL: IMAGE is no ELF file that can be read. */
static const struct elf_file *open_elf(struct symbols *s, uint32_t image)
{
	struct opened *o;

	s->asked = true;
	if (image >= s->n || s->left_out)
		return NULL;
	o = &s->opened[image];
	if (!o->tried) {
		o->tried = true;
		if (image_open_elf(s->images, image, &o->elf) != 0)
			o->elf = NULL;
		if (o->elf && s->use_debug)
			add_debug_file(s, image, o);
	}
	return o->elf;
}

const uint8_t *symbols_build_id(struct symbols *s, uint32_t image, size_t *ret_size)
{
	const struct elf_file *elf = open_elf(s, image);

	*ret_size = 0;
	return elf ? elf_file_build_id(elf, ret_size) : NULL;
}

/* --- Functions --- */

/* In SOURCE, which is memory of a process, by the process' perf map. A function of the map may
 * reach over both ends of SOURCE. */
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

static void find_in_dump(const struct jitdump *dump, struct symbol *ret)
{
	const struct jitdump_load *load = jitdump_at(dump, ret->offset);

	if (!load)
		return;
	ret->offset = load->offset;
	ret->size = load->size;
	ret->name = load->name[0] != '\0' ? load->name : NULL;
}

/* The bytes of symbol I up to LIMIT at most; a symbol without a size ends at the next one. */
static uint64_t size_of(const struct elf_symbol *symbols, size_t n, size_t i, uint64_t limit)
{
	uint64_t room = limit > symbols[i].offset ? limit - symbols[i].offset : 0;

	if (symbols[i].size)
		return MIN_OF(symbols[i].size, room);
	if (i + 1 < n)
		return MIN_OF(symbols[i + 1].offset - symbols[i].offset, room);
	return room;
}

/* RET becomes symbol I, in which the place that was asked for lies. The symbols behind I may lie
 * within it: those before BEYOND begin before the place, those from BEYOND on behind the place. */
static void set_symbol(struct symbol *ret, const struct elf_symbol *symbols, size_t n, size_t i,
		       size_t beyond, uint64_t limit)
{
	ret->offset = ret->begin = symbols[i].offset;
	ret->size = size_of(symbols, n, i, limit);
	ret->name = symbols[i].name;
	ret->end = ret->offset + ret->size;
	for (size_t inner = i + 1; inner < beyond; inner++)
		ret->begin = MAX_OF(ret->begin,
				    symbols[inner].offset + size_of(symbols, n, inner, limit));
	if (beyond < n)
		ret->end = MIN_OF(ret->end, symbols[beyond].offset);
}

/* In ELF, whose code [BEGIN, END) holds the place. */
static void find_in_elf(const struct elf_file *elf, uint64_t begin, uint64_t end,
			struct symbol *ret)
{
	uint64_t offset = ret->offset;
	size_t n;
	const struct elf_symbol *symbols = elf_file_symbols(elf, &n);
	size_t beyond = FIRST_WHERE(i, n, symbols[i].offset > offset);

	/* Without a symbol around it the place is in a gap, from the end of those before it. */
	ret->offset = begin;
	for (size_t i = beyond; i-- > 0 && beyond - i <= NESTING && symbols[i].offset >= begin;) {
		uint64_t size = size_of(symbols, n, i, end);

		if (offset - symbols[i].offset < size) {
			set_symbol(ret, symbols, n, i, beyond, end);
			return;
		}
		ret->offset = MAX_OF(ret->offset, symbols[i].offset + size);
	}
	if (beyond < n)
		end = MIN_OF(end, symbols[beyond].offset);
	ret->size = end - ret->offset;
	ret->unbounded = true;
}

void symbols_find(struct symbols *s, uint32_t image, uint64_t offset, struct symbol *ret)
{
	const struct image_source *source = image_source(s->images, image);
	const struct elf_file *elf;
	uint64_t begin, end;

	*ret = (struct symbol){.image = image, .offset = offset};
	if (source && s->left_out) {
		/* All of an image is one function, as if the image had no symbols. */
		end = source->file_size ? source->file_size : source->offset + source->size;
		if (offset < end) {
			ret->offset = 0;
			ret->size = end;
		}
		return;
	}
	if (source && source->dump) {
		const struct jitdump *dump = image_jitdump(s->images, image, NULL);

		if (dump)
			find_in_dump(dump, ret);
		return;
	}
	if (source && source->memory && !source->vdso) {
		find_in_memory(s, source, ret);
		return;
	}
	elf = open_elf(s, image);
	if (!elf)
		return;
	if (elf_file_code(elf, offset, &begin, &end)) {
		find_in_elf(elf, begin, end, ret);
		(void)elf_file_address(elf, ret->offset, &ret->address);
	} else {
		ret->begin = offset;
		ret->end = offset + 1;
	}
}

/* --- Source lines --- */

/* Opens the DWARF of image number NUMBER, which may be a debug file: results as of
 * dwarf_file_open(). */
static int open_numbered(struct symbols *s, uint32_t number, struct dwarf_file **ret)
{
	struct elf_bytes bytes;

	if (image_elf_bytes(s->images, number, &bytes) != 0)
		return DWARF_NONE;
	return dwarf_file_open_within(&bytes, &s->limits, ret);
}

void symbols_limit_lines(struct symbols *s, bool (*enough)(void *userdata), void *userdata)
{
	s->limits.enough = enough;
	s->limits.userdata = userdata;
}

static void open_dwarf(struct symbols *s, uint32_t image, struct opened *o)
{
	const struct image_source *source = image_source(s->images, image);
	int own, debug = DWARF_NONE;

	o->dwarf_state = SYMBOLS_DWARF_NONE;
	if (source->apart || (source->memory && !source->vdso) || !open_elf(s, image))
		return;
	own = open_numbered(s, image, &o->dwarf);
	if (own == 0) {
		o->dwarf_state = SYMBOLS_DWARF_OWN;
		return;
	}
	if (o->has_debug)
		debug = open_numbered(s, o->debug, &o->dwarf);
	if (debug == 0)
		o->dwarf_state = SYMBOLS_DWARF_APART;
	else if (own != DWARF_NONE || debug != DWARF_NONE) /* too large, or no memory */
		o->dwarf_state = SYMBOLS_DWARF_LARGE;
}

static size_t lines_of_dump(struct symbols *s, uint32_t image, uint64_t offset,
			    struct dwarf_frame *ret, size_t max)
{
	const struct jitdump *dump = image_jitdump(s->images, image, NULL);
	struct dwarf_frame frame = {0};

	if (!dump || max == 0 || !jitdump_line(dump, offset, &frame.file, &frame.line))
		return 0;
	frame.function = jitdump_at(dump, offset)->name;
	ret[0] = frame;
	return 1;
}

size_t symbols_lines(struct symbols *s, uint32_t image, uint64_t offset, struct dwarf_frame *ret,
		     size_t max)
{
	struct opened *o;
	uint64_t address;

	if (image >= s->n || s->left_out)
		return 0;
	if (image_source(s->images, image)->dump)
		return lines_of_dump(s, image, offset, ret, max);
	o = &s->opened[image];
	if (o->dwarf_state == SYMBOLS_DWARF_UNASKED)
		open_dwarf(s, image, o);
	if (!o->dwarf || !elf_file_address(o->elf, offset, &address))
		return 0;
	return dwarf_file_find(o->dwarf, address, ret, max);
}

enum symbols_dwarf symbols_dwarf(const struct symbols *s, uint32_t image)
{
	return image < s->n ? s->opened[image].dwarf_state : SYMBOLS_DWARF_UNASKED;
}
