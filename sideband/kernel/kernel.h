/*
 * The kernel's text and names over time: which bytes lay at an address of the kernel at some
 * moment, and which function they belong to.
 *
 * The text of the kernel was read from memory once, or comes from files (kernel_file.h). The kernel
 * patches its text all the time and records each change (TEXT_POKE, with the bytes before and after
 * the change) before it takes effect. The text as read is therefore right for the time of reading;
 * for other times the room makes the changes in between, or undoes them.
 *
 * kernel.c              struct kernel: pieces of text, and the bytes at an address
 * kernel_poke.c         the sites (parts that change), and their bytes in each version
 * kernel_symbols.c      the names of functions, by address
 * kernel_file.c         text from vmlinux, moved to where the kernel runs; symbols to link by
 * kernel_file_module.c  text from a module's file, linked as the kernel links modules
 * kernel_file_sites.c   which parts of a text from a file the kernel patches
 * kernel_file_read.c    reads ELF files and bzImages
 *
 * struct kernel holds what is known of one kernel; replay fills it once, calls kernel_ready(), and
 * then only asks. It borrows the image_set and the records, and owns texts and names.
 *
 * Decisions that govern the room:
 * - The kernel's text is kept once for all address spaces.
 * - A part of the text that changes is a site. Sites have versions: version N is what lay there
 *   after N - 1 of the site's changes; text that never changes is version 0. Equal versions mean
 *   equal bytes at equal addresses, so the decoder can keep what it made of them.
 * - While the kernel patches an instruction its first byte is an INT3. A trace has a FUP with the
 *   address of an INT3 that was executed, so the INT3 needs no version.
 * - Nothing is guessed. Where records and text contradict each other the text is unreliable, and
 *   what a file has at a site that the kernel patches is masked: such sites become gaps.
 * - Records, files and names are a stranger's and are checked. The room is linked only into the
 *   sandboxed worker; one thread at a time uses a struct kernel.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sideband/symbols/image.h"

#define KERNEL_ABSENT UINT64_MAX

struct kernel;
struct perfrecord;

/* IMAGES is borrowed and has the kernel's images among others. 0 or -ENOMEM. */
int kernel_new(struct image_set *images, struct kernel **ret);
void kernel_free(struct kernel *k);

/* Bytes [offset, offset + size) of IMAGE lie at ADDRESS. */
struct kernel_piece {
	uint64_t address, size; /* bytes */
	uint64_t offset;
	uint64_t read_ns; /* perf clock; KERNEL_ABSENT: not read from memory, but from a file */
	uint32_t image;
	/* The bytes, from ADDRESS on, if they are not those of the image but were made from the
	 * image's file: malloc()ed, and owned by struct kernel once they were added. NULL: the
	 * image's bytes. */
	uint8_t *bytes;
};

/* --- Filling: everything that is known, in any order, then kernel_ready() --- */

/* A piece that overlaps another one with a lower address, or the end of the address space, is left
 * out. 0, or -ENOMEM: the piece's bytes are still the caller's. */
int kernel_add_piece(struct kernel *k, const struct kernel_piece *piece);
/* The SIZE bytes at ADDRESS are unknown, whatever the file says, unless a record tells them. 0 or
 * -ENOMEM. */
int kernel_add_masked(struct kernel *k, uint64_t address, uint64_t size);
/* Takes TEXT_POKE and KSYMBOL records (the body is borrowed) and ignores others. 0; -ENOMEM;
 * -EBADMSG: the body contradicts itself, the record has no effect. */
int kernel_add_record(struct kernel *k, const struct perfrecord *record);
/* Copies lines "ADDRESS TYPE NAME[\t[MODULE]]" (/proc/kallsyms) of functions and leaves other lines
 * out. 0 or -ENOMEM. */
int kernel_add_symbols(struct kernel *k, const char *text, size_t size);
/* 0 or -ENOMEM. */
int kernel_ready(struct kernel *k);

/* --- Asking --- */

/* The versions that the code at ADDRESS may have had within [LO, HI] (perf clock, ns): returns the
 * first, *ret_last is the last. Both 0: the code never changes. */
uint32_t kernel_version(const struct kernel *k, uint64_t address, uint64_t lo, uint64_t hi,
			uint32_t *ret_last);

struct kernel_code {
	const uint8_t *bytes; /* borrowed */
	uint64_t address, size;
	bool ends;	  /* the bytes behind may have another version */
	uint8_t *touched; /* as in struct image_code, or NULL */
	uint32_t image;	  /* UINT32_MAX: none, a record told the bytes */
	uint64_t offset;  /* of ADDRESS in the image */
};
/* The code around ADDRESS, as far as it is of VERSION. 0, or: */
#define KERNEL_MISSING	  1 /* was not read, or something else lay there when it was read */
#define KERNEL_UNRELIABLE 2 /* changed in an unknown way */
int kernel_find(struct kernel *k, uint64_t address, uint32_t version, struct kernel_code *ret);
/* The piece that was added for ADDRESS; NULL: none. */
const struct kernel_piece *kernel_piece_at(const struct kernel *k, uint64_t address);

struct kernel_symbol {
	uint64_t address, size; /* up to the next one */
	const char *name;	/* borrowed */
	const char *module;	/* NULL: the kernel itself */
};
/* The function around ADDRESS; false: none is known. */
bool kernel_symbol_at(const struct kernel *k, uint64_t address, struct kernel_symbol *ret);
/* The address of the function NAME of the kernel itself; 0: not known. Searches all names. A name
 * that shares its address with a better one is not found. */
uint64_t kernel_symbol_address(const struct kernel *k, const char *name);
