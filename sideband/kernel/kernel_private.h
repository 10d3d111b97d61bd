/*
 * The inside of struct kernel, for kernel.c (pieces), kernel_poke.c (changes) and kernel_symbols.c
 * (names).
 */
#pragma once

#include "sideband/kernel/kernel.h"

enum kernel_change_kind { KERNEL_POKE, KERNEL_APPEARS, KERNEL_VANISHES };

/* One TEXT_POKE or KSYMBOL record. */
struct kernel_change {
	uint64_t address, time;
	uint64_t size;		  /* bytes; of a poke: the longer one of both */
	const uint8_t *old, *new; /* a poke's bytes before and after it; borrowed */
	uint16_t old_size, new_size;
	uint8_t kind;	/* enum kernel_change_kind */
	uint32_t order; /* number of the record */
};

enum kernel_state {
	KERNEL_IS_KNOWN,
	KERNEL_IS_MISSING,
	KERNEL_IS_MASKED,     /* unknown until a record tells it */
	KERNEL_IS_UNRELIABLE, /* records and bytes contradict each other */
};

/* The bytes of a site between two of its changes. */
struct kernel_text {
	uint8_t *bytes;
	uint8_t *states; /* an enum kernel_state for each byte; in the allocation of BYTES */
};

/* A part of the text that changes. Changes that touch each other are of one site, so sites do not
 * touch. */
struct kernel_site {
	uint64_t address, size;
	size_t first, n;	   /* its changes, in order of time */
	struct kernel_text *texts; /* n + 1; made on first use */
	bool refused;		   /* there is no room for the texts */
};

struct kernel_range {
	uint64_t address, size;
};

struct kernel_name {
	uint64_t address, size; /* size 0: up to the next one */
	const char *name, *module;
	char type;
	uint32_t order;
};

struct kernel {
	struct image_set *images;
	struct kernel_piece *pieces; /* in order of address */
	size_t n_pieces, max_pieces;
	struct kernel_range *masked; /* in order of address */
	size_t n_masked, max_masked;
	struct kernel_change *changes; /* those of one site are neighbours */
	size_t n_changes, max_changes;
	struct kernel_site *sites; /* in order of address */
	size_t n_sites;
	uint64_t text_bytes;	   /* of all sites' texts */
	struct kernel_name *names; /* in order of address */
	size_t n_names, max_names;
	char **texts; /* names, and bytes of pieces; owned */
	size_t n_texts, max_texts;
	bool ready; /* kernel_ready() was called */
};

/* --- kernel.c --- */

/* The bytes of PIECE around OFFSET, as image_at() gives them. */
int kernel_piece_code(struct kernel *k, const struct kernel_piece *piece, uint64_t offset,
		      struct image_code *ret);
/* The first masked range that ends behind ADDRESS; n_masked: none. */
size_t kernel_find_masked(const struct kernel *k, uint64_t address);

/* --- kernel_poke.c --- */

/* Makes sites of all changes. 0 or -ENOMEM. */
int kernel_make_sites(struct kernel *k);
/* The first site that ends behind ADDRESS; n_sites: none. */
size_t kernel_find_site(const struct kernel *k, uint64_t address);
/* The texts of SITE, made on first use; NULL: no memory, or the site is too large. */
const struct kernel_text *kernel_texts_of(struct kernel *k, struct kernel_site *site);
void kernel_free_sites(struct kernel *k);

/* --- kernel_symbols.c --- */

/* NAME's strings are borrowed as long as K. 0 or -ENOMEM. */
int kernel_add_name(struct kernel *k, const struct kernel_name *name);
/* A copy of SIZE bytes, NUL behind it, that lives as long as K; NULL: no memory. */
char *kernel_keep_text(struct kernel *k, const char *text, size_t size);
void kernel_sort_names(struct kernel *k);
