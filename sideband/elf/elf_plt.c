/*
 * Names PLT entries.
 *
 * A PLT entry jumps through a slot of the GOT, and a relocation names the symbol whose address the
 * dynamic linker writes to the slot. An entry is therefore named by its jump, however the linker
 * arranged .plt, .plt.sec and .plt.got.
 */
#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base.h"
#include "sideband/elf/elf_private.h"

#define MAX_SLOTS      65536u
#define MAX_TABLES     8u
#define MAX_NAME_BYTES ((size_t)16 << 20) /* of all names together */
#define ENTRY_USUAL    16u
#define RANK	       1u /* that of a global symbol without a size */

struct slot {
	uint64_t address;
	const char *name;
};

struct slots {
	struct slot *items;
	size_t n, capacity;
	uint64_t got; /* %ebx points there in 32-bit position-independent code */
};

static bool get_relocation(Elf_Data *data, int index, bool with_addend, GElf_Rela *ret)
{
	GElf_Rel rel;

	if (with_addend)
		return gelf_getrela(data, index, ret);
	if (!gelf_getrel(data, index, &rel))
		return false;
	*ret = (GElf_Rela){.r_offset = rel.r_offset, .r_info = rel.r_info};
	return true;
}

/* The dynamic symbols that the relocations of section H refer to; NULL: none. */
static Elf_Data *symbols_of(struct elf_file *f, const GElf_Shdr *h, struct elf_strings *ret_strings)
{
	Elf_Scn *scn = elf_getscn(f->elf, h->sh_link);
	GElf_Shdr symbols;

	if (!scn || !gelf_getshdr(scn, &symbols) || symbols.sh_type != SHT_DYNSYM ||
	    !elf_bring_section(f, h) || !elf_bring_section(f, &symbols) ||
	    !elf_bring_strings(f, symbols.sh_link, ret_strings))
		return NULL;
	return elf_getdata(scn, NULL);
}

static int read_relocations(struct elf_file *f, Elf_Scn *scn, const GElf_Shdr *h,
			    struct slots *slots)
{
	bool with_addend = h->sh_type == SHT_RELA;
	struct elf_strings strings;
	Elf_Data *symbols = symbols_of(f, h, &strings);
	Elf_Data *data = symbols ? elf_getdata(scn, NULL) : NULL;
	GElf_Rela rela;

	if (!data)
		return 0;
	for (int i = 0; get_relocation(data, i, with_addend, &rela); i++) {
		uint64_t type = GELF_R_TYPE(rela.r_info);
		const char *name;
		GElf_Sym sym;

		/* R_386_GLOB_DAT and R_386_JMP_SLOT have the same numbers. */
		if ((type != R_X86_64_GLOB_DAT && type != R_X86_64_JUMP_SLOT) ||
		    !gelf_getsym(symbols, (int)GELF_R_SYM(rela.r_info), &sym))
			continue;
		name = elf_string(&strings, sym.st_name);
		if (!name || !name[0] || slots->n == MAX_SLOTS)
			continue;
		if (ARRAY_RESERVE(slots->items, slots->capacity, slots->n + 1) < 0)
			return -ENOMEM;
		slots->items[slots->n++] = (struct slot){.address = rela.r_offset, .name = name};
	}
	return 0;
}

static int by_address(const void *a, const void *b)
{
	const struct slot *x = a, *y = b;

	return x->address < y->address ? -1 : x->address > y->address;
}

static int read_slots(struct elf_file *f, struct slots *slots)
{
	unsigned tables = 0;
	Elf_Scn *scn = NULL;
	GElf_Shdr h;

	while ((scn = elf_nextscn(f->elf, scn))) {
		if (!gelf_getshdr(scn, &h))
			continue;
		if (strcmp(elf_section_name(f, &h), ".got.plt") == 0)
			slots->got = h.sh_addr;
		if ((h.sh_type != SHT_RELA && h.sh_type != SHT_REL) || tables++ >= MAX_TABLES)
			continue;
		if (read_relocations(f, scn, &h, slots) < 0)
			return -ENOMEM;
	}
	if (slots->n > 1)
		qsort(slots->items, slots->n, sizeof(*slots->items), by_address);
	return 0;
}

/* Finds the address of the slot that the entry at CODE, mapped at ADDRESS, jumps through: JMP r/m
 * with a displacement (SDM volume 2, opcode FF /4), maybe after ENDBR and a BND prefix. */
static bool slot_of(const struct elf_file *f, const struct slots *slots, const uint8_t *code,
		    size_t size, uint64_t address, uint64_t *ret)
{
	static const uint8_t endbr[] = {0xf3, 0x0f, 0x1e};
	bool wide = gelf_getclass(f->elf) == ELFCLASS64;
	size_t at = 0;
	uint32_t v;

	if (size >= 4 && memcmp(code, endbr, sizeof(endbr)) == 0)
		at = 4;
	if (at < size && code[at] == 0xf2)
		at++;
	if (size < at + 6 || code[at] != 0xff || (code[at + 1] != 0x25 && code[at + 1] != 0xa3))
		return false;
	memcpy(&v, code + at + 2, sizeof(v));
	v = le32toh(v);
	if (wide)
		*ret = address + at + 6 + (uint64_t)(int64_t)(int32_t)v;
	else
		*ret = (uint32_t)(v + (code[at + 1] == 0xa3 ? slots->got : 0));
	return !wide || code[at + 1] == 0x25;
}

/* Makes NAME@plt; *ret NULL: the limit is reached. 0, -ENOMEM. */
static int make_name(struct elf_file *f, const char *name, const char **ret)
{
	size_t size = strlen(name) + sizeof("@plt");
	char *made;

	*ret = NULL;
	if (size > MAX_NAME_BYTES - f->plt_names_bytes)
		return 0;
	if (ARRAY_RESERVE(f->plt_names, f->plt_names_capacity, f->n_plt_names + 1) < 0)
		return -ENOMEM;
	made = malloc(size);
	if (!made)
		return -ENOMEM;
	snprintf(made, size, "%s@plt", name);
	f->plt_names_bytes += size;
	f->plt_names[f->n_plt_names++] = made;
	*ret = made;
	return 0;
}

/* Names the entry of STEP bytes AT bytes into the section H. */
static int read_entry(struct elf_file *f, const struct slots *slots, const GElf_Shdr *h,
		      uint64_t at, uint64_t step)
{
	struct elf_symbol s = {.offset = h->sh_offset + at, .size = step};
	const struct slot *found;
	struct slot key = {0};
	int r;

	if (!slot_of(f, slots, f->bytes + s.offset, (size_t)step, h->sh_addr + at, &key.address))
		return 0;
	found = bsearch(&key, slots->items, slots->n, sizeof(key), by_address);
	if (!found)
		return 0;
	r = make_name(f, found->name, &s.name);
	return r < 0 || !s.name ? r : elf_add_candidate(f, &s, RANK);
}

/* Names the entries of the section H. */
static int read_entries(struct elf_file *f, const struct slots *slots, const GElf_Shdr *h)
{
	uint64_t step = h->sh_entsize >= 8 && h->sh_entsize <= 64 ? h->sh_entsize : ENTRY_USUAL;
	int r = 0;

	if (h->sh_offset > f->size || h->sh_size > f->size - h->sh_offset ||
	    h->sh_type != SHT_PROGBITS || !elf_bring_section(f, h))
		return 0;
	for (uint64_t at = 0; h->sh_size - at >= step && at / step < MAX_SLOTS && !r; at += step)
		r = read_entry(f, slots, h, at, step);
	return r;
}

int elf_add_plt(struct elf_file *f)
{
	struct slots slots = {0};
	unsigned tables = 0;
	Elf_Scn *scn = NULL;
	GElf_Shdr h;
	int r;

	if (!elf_bring_section_names(f))
		return 0;
	r = read_slots(f, &slots);
	while (!r && slots.n > 0 && tables < MAX_TABLES && (scn = elf_nextscn(f->elf, scn))) {
		if (!gelf_getshdr(scn, &h) || strncmp(elf_section_name(f, &h), ".plt", 4) != 0)
			continue;
		tables++;
		r = read_entries(f, &slots, &h);
	}
	free(slots.items);
	return r;
}
