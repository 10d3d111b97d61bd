/*
 * Files with the kernel's code, for when its memory may not be read: vmlinux and modules. They are
 * opened and never looked into.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "capture/kernel/kernel_symbols.h"
#include "proto/bytes.h"

#define KERNEL_FILE_BUILD_ID 20

struct kernel_file {
	char name[KERNEL_OWNER_SIZE]; /* "kernel", or the module's */
	int fd;			      /* owned; -1: there is none, see WHY */
	uint64_t size;
	const char *why;      /* why there is no fd: static text, or NULL */
	size_t build_id_size; /* of the running kernel or module; 0: unknown */
	uint8_t build_id[KERNEL_FILE_BUILD_ID];
};

struct kernel_files {
	/* Owned. The kernel may have several: their build ids tell which one is running. */
	struct kernel_file *items;
	size_t n, capacity;
	/* Lines "MODULE SECTION 0xADDRESS"; "* kprobe 0xADDRESS" for each known probe; "* kprobes
	 * 0x1" if all probes are known. */
	struct bytes_out sections;
};

struct kernel_places {
	const char *root;    /* the path before /boot, /lib/modules, /usr/lib/debug: "" */
	const char *sys;     /* "/sys" */
	const char *release; /* as uname(2) tells it */
};

/* Opens the files of the kernel and of MODULES. 0, -ENOMEM, -E2BIG. */
int kernel_files_open(const struct kernel_places *places, const struct kernel_modules *modules,
		      struct kernel_files *ret);
void kernel_files_done(struct kernel_files *f);
/* The GNU build id in NOTES, SIZE bytes of ELF notes such as /sys/kernel/notes. Returns its size;
 * 0: none. */
size_t kernel_files_build_id(const uint8_t *notes, size_t size, uint8_t ret[KERNEL_FILE_BUILD_ID]);
