/*
 * What kernel_file.c (a linked kernel), kernel_file_module.c (a module) and kernel_file_sites.c
 * (the tables of patched places) share.
 */
#pragma once

#include <stdbool.h>

#include "sideband/kernel/kernel_file.h"

/* SIZE bytes at ADDRESS are not to be believed; what lies outside of the text is cut. 0 or -ENOMEM.
 */
int kernel_file_mask(struct kernel_file_text *t, uint64_t address, uint64_t size);
/* Of a table of places: how an entry names one, and how long the instruction is. */
struct kernel_sites {
	const char *section;	 /* in a module */
	const char *begin, *end; /* around the table in a linked kernel */
	size_t entry;  /* bytes; 0: KERNEL_SITES_ALTERNATIVES, of which there are several */
	bool absolute; /* the entry begins with an address; else with a distance to itself */
	size_t (*size)(const uint8_t *entry, const uint8_t *code, size_t left);
};
extern const struct kernel_sites kernel_sites[];
extern const size_t kernel_sites_n;
#define KERNEL_SITES_NEEDED ".altinstructions" /* every kernel has some */
/* Sizes of an entry of .altinstructions that kernels have had, newest first; 0 ends them. */
extern const size_t kernel_sites_alternatives[];

/* The place of ENTRY (of ENTRY_SIZE bytes) at SITE. 0 or -ENOMEM. */
int kernel_file_mask_site(struct kernel_file_text *t, const struct kernel_sites *sites,
			  const uint8_t *entry, size_t entry_size, uint64_t site);
/* Could ENTRY, of .altinstructions, be one of ENTRY_SIZE bytes? */
bool kernel_file_is_alternative(const uint8_t *entry, size_t entry_size);
/* What is patched but in no table: trampolines known by their names. 0 or -ENOMEM. */
int kernel_file_mask_names(struct kernel_file_text *t, const struct kernel_links *links);

/* The lines of FILE's sections that are of MODULE and SECTION: the address in the first one from
 * *AT on, which is set behind it; false: there is none. */
bool kernel_file_section(const struct kernel_file *file, const char *module, const char *section,
			 size_t *at, uint64_t *ret);
/* Where probes are; all of the text where there are some and nobody knows where. 0 or -ENOMEM. */
int kernel_file_mask_probes(struct kernel_file_text *t, const struct kernel_file *file);

/* kernel_file_module.c: as kernel_file_text(). */
int kernel_file_link_module(const struct kernel_file *file, const struct kernel_elf *e,
			    struct kernel_file_text *ret);
/* kernel_file_unpack.c: the ELF file in the bzImage SOURCE, malloc'ed. 0; -EBADMSG: it is none;
 * -EPROTONOSUPPORT; -ENOMEM; -errno. */
int kernel_file_unpack(const struct kernel_source *source, uint8_t **ret, size_t *ret_size);
