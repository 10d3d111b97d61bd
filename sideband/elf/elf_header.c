/*
 * Is this a file that libelf should see at all: an executable or shared object for x86 whose tables
 * lie within it? Part of elf.c.
 */
#include <string.h>

#include "proto/base.h"
#include "sideband/elf/elf_private.h"

/* Of a file of which not all is there. */
#define MAX_NEEDED (UINT64_C(64) << 20)

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

/* Of the first section's header: where numbers stand that need more than 16 bits. */
static GElf_Shdr first_section(const struct elf_file *f, const struct header *h)
{
	GElf_Shdr ret;
	Elf32_Shdr narrow;

	if (h->shdr_size == sizeof(ret)) {
		memcpy(&ret, f->bytes + h->shoff, sizeof(ret));
		return ret;
	}
	memcpy(&narrow, f->bytes + h->shoff, sizeof(narrow));
	return (GElf_Shdr){.sh_size = narrow.sh_size, .sh_info = narrow.sh_info};
}

/* The tables themselves, as libelf counts their entries. */
static bool have_tables(struct elf_file *f, const struct header *h)
{
	uint64_t sections = h->shnum, segments = h->phnum, room;

	if (!f->need)
		return true;
	if (h->shoff != 0 && h->shnum > 0) {
		GElf_Shdr first;

		if (!elf_have(f, h->shoff, h->shdr_size))
			return false;
		first = first_section(f, h);
		if (h->shnum == 1)
			sections = MAX_OF(first.sh_size, (uint64_t)1);
		if (segments == PN_XNUM)
			segments = first.sh_info;
		room = (f->size - h->shoff) / h->shdr_size;
		if (!elf_have(f, h->shoff, MIN_OF(sections, room) * h->shdr_size))
			return false;
	}
	if (segments == 0 || h->phoff > f->size)
		return true;
	room = (f->size - h->phoff) / h->phdr_size;
	return elf_have(f, h->phoff, MIN_OF(segments, room) * h->phdr_size);
}

bool elf_is_known_kind(struct elf_file *f)
{
	struct header h;

	return elf_have(f, 0, MIN_OF(f->size, sizeof(Elf64_Ehdr))) &&
	       read_header(f->bytes, f->size, &h) &&
	       (h.machine == EM_X86_64 || h.machine == EM_386) &&
	       (h.type == ET_EXEC || h.type == ET_DYN) &&
	       (h.phnum == 0 || h.phentsize == h.phdr_size) &&
	       (h.shnum == 0 || h.shentsize == h.shdr_size) &&
	       table_fits(f->size, h.phoff, h.phnum, h.phdr_size) &&
	       table_fits(f->size, h.shoff, h.shnum, h.shdr_size) && have_tables(f, &h);
}

/* --- What is read --- */

static bool was_had(const struct elf_file *f, uint64_t offset, uint64_t size)
{
	for (size_t i = 0; i < f->n_had; i++)
		if (f->had[i].begin <= offset && offset + size <= f->had[i].end)
			return true;
	return false;
}

bool elf_have(struct elf_file *f, uint64_t offset, uint64_t size)
{
	if (!f->need || size == 0)
		return true;
	if (offset > f->size || size > f->size - offset)
		return false;
	if (was_had(f, offset, size))
		return true;
	if (size > MAX_NEEDED - f->needed || f->n_had == ELF_MAX_HAD ||
	    !f->need(f->userdata, offset, size))
		return false;
	f->needed += size;
	f->had[f->n_had++] = (struct elf_span){offset, offset + size, 0};
	return true;
}

bool elf_have_section(struct elf_file *f, const GElf_Shdr *h)
{
	return h->sh_type == SHT_NOBITS || elf_have(f, h->sh_offset, h->sh_size);
}
