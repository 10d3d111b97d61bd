/*
 * Sections and segments of vmlinux or of a module's file, which may be hundreds of megabytes of
 * debug information around what is needed: read piece by piece instead of mapped.
 */
#pragma once

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* A file, wherever its bytes come from. READ as pread(2). */
struct kernel_source {
	ssize_t (*read)(void *userdata, uint64_t offset, void *to, size_t size);
	void *userdata;
	uint64_t size;
};

struct kernel_elf {
	const struct kernel_source *source;
	Elf64_Ehdr header;
	Elf64_Shdr *sections; /* owned */
	size_t n_sections;
	Elf64_Phdr *segments; /* owned */
	size_t n_segments;
	char *names; /* owned; the sections', NUL behind them */
	size_t names_size;
};

/* SOURCE is borrowed. 0, -EBADMSG: no ELF file for x86-64, or its tables do not lie within it;
 * -ENOMEM; -errno of reading. */
int kernel_elf_open(const struct kernel_source *source, struct kernel_elf *ret);
void kernel_elf_close(struct kernel_elf *e);
const char *kernel_elf_name(const struct kernel_elf *e, size_t section);
/* Its index, 0: there is none. */
size_t kernel_elf_section(const struct kernel_elf *e, const char *name);
/* SIZE bytes of the file, malloc'ed, a NUL behind them. 0, -EBADMSG (beyond the file, or more than
 * any section has), -ENOMEM, -errno. */
int kernel_elf_read(const struct kernel_elf *e, uint64_t offset, uint64_t size, uint8_t **ret);
/* The same, of a section; -ENODATA: it has no bytes in the file. */
int kernel_elf_read_section(const struct kernel_elf *e, size_t section, uint8_t **ret,
			    size_t *ret_size);
/* SIZE bytes from ADDRESS, by the segments (PT_LOAD) of a linked file. -ENODATA: none has them. */
int kernel_elf_read_address(const struct kernel_elf *e, uint64_t address, uint64_t size,
			    uint8_t **ret);
/* The build id in its notes; its size, 0: none. */
size_t kernel_elf_build_id(const struct kernel_elf *e, uint8_t ret[20]);
