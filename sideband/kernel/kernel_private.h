/*
 * The inside of struct kernel: kernel.c (what lies where), kernel_poke.c (what changes when),
 * kernel_place.c (and into what), kernel_symbols.c (names).
 */
#pragma once

#include "sideband/kernel/kernel.h"

enum kernel_change_kind { KERNEL_POKE, KERNEL_APPEARS, KERNEL_VANISHES };

/* One record. */
struct kernel_change {
	uint64_t address, size, time; /* size: of the longer of both */
	const uint8_t *old, *new;     /* of a poke; borrowed */
	uint16_t old_size, new_size;
	uint8_t kind;	/* enum kernel_change_kind */
	uint32_t order; /* as they came */
};

enum kernel_state {
	KERNEL_IS_KNOWN,
	KERNEL_IS_MISSING,
	KERNEL_IS_MASKED,     /* not to be believed, until a record tells it */
	KERNEL_IS_UNRELIABLE, /* records and bytes contradict each other */
};

/* A place that changes, as it was between two of its changes. */
struct kernel_text {
	uint8_t *bytes;
	uint8_t *states; /* enum kernel_state, of each byte; in the same allocation */
};

/* Changes that touch each other; places do not touch. */
struct kernel_place {
	uint64_t address, size;
	size_t first, n;	   /* its changes, in order of time */
	struct kernel_text *texts; /* n + 1; NULL: nobody asked yet */
	bool refused;		   /* there is no room for them */
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
	struct kernel_range *masked; /* so */
	size_t n_masked, max_masked;
	struct kernel_change *changes; /* of one place next to each other */
	size_t n_changes, max_changes;
	struct kernel_place *places; /* in order of address */
	size_t n_places;
	uint64_t text_bytes;	   /* of all places' texts */
	struct kernel_name *names; /* in order of address */
	size_t n_names, max_names;
	char **texts; /* that names lie in; owned */
	size_t n_texts, max_texts;
};

/* kernel_poke.c */
/* Changes -> places. 0 or -ENOMEM. */
int kernel_make_places(struct kernel *k);
/* The first place that ends behind ADDRESS; n_places: none. */
size_t kernel_find_place(const struct kernel *k, uint64_t address);
void kernel_free_places(struct kernel *k);

/* kernel_place.c */
/* The place's texts, made when they are first asked for; NULL: no memory, or too much of it. */
const struct kernel_text *kernel_texts_of(struct kernel *k, struct kernel_place *place);

/* kernel.c */
/* The piece's bytes around OFFSET, as image_at(). */
int kernel_piece_code(struct kernel *k, const struct kernel_piece *piece, uint64_t offset,
		      struct image_code *ret);
/* The first masked range that ends behind ADDRESS; n_masked: none. */
size_t kernel_find_masked(const struct kernel *k, uint64_t address);

/* kernel_symbols.c */
int kernel_add_name(struct kernel *k, const struct kernel_name *name);
/* A copy of SIZE bytes, NUL behind it, that lives as long as K; NULL: no memory. */
char *kernel_keep_text(struct kernel *k, const char *text, size_t size);
void kernel_sort_names(struct kernel *k);
