/*
 * (image, offset) -> function. ELF files are opened on first use; code in a process' memory has the
 * names of its perf map.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sideband/symbols/image.h"
#include "sideband/symbols/perfmap.h"

struct symbols;

int symbols_new(struct image_set *images, struct symbols **ret);
void symbols_free(struct symbols *s);
/* TEXT (borrowed, a stranger's) has the names of code in the memory of process PID (perfmap.h);
 * read on first use. A later one for the same process is ignored. 0 or -ENOMEM. */
int symbols_add_map(struct symbols *s, uint32_t pid, const void *text, size_t size);
/* Before anything was asked for: of no file a symbol table is read, and of no map a line. Nothing
 * has a name then but what the kernel's own list names, and each image is one function. */
void symbols_leave_out(struct symbols *s);

/* Before anything was asked for: files apart with names and DWARF are asked for
 * (image_open_debug()), for each image once. */
void symbols_use_debug_files(struct symbols *s);

struct symbol {
	uint32_t image;
	uint64_t offset;  /* start of the function in the file */
	uint64_t size;	  /* bytes up to its end */
	const char *name; /* borrowed; NULL: the image has no symbol there, the function is then the
			     gap between its neighbours */
	/* What of it lies around OFFSET without a symbol within it: every offset there is of this
	 * function. Where the file has no code only OFFSET itself. Both 0: all of it. */
	uint64_t begin, end;
};
/* The function around file offset OFFSET of IMAGE. Always fills *ret: where nothing is known,
 * offset is OFFSET and name NULL. */
void symbols_find(struct symbols *s, uint32_t image, uint64_t offset, struct symbol *ret);
/* Whether there is a perf map of process PID. */
bool symbols_has_map(const struct symbols *s, uint32_t pid);
/* What the perf map of process PID has at ADDRESS, in code of whatever kind (perfmap.h). False:
 * there is no map of it, *RET is untouched. */
bool symbols_find_in_map(struct symbols *s, uint32_t pid, uint64_t address,
			 struct perfmap_function *ret);
/* Build id of an image; *ret_size 0: none. */
const uint8_t *symbols_build_id(struct symbols *s, uint32_t image, size_t *ret_size);

/* Source lines and inlined functions at OFFSET of IMAGE, as dwarf_file_find() has them; DWARF is
 * read on first use: that of the image's own file, else of its file apart. Code in memory and in
 * the kernel has none. The number of frames, at most MAX. */
struct dwarf_frame;
size_t symbols_lines(struct symbols *s, uint32_t image, uint64_t offset, struct dwarf_frame *ret,
		     size_t max);
/* Of all images together so many bytes of files are brought for DWARF: what was needed is kept. */
#define SYMBOLS_MAX_DWARF (UINT64_C(256) << 20)
/* ENOUGH is asked now and then while symbols_lines() looks: true: it ends, with what it has. NULL:
 * nobody is. */
void symbols_limit_lines(struct symbols *s, bool (*enough)(void *userdata), void *userdata);
/* How it is about the DWARF of IMAGE. */
enum symbols_dwarf {
	SYMBOLS_DWARF_UNASKED, /* nobody called symbols_lines() for it */
	SYMBOLS_DWARF_NONE,
	SYMBOLS_DWARF_OWN,   /* in the file that was mapped */
	SYMBOLS_DWARF_APART, /* in another of the same build id */
	/* There is too much of it (DWARF_MAX_BYTES, SYMBOLS_MAX_DWARF, the set's limits). */
	SYMBOLS_DWARF_LARGE,
};
enum symbols_dwarf symbols_dwarf(const struct symbols *s, uint32_t image);
