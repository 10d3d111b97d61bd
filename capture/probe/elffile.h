/*
 * The headers of an ELF file for x86-64, read with bounds.
 */
#pragma once

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ELFFILE_SEGMENTS 128
#define ELFFILE_SECTIONS 4096

struct elffile {
	int fd;
	uint64_t size;
	Elf64_Ehdr header;
	Elf64_Phdr segments[ELFFILE_SEGMENTS];
	Elf64_Shdr *sections;
	unsigned n_segments, n_sections;
};

/* Reads the headers. 0; -EBADMSG: no ELF file for x86-64, or malformed; -ENOMEM; -errno. */
int elffile_open(int fd, struct elffile *ret);
void elffile_close(struct elffile *f);
/* Reads SIZE bytes at OFFSET. 0; -EBADMSG: beyond the end; -errno. */
int elffile_read(const struct elffile *f, void *to, size_t size, uint64_t offset);
/* Whether a section lies within the file and has at most MAX bytes. */
bool elffile_section_ok(const struct elffile *f, const Elf64_Shdr *s, uint64_t max);
/* The first section of TYPE, and of NAME if NAME is not NULL (at most 31 bytes). NULL: none. */
const Elf64_Shdr *elffile_section(const struct elffile *f, uint32_t type, const char *name);
/* The offset in the file of ADDRESS, which is in a segment with FLAGS (PF_X). 0 or -EBADMSG. */
int elffile_offset(const struct elffile *f, uint64_t address, uint32_t flags, uint64_t *ret);
