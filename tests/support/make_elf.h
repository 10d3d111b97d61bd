/*
 * The headers of a small ELF program at a fixed address: one loaded segment that covers the whole
 * file, and the sections .text, .symtab, .strtab and .shstrtab (1 to 4).
 */
#pragma once

#include <elf.h>
#include <stdint.h>
#include <string.h>

/* Offsets and sizes in the file. */
struct make_elf {
	uint64_t base, entry, size;
	uint64_t text, text_size, symtab, n_symbols, strtab, strtab_size, shstr, shstr_size;
	uint64_t headers; /* section headers */
	uint16_t n_sections;
};

/* The section names; names of further sections follow at MAKE_ELF_NAMES. */
#define MAKE_ELF_SECTIONS "\0.text\0.symtab\0.strtab\0.shstrtab"
#define MAKE_ELF_NAMES	  33u

static inline void make_elf_section(uint8_t *file, const struct make_elf *e, unsigned i,
				    const Elf64_Shdr *section)
{
	memcpy(file + e->headers + i * sizeof(*section), section, sizeof(*section));
}

static inline void make_elf_begin(uint8_t *file, const struct make_elf *e)
{
	const Elf64_Ehdr header = {
		.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
			    EV_CURRENT},
		.e_type = ET_EXEC,
		.e_machine = EM_X86_64,
		.e_version = EV_CURRENT,
		.e_entry = e->entry,
		.e_phoff = sizeof(Elf64_Ehdr),
		.e_shoff = e->headers,
		.e_ehsize = sizeof(Elf64_Ehdr),
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = 1,
		.e_shentsize = sizeof(Elf64_Shdr),
		.e_shnum = e->n_sections,
		.e_shstrndx = 4,
	};
	const Elf64_Phdr load = {.p_type = PT_LOAD,
				 .p_flags = PF_R | PF_X,
				 .p_vaddr = e->base,
				 .p_paddr = e->base,
				 .p_filesz = e->size,
				 .p_memsz = e->size,
				 .p_align = 0x1000};

	memcpy(file, &header, sizeof(header));
	memcpy(file + sizeof(header), &load, sizeof(load));
}

static inline void make_elf_sections(uint8_t *file, const struct make_elf *e)
{
	make_elf_section(file, e, 1,
			 &(Elf64_Shdr){.sh_name = 1,
				       .sh_type = SHT_PROGBITS,
				       .sh_flags = SHF_ALLOC | SHF_EXECINSTR,
				       .sh_addr = e->base + e->text,
				       .sh_offset = e->text,
				       .sh_size = e->text_size,
				       .sh_addralign = 16});
	make_elf_section(file, e, 2,
			 &(Elf64_Shdr){.sh_name = 7,
				       .sh_type = SHT_SYMTAB,
				       .sh_offset = e->symtab,
				       .sh_size = e->n_symbols * sizeof(Elf64_Sym),
				       .sh_link = 3,
				       .sh_info = 1,
				       .sh_addralign = 8,
				       .sh_entsize = sizeof(Elf64_Sym)});
	make_elf_section(file, e, 3,
			 &(Elf64_Shdr){.sh_name = 15,
				       .sh_type = SHT_STRTAB,
				       .sh_offset = e->strtab,
				       .sh_size = e->strtab_size,
				       .sh_addralign = 1});
	make_elf_section(file, e, 4,
			 &(Elf64_Shdr){.sh_name = 23,
				       .sh_type = SHT_STRTAB,
				       .sh_offset = e->shstr,
				       .sh_size = e->shstr_size,
				       .sh_addralign = 1});
}
