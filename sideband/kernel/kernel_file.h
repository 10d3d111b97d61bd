/*
 * Kernel text out of files, for where nobody could read it from memory: vmlinux (or the bzImage
 * around it) moved to where the running kernel lies, and modules linked to it as the kernel's own
 * loader does. Everything that a kernel patches at boot or later is masked: whoever comes to such a
 * place knows nothing, instead of something wrong.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "sideband/kernel/kernel_elf.h"
#include "sideband/kernel/kernel_links.h"

struct kernel_span {
	uint64_t begin, end;
};

struct kernel_file {
	struct kernel_source source;
	const char *module;	 /* NULL: the kernel itself */
	const uint8_t *build_id; /* of what runs; SIZE 0: unknown */
	size_t build_id_size;
	const struct kernel_links *links; /* of the running kernel */
	/* Lines "MODULE SECTION 0xADDRESS", for modules; "* kprobes 0x1": all probes are known, of
	 * each there is a line "* kprobe 0xADDRESS". */
	const char *sections;
	size_t sections_size;
};

struct kernel_file_text {
	uint8_t *bytes; /* owned */
	uint64_t address, size;
	/* Not to be believed: owned; in order, not touching each other, within the text. */
	struct kernel_span *masked;
	size_t n_masked, masked_capacity;
};

/* 0; or: */
#define KERNEL_FILE_OTHER    1 /* its build id is another */
#define KERNEL_FILE_UNPLACED 2 /* it is not known where in memory it lies */
/* or -EBADMSG: no file that we know; -EPROTONOSUPPORT: compressed by a method that we have not;
 * -ENOMEM; -errno of reading. */
int kernel_file_text(const struct kernel_file *file, struct kernel_file_text *ret);
void kernel_file_text_done(struct kernel_file_text *t);
