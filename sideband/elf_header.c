/*
 * Is this a file that libelf should see at all: an executable or shared object for x86 whose tables
 * lie within it? Part of elf.c.
 */
#include <string.h>

#include "sideband/elf_private.h"

/* What the headers of both classes say alike. */
struct header {
	unsigned type, machine;
	uint64_t phoff, shoff;
	size_t phnum, phentsize, shnum, shentsize;
	size_t phdr_size, shdr_size; /* what the entry sizes must be */
};

static void read_header_64(const uint8_t *bytes, struct header *ret)
{
	Elf64_Ehdr h;

	memcpy(&h, bytes, sizeof(h));
	*ret = (struct header){.type = h.e_type,
			       .machine = h.e_machine,
			       .phoff = h.e_phoff,
			       .shoff = h.e_shoff,
			       .phnum = h.e_phnum,
			       .phentsize = h.e_phentsize,
			       .shnum = h.e_shnum,
			       .shentsize = h.e_shentsize,
			       .phdr_size = sizeof(Elf64_Phdr),
			       .shdr_size = sizeof(Elf64_Shdr)};
}

static void read_header_32(const uint8_t *bytes, struct header *ret)
{
	Elf32_Ehdr h;

	memcpy(&h, bytes, sizeof(h));
	*ret = (struct header){.type = h.e_type,
			       .machine = h.e_machine,
			       .phoff = h.e_phoff,
			       .shoff = h.e_shoff,
			       .phnum = h.e_phnum,
			       .phentsize = h.e_phentsize,
			       .shnum = h.e_shnum,
			       .shentsize = h.e_shentsize,
			       .phdr_size = sizeof(Elf32_Phdr),
			       .shdr_size = sizeof(Elf32_Shdr)};
}

/* Little-endian as x86 is, and so are we. */
static bool read_header(const uint8_t *bytes, size_t size, struct header *ret)
{
	if (size < sizeof(Elf32_Ehdr) || memcmp(bytes, ELFMAG, SELFMAG) != 0 ||
	    bytes[EI_DATA] != ELFDATA2LSB)
		return false;
	if (bytes[EI_CLASS] == ELFCLASS32)
		read_header_32(bytes, ret);
	else if (bytes[EI_CLASS] == ELFCLASS64 && size >= sizeof(Elf64_Ehdr))
		read_header_64(bytes, ret);
	else
		return false;
	/* Numbers of sections beyond 16 bits stand in the first section's header. */
	if (ret->shnum == 0 && ret->shoff != 0)
		ret->shnum = 1;
	return true;
}

/* Room for N entries of SIZE bytes at OFFSET. */
static bool table_fits(size_t file_size, uint64_t offset, size_t n, size_t size)
{
	return n == 0 || (offset <= file_size && n * size <= file_size - offset);
}

bool elf_is_known_kind(const uint8_t *bytes, size_t size)
{
	struct header h;

	return read_header(bytes, size, &h) && (h.machine == EM_X86_64 || h.machine == EM_386) &&
	       (h.type == ET_EXEC || h.type == ET_DYN) &&
	       (h.phnum == 0 || h.phentsize == h.phdr_size) &&
	       (h.shnum == 0 || h.shentsize == h.shdr_size) &&
	       table_fits(size, h.phoff, h.phnum, h.phdr_size) &&
	       table_fits(size, h.shoff, h.shnum, h.shdr_size);
}
