/*
 * The inside of struct elf_file: what was read of the file, and the symbols on their way.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <gelf.h>

#include "sideband/elf/elf.h"

struct elf_span {
	uint64_t begin, end; /* in the file */
	uint64_t address;    /* where BEGIN is mapped */
};

struct elf_spans {
	struct elf_span *items;
	size_t n, capacity;
};

/* Behind the ranks of all named symbols. */
#define ELF_RANK_UNNAMED 6u

struct elf_candidate {
	struct elf_symbol symbol;
	unsigned rank; /* the lowest at an offset wins */
};

/* A table of strings up to the end of its last complete string. */
struct elf_strings {
	const char *text; /* within the file's bytes */
	size_t size;
};

#define ELF_MAX_BROUGHT 128u

struct elf_file {
	const uint8_t *bytes;
	size_t size;
	bool (*need)(void *userdata, uint64_t offset, uint64_t size); /* as in elf_bytes */
	void *userdata;
	struct elf_span brought[ELF_MAX_BROUGHT]; /* requests of need() that succeeded */
	size_t n_brought;
	uint64_t bytes_brought;
	struct elf_strings section_names; /* set by elf_bring_section_names() */
	Elf *elf;
	struct elf_spans segments; /* PT_LOAD */
	struct elf_spans code;	   /* sections with instructions, or segments; by begin */
	struct elf_candidate *candidates;
	size_t n_candidates, candidates_capacity;
	struct elf_symbol *symbols;
	uint8_t *ranks; /* of each symbol, as in elf_candidate */
	size_t n_symbols;
	char **plt_names; /* each owned */
	size_t n_plt_names, plt_names_capacity, plt_names_bytes;
	const uint8_t *build_id;
	size_t build_id_size;
	struct elf_file *debug; /* the debug file apart, owned; NULL: none */
	struct elf_file *mini;	/* the file packed in .gnu_debugdata, owned; NULL: none */
	uint8_t *mini_bytes;	/* unpacked, owned */
	uint64_t mini_room;	/* bytes that it takes of ROOM */
	uint64_t *room;		/* as in elf_bytes */
};

/* --- Bytes: elf_bytes.c --- */

/* True: F is an executable or shared object for x86 whose header tables lie within the file and
 * have been brought. */
bool elf_is_known_kind(struct elf_file *f);
/* Brings SIZE bytes at OFFSET, or those of a section. False: they cannot be had. */
bool elf_bring(struct elf_file *f, uint64_t offset, uint64_t size);
bool elf_bring_section(struct elf_file *f, const GElf_Shdr *h);
/* Brings the strings of section number SECTION. False: there are none. */
bool elf_bring_strings(struct elf_file *f, size_t section, struct elf_strings *ret);
bool elf_bring_section_names(struct elf_file *f);
/* The string at AT; NULL: there is none, or it is too long for a name. */
const char *elf_string(const struct elf_strings *s, uint64_t at);
/* The name of a section, after elf_bring_section_names(). "": it has none. */
const char *elf_section_name(const struct elf_file *f, const GElf_Shdr *h);

/* --- Addresses: elf.c --- */

/* The file offset of ADDRESS; false: no segment loads it from the file. */
bool elf_offset_of(const struct elf_file *f, uint64_t address, uint64_t *ret);

/* --- Symbols: elf_symbols.c, elf_plt.c, elf_unwind.c. Functions return 0 or -ENOMEM --- */

/* Adds nothing beyond the limit on symbols. */
int elf_add_candidate(struct elf_file *f, const struct elf_symbol *symbol, unsigned rank);
/* Adds the function symbols of FROM, which may be F, and whose addresses are those of F. */
int elf_add_tables(struct elf_file *f, struct elf_file *from);
/* Adds the symbols of .gnu_debugdata. */
int elf_add_mini(struct elf_file *f);
void elf_drop_mini(struct elf_file *f);
/* Names PLT entries. */
int elf_add_plt(struct elf_file *f);
/* Adds a symbol without a name for each entry of the unwind table. */
int elf_add_unwind(struct elf_file *f);
/* Makes the symbols of the candidates. */
int elf_choose_symbols(struct elf_file *f);
