/*
 * The running kernel's text, symbols and modules, as the recorder can read them.
 *
 * A snapshot of a trace of the kernel needs the kernel's code. This room reads the symbols
 * (/proc/kallsyms) and modules (/proc/modules), works out where text lies, and copies the text from
 * memory (/proc/kcore). If memory may not be read, it opens vmlinux and the modules' files for the
 * decoder instead.
 *
 * kcore.c           the kernel's memory by address
 * kernel_symbols.c  functions with their addresses, and modules
 * kernel_text.c     where text lies, and an exact copy of it
 * kernel_files.c    files that the text can be made from
 *
 * The caller owns everything that a function returns. The room keeps nothing between two calls, so
 * several jobs may call it at once.
 *
 * Decisions that govern the room:
 * - A copy is exact at a known time: it is read until two readings are equal. From that time the
 *   decoder goes back and forth by the records of changes (TEXT_POKE).
 * - Symbols have no sizes, so a region of text may have too many bytes, which does no harm, but
 *   holds nothing of a module but its text as far as symbols tell.
 * - The room opens files and never looks into them. Build ids alone tell which file was loaded; the
 *   decoder compares them.
 * - The kernel is trusted; lengths are checked nevertheless, as a test's files may hold anything.
 *   Each text, list and copy has a limit.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "capture/kernel/kcore.h"
#include "capture/kernel/kernel_symbols.h"

/* --- Where text lies --- */

/* No kernel has more text. */
#define KERNEL_TEXT_MAX_REGIONS 16384u
#define KERNEL_TEXT_MAX_BYTES	(512u << 20)

#define KERNEL_TEXT_KERNEL "kernel"

/* Text without a gap: of the kernel, of a module (its name), of BPF programs ("bpf"), trampolines
 * ("__builtin__ftrace"), ... */
struct kernel_region {
	char name[KERNEL_OWNER_SIZE];
	uint64_t address, size; /* bytes; whole pages, except where something else begins */
};

/* All regions, in order of address, without overlaps; *ret is malloc()ed. 0, -ENOMEM, -E2BIG. */
int kernel_text_regions(const struct kernel_symbols *symbols, const struct kernel_modules *modules,
			struct kernel_region **ret, size_t *ret_n);

/* The owner that kernel_thunks_find() adds. */
#define KERNEL_THUNKS_OWNER "thunks"

/* Searches memory for pages of code without symbols, which are filled up with INT3: between and a
 * little around what SYMBOLS names outside of the kernel's image, but not in the REGIONS. Adds them
 * to SYMBOLS, which the caller sorts. Returns the number of pieces, or as kernel_symbols_add(). */
int kernel_thunks_find(const struct kcore *k, const struct kernel_region *regions, size_t n_regions,
		       struct kernel_symbols *symbols);

/* --- A copy of it --- */

struct kernel_copy {
	int fd;		  /* sealed memory file; the caller's */
	uint64_t read_ns; /* a time at which memory had exactly these bytes, unless CHANGING */
	bool changing;	  /* the text changed between all readings */
};

/* Reads R until two readings are equal: then memory had those bytes between the two. NOW gives the
 * perf clock's time. 0; or as kcore_read(), or -errno of memory files. */
int kernel_text_copy(const struct kcore *k, const struct kernel_region *r,
		     uint64_t (*now)(void *userdata), void *userdata, struct kernel_copy *ret);
