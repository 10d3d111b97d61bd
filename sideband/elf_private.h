/*
 * What elf.c, elf_header.c and elf_plt.c share: the collected symbols and the way from addresses to
 * the file.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <gelf.h>

#include "sideband/elf.h"

struct elf_span {
	uint64_t begin, end; /* in the file */
	uint64_t address;    /* where begin is mapped */
};

struct elf_spans {
	struct elf_span *items; /* in order of begin after elf_spans_sort() */
	size_t n, capacity;
};

struct elf_candidate {
	struct elf_symbol symbol;
	unsigned rank; /* less is better */
};

#define ELF_MAX_HAD 128u

struct elf_file {
	const uint8_t *bytes;
	size_t size;
	bool (*need)(void *userdata, uint64_t offset, uint64_t size); /* as in elf_bytes */
	void *userdata;
	struct elf_span had[ELF_MAX_HAD]; /* what was asked for, and came */
	size_t n_had;
	uint64_t needed; /* bytes of them */
	Elf *elf;
	struct elf_spans segments; /* PT_LOAD */
	struct elf_spans code;	   /* sections with instructions, or segments */
	struct elf_candidate *candidates;
	size_t n_candidates, candidates_capacity;
	struct elf_symbol *symbols;
	size_t n_symbols;
	char **plt_names; /* owned, each */
	size_t n_plt_names, plt_names_capacity, plt_names_bytes;
	const uint8_t *build_id;
	size_t build_id_size;
};

/* An x86 executable or shared object whose header tables lie within it, and are there now. */
bool elf_is_known_kind(struct elf_file *f);
/* SIZE bytes at OFFSET are there now; so for those of a section. */
bool elf_have(struct elf_file *f, uint64_t offset, uint64_t size);
bool elf_have_section(struct elf_file *f, const GElf_Shdr *h);
bool elf_have_section_number(struct elf_file *f, size_t index);
/* The file offset of ADDRESS; false: no segment brings it from the file. */
bool elf_offset_of(const struct elf_file *f, uint64_t address, uint64_t *ret);
/* 0 or -ENOMEM. Beyond the limit on symbols nothing is added. */
int elf_add_candidate(struct elf_file *f, const struct elf_symbol *symbol, unsigned rank);
/* PLT entries. 0 or -ENOMEM. */
int elf_add_plt(struct elf_file *f);
