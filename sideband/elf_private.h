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

struct elf_file {
	const uint8_t *bytes;
	size_t size;
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

/* An x86 executable or shared object whose header tables lie within its SIZE bytes. */
bool elf_is_known_kind(const uint8_t *bytes, size_t size);
/* The file offset of ADDRESS; false: no segment brings it from the file. */
bool elf_offset_of(const struct elf_file *f, uint64_t address, uint64_t *ret);
/* 0 or -ENOMEM. Beyond the limit on symbols nothing is added. */
int elf_add_candidate(struct elf_file *f, const struct elf_symbol *symbol, unsigned rank);
/* PLT entries. 0 or -ENOMEM. */
int elf_add_plt(struct elf_file *f);
