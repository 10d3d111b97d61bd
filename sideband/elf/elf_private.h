/*
 * What elf.c, elf_header.c, elf_strings.c, elf_symbols.c, elf_mini.c and elf_plt.c share: the
 * collected symbols and the way from addresses to the file.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <gelf.h>

#include "sideband/elf/elf.h"

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

/* A table of strings, up to the end of the last one. */
struct elf_strings {
	const char *text; /* of the file's bytes */
	size_t size;
};

#define ELF_MAX_HAD 128u

struct elf_file {
	const uint8_t *bytes;
	size_t size;
	bool (*need)(void *userdata, uint64_t offset, uint64_t size); /* as in elf_bytes */
	void *userdata;
	struct elf_span had[ELF_MAX_HAD]; /* what was asked for, and came */
	size_t n_had;
	uint64_t needed;		  /* bytes of them */
	struct elf_strings section_names; /* after elf_have_section_names() */
	Elf *elf;
	struct elf_spans segments; /* PT_LOAD */
	struct elf_spans code;	   /* sections with instructions, or segments */
	struct elf_candidate *candidates;
	size_t n_candidates, candidates_capacity;
	struct elf_symbol *symbols;
	uint8_t *ranks; /* of each of them, as in elf_candidate */
	size_t n_symbols;
	char **plt_names; /* owned, each */
	size_t n_plt_names, plt_names_capacity, plt_names_bytes;
	const uint8_t *build_id;
	size_t build_id_size;
	struct elf_file *debug;	 /* the one apart; NULL: none */
	struct elf_file *mini;	 /* the one packed within; NULL: none */
	uint8_t *mini_bytes;	 /* unpacked, owned */
	uint64_t *room;		 /* as in elf_bytes */
	uint64_t mini_bytes_had; /* taken from ROOM */
};

/* An x86 executable or shared object whose header tables lie within it, and are there now. */
bool elf_is_known_kind(struct elf_file *f);
/* SIZE bytes at OFFSET are there now; so for those of a section. */
bool elf_have(struct elf_file *f, uint64_t offset, uint64_t size);
bool elf_have_section(struct elf_file *f, const GElf_Shdr *h);
/* The file offset of ADDRESS; false: no segment brings it from the file. */
bool elf_offset_of(const struct elf_file *f, uint64_t address, uint64_t *ret);
/* 0 or -ENOMEM. Beyond the limit on symbols nothing is added. */
int elf_add_candidate(struct elf_file *f, const struct elf_symbol *symbol, unsigned rank);
/* The function symbols of FROM, which may be F, whose addresses are those of F. 0 or -ENOMEM. */
int elf_add_tables(struct elf_file *f, struct elf_file *from);
/* Those of .gnu_debugdata. 0 or -ENOMEM. */
int elf_add_mini(struct elf_file *f);
void elf_drop_mini(struct elf_file *f);
/* The candidates become symbols. 0 or -ENOMEM. */
int elf_choose_symbols(struct elf_file *f);
/* The strings of section number SECTION are there now; false: there are none. */
bool elf_strings_of(struct elf_file *f, size_t section, struct elf_strings *ret);
/* The one at AT; NULL: there is none, or it is too long for a name. */
const char *elf_string(const struct elf_strings *s, uint64_t at);
bool elf_have_section_names(struct elf_file *f);
/* After that was true. "": it has none. */
const char *elf_section_name(const struct elf_file *f, const GElf_Shdr *h);
/* PLT entries. 0 or -ENOMEM. */
int elf_add_plt(struct elf_file *f);
