/*
 * Images by time and address, and the names of their functions.
 *
 * The room answers two questions of the decoder: which bytes did a process have at an address at
 * some time (image.h), and which function, source line and inlined functions lie there (this
 * header). It joins the timeline's mappings with the images of a bundle, of perf.data, or of files
 * that the recorder sends when they are asked for.
 *
 * image.c        the set of images, code at an address, and images as ELF files
 * image_index.c  which image a mapping of the timeline shows
 * image_bytes.c  the bytes of an image, read in steps where they are not at hand
 * symbols.c      the function and the source lines at a file offset
 * image_jit.c    code of JIT compilers, by the dumps that they write
 * jitdump.c      what a JIT compiler wrote into jit-PID.dump; jitcode.c: the same by time
 * perfmap.c      the names that a JIT compiler wrote into /tmp/perf-PID.map
 * demangle.c     names of C++, Rust and D as the source has them
 *
 * struct image_set holds the sources and the state of their bytes; an image is named by its index
 * in that set. struct symbols holds what was opened of each image: ELF symbols, DWARF, perf maps.
 * It borrows the image_set, which must live longer.
 *
 * Decisions that govern the room:
 * - An image is found by device and inode, else by path. A build id alone never leads to an image:
 *   anybody can write any build id into a file. Build ids only exclude: an image found by path must
 *   have the mapping's build id if both are known, and an ELF file at hand whose build id is not
 *   that of its image is a mismatch and is not used.
 * - Nothing is read before it is needed, and all that was read of an image is remembered
 *   (image_set_needed()), so that a stored bundle keeps exactly what its decode needs.
 * - Every offset of an image belongs to exactly one function. A function of a stripped file has its
 *   bounds from the unwind table, but no name. A span that neither a symbol nor the unwind table
 *   covers is one function without a name, and its bounds are unknown.
 * - The file that holds an image's names and DWARF (its debug file) is only asked for by the build
 *   id that the image has, and is only used if it has that same build id.
 * - Files, perf maps and names come from strangers. All of them are parsed in the sandboxed worker
 *   only, within limits; a limit leaves something out and is never an error. One thread at a time
 *   uses a set and its symbols.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sideband/symbols/image.h"

struct symbols;

/* IMAGES is borrowed. 0 or -ENOMEM. */
int symbols_new(struct image_set *images, struct symbols **ret);
void symbols_free(struct symbols *s);

/* --- Settings, before the first question --- */

/* Reads no symbol tables and no perf maps. Each image is then one function without a name; only the
 * kernel's own list of symbols (sideband/kernel) still gives names. */
void symbols_leave_out(struct symbols *s);
/* Asks for the debug file of each image, once (image_open_debug()). */
void symbols_use_debug_files(struct symbols *s);
/* Adds the names of DUMP, which process PID wrote, and is borrowed as long as S: a process's perf
 * map comes first. 0 or -ENOMEM. */
int symbols_add_dump(struct symbols *s, uint32_t pid, const struct jitdump *dump);
/* Adds the perf map of process PID: TEXT is borrowed as long as S, and read on first use. A second
 * map of the same process is ignored. 0 or -ENOMEM. */
int symbols_add_map(struct symbols *s, uint32_t pid, const void *text, size_t size);

/* --- Functions --- */

struct symbol {
	uint32_t image;
	uint64_t offset;  /* start of the function in the file */
	uint64_t size;	  /* bytes up to its end */
	uint64_t address; /* of its start in the file's own addresses (nm); 0: no ELF file */
	const char *name; /* borrowed; NULL: no symbol with a name covers the place */
	/* Nothing tells where the function begins and ends: it is the span between its
	 * neighbours, and may be several functions. */
	bool unbounded;
	/* The part of the function around the asked offset that holds no other symbol: every offset
	 * within [begin, end) belongs to this function. If the file has no code at the asked
	 * offset: only that offset. Both 0: the whole function. */
	uint64_t begin, end;
};
/* The function around file offset OFFSET of IMAGE. Always fills *ret; if nothing is known, offset
 * is OFFSET and name is NULL. */
void symbols_find(struct symbols *s, uint32_t image, uint64_t offset, struct symbol *ret);
/* The build id of IMAGE, borrowed; *ret_size 0: none. */
const uint8_t *symbols_build_id(struct symbols *s, uint32_t image, size_t *ret_size);

/* --- Source lines --- */

/* The source lines and inlined functions at OFFSET of IMAGE, as dwarf_file_find() gives them.
 * Returns the number of frames, at most MAX. DWARF is read on first use, from the image's own file,
 * else from its debug file; of a dump, as the compiler told. Other code in memory, and the
 * kernel's, has no lines. */
struct dwarf_frame;
size_t symbols_lines(struct symbols *s, uint32_t image, uint64_t offset, struct dwarf_frame *ret,
		     size_t max);
/* The most bytes of files that are read for DWARF, of all images together. */
#define SYMBOLS_MAX_DWARF (UINT64_C(256) << 20)
/* ENOUGH is called now and then during symbols_lines(), which ends with what it has when ENOUGH
 * returns true. NULL: no limit. */
void symbols_limit_lines(struct symbols *s, bool (*enough)(void *userdata), void *userdata);
/* Where the DWARF of an image is. */
enum symbols_dwarf {
	SYMBOLS_DWARF_UNASKED, /* symbols_lines() was not called for the image */
	SYMBOLS_DWARF_NONE,
	SYMBOLS_DWARF_OWN,   /* in the mapped file */
	SYMBOLS_DWARF_APART, /* in the debug file */
	/* Left out: larger than DWARF_MAX_BYTES, SYMBOLS_MAX_DWARF or the image set's limits. */
	SYMBOLS_DWARF_LARGE,
};
enum symbols_dwarf symbols_dwarf(const struct symbols *s, uint32_t image);

/* --- Perf maps: the names that a JIT compiler gives to its code --- */

/* One map: the text of /tmp/perf-PID.map, in the format that perf reads
 * (tools/perf/Documentation/jit-interface.txt). */
struct perfmap;

#define PERFMAP_MAX	 (1u << 19) /* functions; of a longer map the last ones count */
#define PERFMAP_NAME_MAX 1023u	    /* bytes; longer names are cut */

/* TEXT (borrowed as long as the map): lines "START SIZE NAME", numbers hexadecimal; other lines are
 * skipped. A compiler appends lines and reuses memory: where functions overlap the later line
 * counts. 0 or -ENOMEM. */
int perfmap_new(const void *text, size_t size, struct perfmap **ret);
void perfmap_free(struct perfmap *m);

/* A map of functions that somebody else has read: FN gives number I of N, the newest first, and the
 * bytes of its name. What it gives is borrowed as long as the map. 0 or -ENOMEM. */
int perfmap_new_of(size_t n,
		   const char *(*fn)(void *userdata, size_t i, uint64_t *ret_begin,
				     uint64_t *ret_size),
		   void *userdata, struct perfmap **ret);

struct perfmap_function {
	uint64_t start, size; /* the bytes around the asked address that no later line covers */
	const char *name;     /* borrowed; NULL: no function, but the gap between two */
};
/* The function at ADDRESS. Always fills *ret. */
void perfmap_find(struct perfmap *m, uint64_t address, struct perfmap_function *ret);
/* The number of functions in the map. */
size_t perfmap_count(const struct perfmap *m);

/* Whether process PID has a perf map, or a dump, of which the newest name of a place counts. */
bool symbols_has_map(const struct symbols *s, uint32_t pid);
/* The function that the perf map of process PID has at ADDRESS. Returns false, and leaves *ret
 * alone, if there is no map. */
bool symbols_find_in_map(struct symbols *s, uint32_t pid, uint64_t address,
			 struct perfmap_function *ret);

/* --- Mangled names --- */

#define DEMANGLE_MAX_NAME 1024u /* bytes; longer names stay as they are */
#define DEMANGLE_MAX_TEXT 4096u /* bytes; names that would become longer stay as they are */

/* The source's name for NAME (C++, Rust or D; a "@version" or "@plt" at its end stays), the
 * caller's to free. NULL: NAME is not mangled, over a limit, or there is no memory. */
char *demangle(const char *name);
