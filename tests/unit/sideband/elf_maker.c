/*
 * Makes ELF files in this order: header, bytes of sections, names, section headers, program
 * headers.
 */
#include "tests/unit/sideband/elf_maker.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

void elf_maker_init(struct elf_maker *m, unsigned type)
{
	*m = (struct elf_maker){
		.header = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
				       EV_CURRENT},
			   .e_type = (Elf64_Half)type,
			   .e_machine = EM_X86_64,
			   .e_version = EV_CURRENT,
			   .e_ehsize = sizeof(Elf64_Ehdr),
			   .e_shentsize = sizeof(Elf64_Shdr),
			   .e_phentsize = sizeof(Elf64_Phdr)},
		.n = 1,
		.names_size = 1,
	};
}

static uint32_t add_name(struct elf_maker *m, const char *name)
{
	size_t at = m->names_size;

	assert(at + strlen(name) + 1 <= sizeof(m->names));
	strcpy(m->names + at, name);
	m->names_size += strlen(name) + 1;
	return (uint32_t)at;
}

size_t elf_maker_add(struct elf_maker *m, const char *name, uint32_t type, uint64_t flags,
		     uint64_t address, const void *data, size_t size)
{
	assert(m->n < ELF_MAKER_SECTIONS && m->size + size + 16 <= sizeof(m->bytes));
	m->sections[m->n] = (Elf64_Shdr){
		.sh_name = add_name(m, name),
		.sh_type = type,
		.sh_flags = flags,
		.sh_addr = address,
		.sh_offset = sizeof(Elf64_Ehdr) + m->size,
		.sh_size = size,
	};
	memcpy(m->bytes + m->size, data, size);
	m->size = (m->size + size + 15) & ~(size_t)15;
	return m->n++;
}

void elf_maker_map(struct elf_maker *m, size_t section)
{
	const Elf64_Shdr *s = &m->sections[section];

	assert(m->n_segments < 4);
	m->segments[m->n_segments++] = (Elf64_Phdr){
		.p_type = PT_LOAD,
		.p_offset = s->sh_offset,
		.p_vaddr = s->sh_addr,
		.p_filesz = s->sh_size,
		.p_memsz = s->sh_size,
	};
}

uint8_t *elf_maker_end(struct elf_maker *m, size_t *ret_size)
{
	size_t at = sizeof(m->header);
	uint8_t *file;

	m->header.e_shstrndx = (Elf64_Half)m->n;
	add_name(m, ".shstrtab");
	elf_maker_add(m, ".shstrtab", SHT_STRTAB, 0, 0, m->names, m->names_size);
	m->header.e_shnum = (Elf64_Half)m->n;
	m->header.e_shoff = at + m->size;
	m->header.e_phnum = (Elf64_Half)m->n_segments;
	m->header.e_phoff = m->header.e_shoff + m->n * sizeof(Elf64_Shdr);
	*ret_size = m->header.e_phoff + m->n_segments * sizeof(Elf64_Phdr);
	file = malloc(*ret_size);
	assert(file);
	memcpy(file, &m->header, sizeof(m->header));
	memcpy(file + at, m->bytes, m->size);
	memcpy(file + m->header.e_shoff, m->sections, m->n * sizeof(Elf64_Shdr));
	memcpy(file + m->header.e_phoff, m->segments, m->n_segments * sizeof(Elf64_Phdr));
	return file;
}
