/*
 * Declares what the kernel_file*.c share: reading files, symbols for linking, masks, and the tables
 * of sites that a kernel patches.
 */
#pragma once

#include <elf.h>
#include <stdbool.h>
#include <string.h>

#include "sideband/kernel/kernel_file.h"

/* --- Lists of symbols --- */

/* Reads hexadecimal digits, at most 16, and moves *AT behind them. False: there are none. */
static inline bool kernel_take_address(const char **at, const char *end, uint64_t *ret)
{
	static const char digits[] = "0123456789abcdef";
	const char *begin = *at, *digit;

	for (*ret = 0; *at < end && *at - begin < 16; ++*at) {
		digit = memchr(digits, **at, 16);
		if (!digit)
			break;
		*ret = *ret << 4 | (uint64_t)(digit - digits);
	}
	return *at > begin;
}

/* --- kernel_file_read.c --- */

/* The tables of an ELF file. */
struct kernel_elf {
	const struct kernel_source *source;
	Elf64_Ehdr header;
	Elf64_Shdr *sections; /* owned */
	size_t n_sections;
	Elf64_Phdr *segments; /* owned */
	size_t n_segments;
	char *names; /* owned; the sections' names, NUL behind them */
	size_t names_size;
};

/* SOURCE is borrowed. 0; -EBADMSG: no ELF file for x86-64, or its tables do not lie within it;
 * -ENOMEM; -errno of reading. */
int kernel_elf_open(const struct kernel_source *source, struct kernel_elf *ret);
void kernel_elf_close(struct kernel_elf *e);
const char *kernel_elf_name(const struct kernel_elf *e, size_t section);
/* The index of section NAME; 0: there is none. */
size_t kernel_elf_section(const struct kernel_elf *e, const char *name);
/* SIZE bytes of the file, malloc()ed, a NUL behind them. 0; -EBADMSG: beyond the file, or more than
 * any section has; -ENOMEM; -errno of reading. */
int kernel_elf_read(const struct kernel_elf *e, uint64_t offset, uint64_t size, uint8_t **ret);
/* The same for a section; also -ENODATA: it has no bytes in the file. */
int kernel_elf_read_section(const struct kernel_elf *e, size_t section, uint8_t **ret,
			    size_t *ret_size);
/* The same for SIZE bytes from ADDRESS on, by the segments (PT_LOAD) of a linked file; also
 * -ENODATA: no segment has them. */
int kernel_elf_read_address(const struct kernel_elf *e, uint64_t address, uint64_t size,
			    uint8_t **ret);
/* The build id in its notes. Returns its size; 0: none. */
size_t kernel_elf_build_id(const struct kernel_elf *e, uint8_t ret[20]);

/* The ELF file in the bzImage SOURCE, malloc()ed. 0; -EBADMSG: no bzImage; -EPROTONOSUPPORT:
 * compressed by an unknown method; -ENOMEM; -errno of reading. */
int kernel_file_unpack(const struct kernel_source *source, uint8_t **ret, size_t *ret_size);

/* --- kernel_file.c --- */

struct kernel_link {
	const char *name, *owner; /* not terminated; OWNER_SIZE 0: the kernel's own image */
	uint32_t name_size, owner_size;
	uint64_t address;
	char type; /* nm's letter */
};

/* The address of NAME in the kernel's own image; 0: none, or several. */
uint64_t kernel_links_own(const struct kernel_links *n, const char *name);
/* The address that a module means by NAME, which it does not define; 0: none, or several. */
uint64_t kernel_links_global(const struct kernel_links *n, const char *name);
/* All symbols, in order of name. */
const struct kernel_link *kernel_links_all(const struct kernel_links *n, size_t *ret_n);

/* Masks SIZE bytes at ADDRESS, as far as they lie in the text. 0 or -ENOMEM. */
int kernel_file_mask(struct kernel_file_text *t, uint64_t address, uint64_t size);

/* --- kernel_file_module.c --- */

/* The text of a module, as kernel_file_text(). */
int kernel_file_link_module(const struct kernel_file *file, const struct kernel_elf *e,
			    struct kernel_file_text *ret);

/* --- kernel_file_sites.c --- */

/* A table of sites that a kernel patches. */
struct kernel_site_table {
	const char *section;	 /* in a module */
	const char *begin, *end; /* symbols around the table in a linked kernel */
	size_t entry;		 /* bytes; 0: one of kernel_alternative_sizes[] */
	bool absolute;		 /* an entry begins with an address, else with a distance to it */
	/* The bytes that are patched where ENTRY says: CODE, of which there are LEFT. NULL: ENTRY
	 * says the size, as one of .altinstructions. */
	size_t (*size)(const uint8_t *entry, const uint8_t *code, size_t left);
};
extern const struct kernel_site_table kernel_site_tables[];
extern const size_t kernel_site_tables_n;
#define KERNEL_SITE_TABLE_NEEDED ".altinstructions" /* every kernel has this table */
/* Sizes of an entry of .altinstructions that kernels have had, newest first; 0 ends the list. */
extern const size_t kernel_alternative_sizes[];

/* Masks SITE, which ENTRY (of ENTRY_SIZE bytes) means. 0 or -ENOMEM. */
int kernel_file_mask_site(struct kernel_file_text *t, const struct kernel_site_table *sites,
			  const uint8_t *entry, size_t entry_size, uint64_t site);
/* Whether ENTRY, of .altinstructions, can be one of ENTRY_SIZE bytes. */
bool kernel_file_is_alternative(const uint8_t *entry, size_t entry_size);
/* Masks what is patched but in no table: trampolines, known by their names. 0 or -ENOMEM. */
int kernel_file_mask_names(struct kernel_file_text *t, const struct kernel_links *links);
/* Masks where probes are; all of the text if there are probes at unknown places. 0 or -ENOMEM. */
int kernel_file_mask_probes(struct kernel_file_text *t, const struct kernel_file *file);
/* The address in the next line of FILE's sections, from *AT on, that is of MODULE and SECTION;
 * moves *AT behind the line. False: there is none. */
bool kernel_file_section(const struct kernel_file *file, const char *module, const char *section,
			 size_t *at, uint64_t *ret);
