/*
 * Kernel text in time: what lay at an address of the kernel at some moment, and what it is called.
 *
 * Text was read once (or comes from files); the kernel patches it all the time and tells each
 * change in a record before it becomes the flow (TEXT_POKE), with the bytes before and behind it.
 * So what was read is right for its own time, and for others with the changes between done, or
 * undone. Where records and text contradict each other nothing is claimed.
 *
 * Places that change are known by their versions: number N is what lay there behind N - 1 of its
 * changes; what never changes is version 0. Equal numbers mean equal bytes at equal addresses.
 *
 * Only in the worker; one thread at a time. Records and texts are a stranger's.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sideband/symbols/image.h"

#define KERNEL_ABSENT UINT64_MAX

struct kernel;
struct perfrecord;

/* IMAGES is borrowed; the kernel's are among them. 0 or -ENOMEM. */
int kernel_new(struct image_set *images, struct kernel **ret);
void kernel_free(struct kernel *k);

/* Bytes [offset, offset + size) of IMAGE lie at ADDRESS. */
struct kernel_piece {
	uint64_t address, size; /* bytes */
	uint64_t offset;
	uint64_t read_ns; /* perf clock; ABSENT: they were not read, but come from a file */
	uint32_t image;
	/* What the image's file was made into, instead of what it holds: malloc'ed, of ADDRESS, and
	 * owned by the kernel once it was added. NULL: the image's. */
	uint8_t *bytes;
};

/* All that is known, in any order, then kernel_ready(). Pieces that overlap an earlier one, or the
 * end of the address space, are left out. 0 or -ENOMEM: then its bytes are still the caller's. */
int kernel_add_piece(struct kernel *k, const struct kernel_piece *piece);
/* SIZE bytes there are not what the file says until a record tells them. */
int kernel_add_masked(struct kernel *k, uint64_t address, uint64_t size);
/* TEXT_POKE and KSYMBOL records; others are ignored. Also -EBADMSG: a body that contradicts itself,
 * nothing is done. */
int kernel_add_record(struct kernel *k, const struct perfrecord *record);
/* Lines "ADDRESS TYPE NAME[\t[MODULE]]" (/proc/kallsyms); others are left out. */
int kernel_add_symbols(struct kernel *k, const char *text, size_t size);
int kernel_ready(struct kernel *k);

/* Versions that the code at ADDRESS may have had within [LO, HI] (perf ns): the first one, and the
 * last in *ret_last. 0: it never changes. */
uint32_t kernel_version(const struct kernel *k, uint64_t address, uint64_t lo, uint64_t hi,
			uint32_t *ret_last);

struct kernel_code {
	const uint8_t *bytes; /* borrowed */
	uint64_t address, size;
	bool ends;	  /* what lies behind may change */
	uint8_t *touched; /* as in struct image_code; NULL */
	uint32_t image;	  /* UINT32_MAX: none, a record told the bytes */
	uint64_t offset;  /* in the image, of address */
};
/* The piece around ADDRESS that is all of VERSION. 0, or: */
#define KERNEL_MISSING	  1 /* nobody read it, or it was something else when it was read */
#define KERNEL_UNRELIABLE 2 /* it changed in a way that is not known */
int kernel_find(struct kernel *k, uint64_t address, uint32_t version, struct kernel_code *ret);
/* The piece of an image at ADDRESS; NULL: none. */
const struct kernel_piece *kernel_piece_at(const struct kernel *k, uint64_t address);

struct kernel_symbol {
	uint64_t address, size; /* up to the next one */
	const char *name;	/* borrowed */
	const char *module;	/* NULL: the kernel itself */
};
/* The function around ADDRESS. False: none is known. */
bool kernel_symbol_at(const struct kernel *k, uint64_t address, struct kernel_symbol *ret);
/* Where the function NAME begins; 0: not known. */
uint64_t kernel_symbol_address(const struct kernel *k, const char *name);
