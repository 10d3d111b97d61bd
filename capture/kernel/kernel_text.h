/*
 * The text of the running kernel: where it lies, and an exact copy of it out of /proc/kcore.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "capture/kernel/kcore.h"
#include "capture/kernel/kernel_modules.h"
#include "capture/kernel/kernel_symbols.h"

/* More text than any kernel has. */
#define KERNEL_TEXT_MAX_REGIONS 16384u
#define KERNEL_TEXT_MAX_BYTES	(512u << 20)

#define KERNEL_TEXT_KERNEL "kernel"

/* Text without a gap: of the kernel, of a module (its name), of BPF programs ("bpf"), trampolines
 * ("__builtin__ftrace"), ... */
struct kernel_region {
	char name[KERNEL_OWNER_SIZE];
	uint64_t address, size; /* bytes; whole pages, but where something else begins */
};

/* All of them, in order of address, none overlapping another; *ret is malloc'ed. As far as its
 * symbols tell there is nothing else of a module in them than its text. 0, -ENOMEM, -E2BIG. */
int kernel_text_regions(const struct kernel_symbols *symbols, const struct kernel_modules *modules,
			struct kernel_region **ret, size_t *ret_n);

struct kernel_copy {
	int fd;		  /* sealed memory file; the caller's */
	uint64_t read_ns; /* all bytes were these at that time, unless: */
	bool changing;	  /* somebody was patching all the while */
};

/* Reads R until two readings are the same: then they are what was there between them. NOW gives the
 * perf clock's time. 0, or as kcore_read(), or -errno of memory files. */
int kernel_text_copy(const struct kcore *k, const struct kernel_region *r,
		     uint64_t (*now)(void *userdata), void *userdata, struct kernel_copy *ret);
