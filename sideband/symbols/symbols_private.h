/*
 * What symbols.c and symbols_lines.c share: what is open of each image.
 */
#pragma once

#include "sideband/dwarf/dwarf.h"
#include "sideband/symbols/symbols.h"

struct symbols_image {
	bool tried;
	struct elf_file *elf; /* NULL: no ELF file, not at hand, or no memory */
	bool has_apart;
	uint32_t apart; /* the number of its file apart (image_open_debug()) */
	enum symbols_dwarf dwarf_state;
	struct dwarf_file *dwarf; /* where the state is OWN or APART */
};

/* The names of code in a process' memory. */
struct symbols_map {
	uint32_t pid;
	const void *text; /* borrowed */
	size_t size;
	bool tried;
	struct perfmap *map; /* NULL: not read, or no memory */
};

struct symbols {
	struct image_set *images;
	struct symbols_image *opened; /* by image */
	size_t n;
	struct symbols_map *maps; /* in order of pid */
	size_t n_maps, maps_capacity;
	bool left_out;	/* nothing is read */
	bool use_apart; /* files apart are asked for */
	struct dwarf_limits limits;
};

/* IMAGE with its symbols; NULL: there are none. */
struct symbols_image *symbols_open_image(struct symbols *s, uint32_t image);
void symbols_lines_done(struct symbols_image *o);
