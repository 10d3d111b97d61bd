/*
 * ELF files for tests, made section by section. For the tests of kernel files.
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
	Elf64_Shdr sections[ELF_MAKER_SECTIONS]; /* [0] is the empty one */
	size_t n;
	Elf64_Phdr segments[4];
	size_t n_segments;
	uint8_t bytes[ELF_MAKER_BYTES]; /* from behind the header on */
	size_t size;
	char names[1024];
	size_t names_size;
};

void elf_maker_init(struct elf_maker *m, unsigned type);
/* Its index. DATA is copied. */
size_t elf_maker_add(struct elf_maker *m, const char *name, uint32_t type, uint64_t flags,
		     uint64_t address, const void *data, size_t size);
/* A PT_LOAD of a section's bytes. */
void elf_maker_map(struct elf_maker *m, size_t section);
/* The file, malloc'ed. */
uint8_t *elf_maker_end(struct elf_maker *m, size_t *ret_size);
