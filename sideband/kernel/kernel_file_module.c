/*
 * A module's text, placed and linked as the kernel does it (arch/x86/kernel/module.c,
 * apply_relocate_add).
 *
 * Each section lies where /sys/module/NAME/sections says. Symbols that the module does not define
 * come from the running kernel's list, which has functions only: an operand that names data stays
 * as it is in the file, as no branch depends on it. A branch with an unknown target is masked. The
 * tables of patched sites are not linked; their relocations name the sites.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base.h"
#include "sideband/kernel/kernel_file_private.h"

#define MAX_SPAN    ((uint64_t)256 << 20)
#define MAX_SYMBOLS ((size_t)4 << 20)
/* Instead of an address: unknown, and that of a section whose code was thrown away after start. */
#define NOWHERE 0
#define GONE	1

struct module {
	const struct kernel_file *file;
	const struct kernel_elf *elf;
	struct kernel_file_text *text;
	uint64_t *addresses; /* owned; of each section, NOWHERE */
	Elf64_Sym *symbols;  /* owned */
	size_t n_symbols;
	char *strings; /* owned; NUL behind them */
	size_t strings_size;
};

/* --- Where sections are --- */

/* Whether SECTION is code that stays: the kernel throws away the code of the start. */
static bool is_text(const struct module *m, size_t section)
{
	const Elf64_Shdr *s = &m->elf->sections[section];

	return s->sh_type == SHT_PROGBITS && (s->sh_flags & SHF_ALLOC) &&
	       (s->sh_flags & SHF_EXECINSTR) && s->sh_size > 0 &&
	       strncmp(kernel_elf_name(m->elf, section), ".init", 5) != 0;
}

/* The span of all text. */
static int find_span(const struct module *m, uint64_t *ret_begin, uint64_t *ret_end)
{
	uint64_t begin = UINT64_MAX, end = 0;

	for (size_t i = 1; i < m->elf->n_sections; i++) {
		uint64_t address = m->addresses[i], size = m->elf->sections[i].sh_size;

		if (!is_text(m, i) || address == NOWHERE)
			continue;
		if (size > MAX_SPAN || address > UINT64_MAX - size)
			return -EBADMSG;
		begin = MIN_OF(begin, address);
		end = MAX_OF(end, address + size);
	}
	if (end == 0)
		return KERNEL_FILE_UNPLACED;
	*ret_begin = begin;
	*ret_end = end;
	return end - begin > MAX_SPAN ? -EBADMSG : 0;
}

/* Masks what lies between sections. */
static int mask_holes(struct module *m)
{
	uint64_t at = m->text->address, end = at + m->text->size;
	int r = 0;

	while (at < end && r == 0) {
		uint64_t next = end, behind = 0;

		for (size_t i = 1; i < m->elf->n_sections; i++) {
			uint64_t begin = m->addresses[i];

			if (!is_text(m, i) || begin == NOWHERE ||
			    begin + m->elf->sections[i].sh_size <= at)
				continue;
			if (begin <= at)
				behind = MAX_OF(behind, begin + m->elf->sections[i].sh_size);
			else
				next = MIN_OF(next, begin);
		}
		if (!behind)
			r = kernel_file_mask(m->text, at, next - at);
		at = behind ? behind : next;
	}
	return r;
}

/* Copies all sections of text to their places. */
static int place_all(struct module *m)
{
	uint64_t begin, end;
	int r = find_span(m, &begin, &end);

	if (r != 0)
		return r;
	m->text->bytes = calloc(1, (size_t)(end - begin));
	if (!m->text->bytes)
		return -ENOMEM;
	m->text->address = begin;
	m->text->size = end - begin;
	for (size_t i = 1; i < m->elf->n_sections; i++) {
		CLEANUP_FREE uint8_t *bytes = NULL;
		size_t size;

		if (!is_text(m, i) || m->addresses[i] == NOWHERE)
			continue;
		r = kernel_elf_read_section(m->elf, i, &bytes, &size);
		if (r == -ENODATA)
			continue;
		if (r < 0)
			return r;
		memcpy(m->text->bytes + (m->addresses[i] - begin), bytes, size);
	}
	return mask_holes(m);
}

/* --- Symbols --- */

static int read_symbols(struct module *m)
{
	size_t table = 0, size;
	uint8_t *bytes;
	int r;

	for (size_t i = 1; i < m->elf->n_sections && !table; i++)
		if (m->elf->sections[i].sh_type == SHT_SYMTAB)
			table = i;
	if (!table)
		return -EBADMSG;
	r = kernel_elf_read_section(m->elf, table, &bytes, &size);
	if (r < 0)
		return r == -ENODATA ? -EBADMSG : r;
	m->symbols = (Elf64_Sym *)bytes;
	m->n_symbols = MIN_OF(size / sizeof(*m->symbols), MAX_SYMBOLS);
	r = kernel_elf_read_section(m->elf, m->elf->sections[table].sh_link, &bytes,
				    &m->strings_size);
	if (r < 0)
		return r == -ENODATA ? -EBADMSG : r;
	m->strings = (char *)bytes;
	return 0;
}

/* The symbol's address in memory; false: unknown. */
static bool symbol_address(const struct module *m, size_t index, uint64_t *ret)
{
	const Elf64_Sym *s = &m->symbols[index];

	if (index == 0 || index >= m->n_symbols)
		return false;
	if (s->st_shndx == SHN_UNDEF) {
		*ret = s->st_name < m->strings_size
			       ? kernel_links_global(m->file->links, m->strings + s->st_name)
			       : NOWHERE;
		return *ret != NOWHERE;
	}
	if (s->st_shndx >= m->elf->n_sections || m->addresses[s->st_shndx] == NOWHERE)
		return false;
	*ret = m->addresses[s->st_shndx] + s->st_value;
	return true;
}

/* Whether symbol INDEX lies in a section of the start. */
static bool is_of_start(const struct module *m, size_t index)
{
	return index < m->n_symbols && m->symbols[index].st_shndx < m->elf->n_sections &&
	       strncmp(kernel_elf_name(m->elf, m->symbols[index].st_shndx), ".init", 5) == 0;
}

/* --- Relocations --- */

/* The bytes of opcode before the distance at OFFSET if that is the distance of a branch (CALL, JMP
 * or a conditional jump), else 0. Before the distance of an operand in memory stands another byte
 * (SDM volume 2, table 2-2: MOD 0, R/M 5). */
static size_t branch_before(const uint8_t *section, uint64_t offset)
{
	if (offset >= 1 && (section[offset - 1] == 0xe8 || section[offset - 1] == 0xe9))
		return 1;
	return offset >= 2 && section[offset - 2] == 0x0f && (section[offset - 1] & 0xf0) == 0x80
		       ? 2
		       : 0;
}

static bool is_relative(uint32_t type)
{
	return type == R_X86_64_PC32 || type == R_X86_64_PLT32 || type == R_X86_64_PC64;
}

/* Does one relocation of text SECTION, whose bytes are at BYTES. */
static int relocate(struct module *m, size_t section, uint8_t *bytes, const Elf64_Rela *rela)
{
	uint64_t size = m->elf->sections[section].sh_size;
	uint32_t type = (uint32_t)ELF64_R_TYPE(rela->r_info);
	size_t width = 0, before; /* of the field; 0: unknown */
	uint64_t place, symbol, value;

	switch (type) {
	case R_X86_64_NONE: return 0;
	case R_X86_64_PC32:
	case R_X86_64_PLT32:
	case R_X86_64_32:
	case R_X86_64_32S: width = 4; break;
	case R_X86_64_64:
	case R_X86_64_PC64: width = 8; break;
	default: break;
	}
	if (rela->r_offset >= size || width > size - rela->r_offset)
		return -EBADMSG;
	place = m->addresses[section] + rela->r_offset;
	before = is_relative(type) ? branch_before(bytes, rela->r_offset) : 0;
	if (width == 0)
		return kernel_file_mask(m->text, place - 2, 2 + 8);
	if (!symbol_address(m, ELF64_R_SYM(rela->r_info), &symbol))
		return before ? kernel_file_mask(m->text, place - before, before + width) : 0;
	value = symbol + (uint64_t)rela->r_addend - (is_relative(type) ? place : 0);
	memcpy(bytes + rela->r_offset, &value, width);
	return 0;
}

/* The relocations of SECTION, malloc()ed; none: *ret_n is 0. */
static int read_relocations(const struct module *m, size_t section, Elf64_Rela **ret, size_t *ret_n)
{
	uint8_t *bytes;
	size_t size;
	int r;

	*ret = NULL;
	*ret_n = 0;
	for (size_t i = 1; i < m->elf->n_sections; i++) {
		if (m->elf->sections[i].sh_type != SHT_RELA ||
		    m->elf->sections[i].sh_info != section)
			continue;
		r = kernel_elf_read_section(m->elf, i, &bytes, &size);
		if (r < 0)
			return r;
		*ret = (Elf64_Rela *)bytes;
		*ret_n = size / sizeof(**ret);
		return 0;
	}
	return 0;
}

/* --- Patched sites --- */

struct table {
	uint8_t *bytes;	 /* owned */
	uint64_t *sites; /* owned; for each byte the site that a relocation names, or NOWHERE */
	size_t size;
};

/* Reads the table in SECTION. Each entry begins with a field that a relocation fills. */
static int read_table(const struct module *m, size_t section, struct table *ret)
{
	CLEANUP_FREE Elf64_Rela *relas = NULL;
	size_t n;
	int r = kernel_elf_read_section(m->elf, section, &ret->bytes, &ret->size);

	if (r == 0)
		r = read_relocations(m, section, &relas, &n);
	if (r < 0)
		return r;
	ret->sites = calloc(ret->size + 1, sizeof(*ret->sites));
	if (!ret->sites)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		size_t index = ELF64_R_SYM(relas[i].r_info);
		uint64_t symbol;

		if (relas[i].r_offset >= ret->size)
			continue;
		if (symbol_address(m, index, &symbol))
			ret->sites[relas[i].r_offset] = symbol + (uint64_t)relas[i].r_addend;
		else if (is_of_start(m, index))
			ret->sites[relas[i].r_offset] = GONE;
	}
	return 0;
}

static bool entries_make_sense(const struct table *t, size_t entry, bool alternatives)
{
	if (t->size % entry)
		return false;
	for (size_t at = 0; at < t->size; at += entry)
		if (t->sites[at] == NOWHERE ||
		    (alternatives && !kernel_file_is_alternative(t->bytes + at, entry)))
			return false;
	return true;
}

static int mask_table(struct module *m, const struct kernel_site_table *sites,
		      const struct table *t)
{
	size_t entry = sites->entry;
	int r = 0;

	for (const size_t *a = kernel_alternative_sizes; entry == 0 && *a; a++)
		if (entries_make_sense(t, *a, true))
			entry = *a;
	if (entry == 0 || !entries_make_sense(t, entry, !sites->entry))
		return kernel_file_mask(m->text, m->text->address, m->text->size);
	/* GONE lies outside of the text, so nothing is masked there. */
	for (size_t at = 0; at < t->size && r == 0; at += entry)
		r = kernel_file_mask_site(m->text, sites, t->bytes + at, entry, t->sites[at]);
	return r;
}

static int mask_sites(struct module *m, const struct kernel_site_table *sites)
{
	size_t section = kernel_elf_section(m->elf, sites->section);
	struct table t = {0};
	int r;

	/* A module without such sites has no such section. A module whose sections were removed
	 * cannot be loaded. */
	if (section == 0)
		return 0;
	r = read_table(m, section, &t);
	if (r == 0)
		r = mask_table(m, sites, &t);
	free(t.bytes);
	free(t.sites);
	return r == -ENODATA ? -EBADMSG : r;
}

static int link_module(struct module *m)
{
	size_t n = m->elf->n_sections;
	int r;

	m->addresses = calloc(n + 1, sizeof(*m->addresses));
	if (!m->addresses)
		return -ENOMEM;
	for (size_t i = 1; i < n; i++) {
		size_t at = 0;

		if (!(m->elf->sections[i].sh_flags & SHF_ALLOC) ||
		    !kernel_file_section(m->file, m->file->module, kernel_elf_name(m->elf, i), &at,
					 &m->addresses[i]))
			m->addresses[i] = NOWHERE;
	}
	r = read_symbols(m);
	if (r == 0)
		r = place_all(m);
	/* Before the text is relocated: the sizes of patched sites follow from the file's bytes. */
	for (size_t i = 0; i < kernel_site_tables_n && r == 0; i++)
		r = mask_sites(m, &kernel_site_tables[i]);
	for (size_t i = 1; i < n && r == 0; i++) {
		CLEANUP_FREE Elf64_Rela *relas = NULL;
		size_t n_relas;

		if (!is_text(m, i) || m->addresses[i] == NOWHERE)
			continue;
		r = read_relocations(m, i, &relas, &n_relas);
		for (size_t j = 0; j < n_relas && r == 0; j++)
			r = relocate(m, i, m->text->bytes + (m->addresses[i] - m->text->address),
				     &relas[j]);
	}
	return r;
}

int kernel_file_link_module(const struct kernel_file *file, const struct kernel_elf *e,
			    struct kernel_file_text *ret)
{
	struct module m = {.file = file, .elf = e, .text = ret};
	int r = link_module(&m);

	free(m.addresses);
	free(m.symbols);
	free(m.strings);
	return r;
}
