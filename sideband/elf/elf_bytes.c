/*
 * Guards the bytes of an untrusted ELF file: brings those that may be read, checks headers, bounds
 * strings.
 *
 * libelf sees only executables and shared objects for x86 whose header tables lie within the file.
 */
#include <string.h>

#include "proto/base.h"
#include "sideband/elf/elf_private.h"

/* The most that is requested of a file whose bytes are not all there. */
#define MAX_BYTES_BROUGHT (UINT64_C(64) << 20)
/* A longer name counts as none: users read names to the end to compare and show them. */
#define MAX_NAME 16384u

/* --- Bytes on request --- */

bool elf_bring(struct elf_file *f, uint64_t offset, uint64_t size)
{
	if (!f->need || size == 0)
		return true;
	if (offset > f->size || size > f->size - offset)
		return false;
	for (size_t i = 0; i < f->n_brought; i++)
		if (f->brought[i].begin <= offset && offset + size <= f->brought[i].end)
			return true;
	if (size > MAX_BYTES_BROUGHT - f->bytes_brought || f->n_brought == ELF_MAX_BROUGHT ||
	    !f->need(f->userdata, offset, size))
		return false;
	f->bytes_brought += size;
	f->brought[f->n_brought++] = (struct elf_span){offset, offset + size, 0};
	return true;
}

bool elf_bring_section(struct elf_file *f, const GElf_Shdr *h)
{
	return h->sh_type == SHT_NOBITS || elf_bring(f, h->sh_offset, h->sh_size);
}

/* --- Headers --- */

/* The header's fields, for 32 and 64 bits alike. */
struct header {
	unsigned type, machine;
	uint64_t phoff, shoff;
	size_t phnum, phentsize, shnum, shentsize;
	size_t phdr_size, shdr_size; /* the only valid values of phentsize and shentsize */
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

/* x86 and this program are little-endian. */
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
	/* A number of sections beyond 16 bits is in the first section's header. */
	if (ret->shnum == 0 && ret->shoff != 0)
		ret->shnum = 1;
	return true;
}

/* True: N entries of SIZE bytes at OFFSET lie within the file. */
static bool table_fits(size_t file_size, uint64_t offset, size_t n, size_t size)
{
	return n == 0 || (offset <= file_size && n * size <= file_size - offset);
}

/* The fields of the first section's header that hold numbers beyond 16 bits: sh_size and sh_info.
 */
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

/* Brings both header tables, with as many entries as libelf will count. */
static bool bring_tables(struct elf_file *f, const struct header *h)
{
	uint64_t sections = h->shnum, segments = h->phnum, room;

	if (!f->need)
		return true;
	if (h->shoff != 0 && h->shnum > 0) {
		GElf_Shdr first;

		if (!elf_bring(f, h->shoff, h->shdr_size))
			return false;
		first = first_section(f, h);
		if (h->shnum == 1)
			sections = MAX_OF(first.sh_size, (uint64_t)1);
		if (segments == PN_XNUM)
			segments = first.sh_info;
		room = (f->size - h->shoff) / h->shdr_size;
		if (!elf_bring(f, h->shoff, MIN_OF(sections, room) * h->shdr_size))
			return false;
	}
	if (segments == 0 || h->phoff > f->size)
		return true;
	room = (f->size - h->phoff) / h->phdr_size;
	return elf_bring(f, h->phoff, MIN_OF(segments, room) * h->phdr_size);
}

bool elf_is_known_kind(struct elf_file *f)
{
	struct header h;

	return elf_bring(f, 0, MIN_OF(f->size, sizeof(Elf64_Ehdr))) &&
	       read_header(f->bytes, f->size, &h) &&
	       (h.machine == EM_X86_64 || h.machine == EM_386) &&
	       (h.type == ET_EXEC || h.type == ET_DYN) &&
	       (h.phnum == 0 || h.phentsize == h.phdr_size) &&
	       (h.shnum == 0 || h.shentsize == h.shdr_size) &&
	       table_fits(f->size, h.phoff, h.phnum, h.phdr_size) &&
	       table_fits(f->size, h.shoff, h.shnum, h.shdr_size) && bring_tables(f, &h);
}

/* --- Strings --- */

/* libelf looks for the end of each string up to the end of the table: for a table without an end
 * that is the whole table, every time. Here the end of the last string is found once. */
bool elf_bring_strings(struct elf_file *f, size_t section, struct elf_strings *ret)
{
	Elf_Scn *scn = elf_getscn(f->elf, section);
	const uint8_t *text, *last;
	GElf_Shdr h;

	*ret = (struct elf_strings){0};
	if (!scn || !gelf_getshdr(scn, &h) || h.sh_type == SHT_NOBITS ||
	    (h.sh_flags & SHF_COMPRESSED) || h.sh_size == 0 || h.sh_offset > f->size ||
	    h.sh_size > f->size - h.sh_offset || !elf_bring_section(f, &h))
		return false;
	text = f->bytes + h.sh_offset;
	last = memrchr(text, 0, h.sh_size);
	if (!last)
		return false;
	*ret = (struct elf_strings){(const char *)text, (size_t)(last - text) + 1};
	return true;
}

const char *elf_string(const struct elf_strings *s, uint64_t at)
{
	size_t room;

	if (at >= s->size)
		return NULL;
	room = s->size - (size_t)at;
	if (room > MAX_NAME && !memchr(s->text + at, 0, MAX_NAME + 1))
		return NULL;
	return s->text + at;
}

bool elf_bring_section_names(struct elf_file *f)
{
	size_t section;

	return f->section_names.size > 0 || (elf_getshdrstrndx(f->elf, &section) == 0 &&
					     elf_bring_strings(f, section, &f->section_names));
}

const char *elf_section_name(const struct elf_file *f, const GElf_Shdr *h)
{
	const char *name = elf_string(&f->section_names, h->sh_name);

	return name ? name : "";
}
