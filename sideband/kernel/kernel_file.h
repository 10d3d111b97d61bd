/*
 * Kernel text from files, where it could not be read from memory: vmlinux (or the bzImage around
 * it) moved to where the kernel runs, and modules linked to it as the kernel's own loader does.
 *
 * Everything that a kernel patches, at boot or later, is masked: the decoder then has a gap instead
 * of wrong code. Whoever may write to /boot or /lib/modules may also load a module, but a bundle's
 * files are a stranger's: every length is checked.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* --- Symbols of the running kernel, for linking --- */

struct kernel_links;

/* TEXT, lines of /proc/kallsyms, is borrowed until kernel_links_free(); other lines are left out. 0
 * or -ENOMEM. */
int kernel_links_new(const char *text, size_t size, struct kernel_links **ret);
void kernel_links_free(struct kernel_links *n);

/* --- Files --- */

/* A file, wherever its bytes come from; it may have hundreds of megabytes of debug information
 * around the parts that are read. READ as pread(2). */
struct kernel_source {
	ssize_t (*read)(void *userdata, uint64_t offset, void *to, size_t size);
	void *userdata;
	uint64_t size;
};

struct kernel_file {
	struct kernel_source source;
	const char *module;	 /* NULL: the kernel itself */
	const uint8_t *build_id; /* of the running kernel or module; SIZE 0: unknown */
	size_t build_id_size;
	const struct kernel_links *links; /* of the running kernel */
	/* Lines "MODULE SECTION 0xADDRESS", for modules; "* kprobes 0x1": all probes are known and
	 * have a line "* kprobe 0xADDRESS" each. */
	const char *sections;
	size_t sections_size;
};

struct kernel_span {
	uint64_t begin, end;
};

struct kernel_file_text {
	uint8_t *bytes; /* owned */
	uint64_t address, size;
	/* Where the file may differ from memory: owned; in order, not touching each other, within
	 * the text. */
	struct kernel_span *masked;
	size_t n_masked, masked_capacity;
};

/* The text of FILE as it lies in memory; *ret needs kernel_file_text_done() after 0. 0; or: */
#define KERNEL_FILE_OTHER    1 /* the file has another build id */
#define KERNEL_FILE_UNPLACED 2 /* its address in memory is unknown */
/* or -EBADMSG: an unknown kind of file; -EPROTONOSUPPORT: compressed by an unknown method; -ENOMEM;
 * -errno of reading. */
int kernel_file_text(const struct kernel_file *file, struct kernel_file_text *ret);
void kernel_file_text_done(struct kernel_file_text *t);
