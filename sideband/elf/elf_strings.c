/*
 * Strings of an ELF file's tables. libelf looks for the end of each string from the end of its
 * table on, which of a table without an end is all of it, every time; here that is looked for once.
 * Part of elf.c.
 */
#include <string.h>

#include "sideband/elf/elf_private.h"

/* A longer name is none: whoever compares or shows names reads them to their ends. */
#define MAX_NAME 16384u

bool elf_strings_of(struct elf_file *f, size_t section, struct elf_strings *ret)
{
	Elf_Scn *scn = elf_getscn(f->elf, section);
	const uint8_t *text, *last;
	GElf_Shdr h;

	*ret = (struct elf_strings){0};
	if (!scn || !gelf_getshdr(scn, &h) || h.sh_type == SHT_NOBITS ||
	    (h.sh_flags & SHF_COMPRESSED) || h.sh_size == 0 || h.sh_offset > f->size ||
	    h.sh_size > f->size - h.sh_offset || !elf_have_section(f, &h))
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

bool elf_have_section_names(struct elf_file *f)
{
	size_t section;

	return f->section_names.size > 0 || (elf_getshdrstrndx(f->elf, &section) == 0 &&
					     elf_strings_of(f, section, &f->section_names));
}

const char *elf_section_name(const struct elf_file *f, const GElf_Shdr *h)
{
	const char *name = elf_string(&f->section_names, h->sh_name);

	return name ? name : "";
}
