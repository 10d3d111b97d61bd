/*
 * /proc/modules: which modules there are, and where.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "proto/bytes.h"

#define KERNEL_MODULES_MAX_TEXT (4u << 20)
#define KERNEL_OWNER_SIZE	64 /* a module's name and its NUL: MODULE_NAME_LEN is 56 */

/* One line (kernel/module/procfs.c, m_show). */
struct kernel_module {
	char name[KERNEL_OWNER_SIZE];
	uint64_t size;	  /* bytes, of text and data */
	uint64_t address; /* 0: hidden */
};

struct kernel_modules {
	struct bytes_out text;	     /* the file */
	struct kernel_module *items; /* owned */
	size_t n, capacity;
};

/* PATH is "/proc/modules". 0, -ENOMEM, -E2BIG, -errno (-ENOENT: a kernel without modules, and *RET
 * is empty). */
int kernel_modules_read(const char *path, struct kernel_modules *ret);
void kernel_modules_done(struct kernel_modules *m);
/* The module of M that is the same as X and at the same place; NULL: it is gone. */
const struct kernel_module *kernel_modules_find(const struct kernel_modules *m,
						const struct kernel_module *x);
