/*
 * Makes ELF files for tests, section by section.
 */
#pragma once

#include <elf.h>
#include <stddef.h>
#include <stdint.h>

#define ELF_MAKER_SECTIONS 32u
#ifndef ELF_MAKER_BYTES
#define ELF_MAKER_BYTES (64u << 10)
#endif

struct elf_maker {
	Elf64_Ehdr header;
	Elf64_Shdr sections[ELF_MAKER_SECTIONS]; /* number 0 is empty */
	size_t n;
	Elf64_Phdr segments[4];
	size_t n_segments;
	uint8_t bytes[ELF_MAKER_BYTES]; /* of the file behind its header */
	size_t size;
	char names[1024];
	size_t names_size;
};

void elf_maker_init(struct elf_maker *m, unsigned type);
/* Adds a section with a copy of DATA and returns its index. */
size_t elf_maker_add(struct elf_maker *m, const char *name, uint32_t type, uint64_t flags,
		     uint64_t address, const void *data, size_t size);
/* Adds a PT_LOAD segment for the bytes of SECTION. */
void elf_maker_map(struct elf_maker *m, size_t section);
/* The file, the caller's to free. */
uint8_t *elf_maker_end(struct elf_maker *m, size_t *ret_size);
