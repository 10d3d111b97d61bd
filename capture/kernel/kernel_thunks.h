/*
 * Pages of kernel code that no symbol tells of, looked for in memory.
 */
#pragma once

#include <stddef.h>

#include "capture/kernel/kernel_text.h"

/* The owner under which they are added. */
#define KERNEL_THUNKS_OWNER "thunks"

/* Looks between and a little around what SYMBOLS names outside of the kernel's image, but not in
 * the REGIONS, for pages that are filled up with INT3; adds them to SYMBOLS, which the caller
 * sorts. Returns how many pieces there are, or as kernel_symbols_add(). */
int kernel_thunks_find(const struct kcore *k, const struct kernel_region *regions, size_t n_regions,
		       struct kernel_symbols *symbols);
