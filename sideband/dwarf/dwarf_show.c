/*
 * What libdw is shown: a file of our own making that has the sections of DWARF and nothing else,
 * whose bytes stay where they are. Thereby no file says where another one lies
 * (.gnu_debugaltlink), nothing is packed, and nothing of the stranger's headers is read twice.
 * Part of dwarf.c.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <gelf.h>

#include "proto/base.h"
#include "sideband/dwarf/dwarf_private.h"

#define NAME_SIZE 24u

/* Sections 1 to DWARF_N_SECTIONS, empty, and then their names. */
struct made {
	Elf64_Ehdr header;
	Elf64_Shdr sections[DWARF_N_SECTIONS + 2];
	char names[DWARF_N_SECTIONS + 2][NAME_SIZE];
};

struct dwarf_shown {
	struct made made;
	Elf *elf;
	Dwarf *dwarf;
};

/* clang-format off */
static const char names[DWARF_N_SECTIONS][NAME_SIZE] = {
	[DWARF_INFO] = ".debug_info",
	[DWARF_ABBREV] = ".debug_abbrev",
	[DWARF_LINE] = ".debug_line",
	[DWARF_STR] = ".debug_str",
	[DWARF_LINE_STR] = ".debug_line_str",
	[DWARF_RANGES] = ".debug_ranges",
	[DWARF_RNGLISTS] = ".debug_rnglists",
	[DWARF_ADDR] = ".debug_addr",
	[DWARF_STR_OFFSETS] = ".debug_str_offsets",
};
/* clang-format on */

static void make(struct made *m)
{
	const size_t strings = DWARF_N_SECTIONS + 1;

	m->header = (Elf64_Ehdr){
		.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
			    EV_CURRENT},
		.e_type = ET_EXEC,
		.e_machine = EM_X86_64,
		.e_version = EV_CURRENT,
		.e_shoff = offsetof(struct made, sections),
		.e_ehsize = sizeof(Elf64_Ehdr),
		.e_shentsize = sizeof(Elf64_Shdr),
		.e_shnum = ARRAY_SIZE(m->sections),
		.e_shstrndx = (Elf64_Half)strings,
	};
	for (size_t i = 0; i < DWARF_N_SECTIONS; i++) {
		memcpy(m->names[i + 1], names[i], NAME_SIZE);
		m->sections[i + 1] = (Elf64_Shdr){.sh_name = (Elf64_Word)((i + 1) * NAME_SIZE),
						  .sh_type = SHT_PROGBITS,
						  .sh_addralign = 1};
	}
	m->sections[strings] = (Elf64_Shdr){.sh_type = SHT_STRTAB,
					    .sh_offset = offsetof(struct made, names),
					    .sh_size = sizeof(m->names),
					    .sh_addralign = 1};
}

/* 0 or -ENOMEM. */
static int fill(Elf *elf, const struct dwarf_sections *sections)
{
	for (size_t i = 0; i < DWARF_N_SECTIONS; i++) {
		const struct dwarf_section *s = &sections->of[i];
		Elf_Data *data = elf_getdata(elf_getscn(elf, i + 1), NULL);

		if (!data)
			return -ENOMEM;
		/* libdw reads their headers before it looks how large they are. */
		if (s->size < 16 && (i == DWARF_RNGLISTS || i == DWARF_STR_OFFSETS))
			continue;
		/* Only ever read. */
		data->d_buf = s->size ? (void *)(uintptr_t)s->bytes : NULL;
		data->d_size = s->size;
	}
	return 0;
}

/* It would write a message and exit, as if that were what we had to say. */
__attribute__((noreturn)) static void no_memory(void)
{
	abort();
}

static int open_shown(struct dwarf_shown *s, const struct dwarf_sections *sections)
{
	int r;

	if (elf_version(EV_CURRENT) == EV_NONE)
		return DWARF_NONE;
	s->elf = elf_memory((char *)&s->made, sizeof(s->made));
	if (!s->elf)
		return -ENOMEM;
	r = fill(s->elf, sections);
	if (r == 0)
		s->dwarf = dwarf_begin_elf(s->elf, DWARF_C_READ, NULL);
	if (r == 0 && !s->dwarf)
		return DWARF_NONE;
	if (r == 0)
		dwarf_new_oom_handler(s->dwarf, no_memory);
	return r;
}

int dwarf_shown_new(const struct dwarf_sections *sections, struct dwarf_shown **ret)
{
	struct dwarf_shown *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return -ENOMEM;
	make(&s->made);
	r = open_shown(s, sections);
	if (r != 0) {
		dwarf_shown_free(s);
		return r;
	}
	*ret = s;
	return 0;
}

void dwarf_shown_free(struct dwarf_shown *s)
{
	if (!s)
		return;
	dwarf_end(s->dwarf);
	elf_end(s->elf);
	free(s);
}

Dwarf *dwarf_shown_dwarf(const struct dwarf_shown *s)
{
	return s->dwarf;
}
