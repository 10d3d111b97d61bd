/*
 * The kernel's code in files, for where its memory may not be read: vmlinux and modules. They are
 * opened here, and never looked into.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "capture/kernel/kernel_modules.h"
#include "proto/bytes.h"

#define KERNEL_FILE_BUILD_ID 20

struct kernel_file {
	char name[KERNEL_OWNER_SIZE]; /* "kernel", or the module's */
	int fd;			      /* the struct's; -1: there is none, or WHY */
	uint64_t size;
	const char *why;      /* static text; NULL */
	size_t build_id_size; /* of the running one; 0: unknown */
	uint8_t build_id[KERNEL_FILE_BUILD_ID];
};

struct kernel_files {
	struct kernel_file *items; /* owned; several for the kernel: only their build ids tell which
				    * is the right one */
	size_t n, capacity;
	/* Lines "MODULE SECTION 0xADDRESS"; also "* kprobes 0x1" where all probes are known, and
	 * "* kprobe 0xADDRESS" for each. */
	struct bytes_out sections;
};

struct kernel_places {
	const char *root;    /* before /boot, /lib/modules, /usr/lib/debug; "" */
	const char *sys;     /* "/sys" */
	const char *release; /* as uname(2) says */
};

/* What there is of the kernel and of MODULES. 0, -ENOMEM, -E2BIG. */
int kernel_files_open(const struct kernel_places *places, const struct kernel_modules *modules,
		      struct kernel_files *ret);
void kernel_files_done(struct kernel_files *f);
/* The GNU build id in the ELF notes of SIZE bytes at NOTES, as /sys/kernel/notes has them. Its
 * size, 0: none. */
size_t kernel_files_build_id(const uint8_t *notes, size_t size, uint8_t ret[KERNEL_FILE_BUILD_ID]);
