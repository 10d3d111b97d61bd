/*
 * The bounds of functions from the unwind table (.eh_frame), which stripped files keep.
 *
 * Each entry of the table (FDE) has the address and the size of one function, or of a part of a
 * function that lies apart (Linux Standard Base Core Specification, Exception Frames). An entry has
 * no name: it becomes a symbol without a name, which loses against every named symbol at the same
 * offset and gives its size to a named symbol that has none.
 */
#include <elfutils/libdw.h>
#include <endian.h>
#include <string.h>

#include <dwarf.h>

#include "proto/base.h"
#include "sideband/elf/elf_private.h"

#define NO_CIE	    UINT64_MAX
#define FORMAT	    0x0fu
#define APPLICATION 0x70u

struct unwind {
	struct elf_file *file;
	Elf_Data *data;	  /* .eh_frame */
	uint64_t address; /* where the file maps it */
	unsigned address_size;
	uint64_t cie;	   /* the last one that was read */
	unsigned encoding; /* of addresses in the entries of CIE (DW_EH_PE_*) */
};

/* Reads a value in FORMAT (DW_EH_PE_*) at *AT and moves *AT behind it. False: an unknown format, or
 * the value does not end before END. */
static bool read_value(const struct unwind *u, unsigned format, const uint8_t **at,
		       const uint8_t *end, uint64_t *ret)
{
	size_t size;
	uint64_t v = 0;

	switch (format & 7) {
	case DW_EH_PE_absptr: size = u->address_size; break;
	case DW_EH_PE_udata2: size = 2; break;
	case DW_EH_PE_udata4: size = 4; break;
	case DW_EH_PE_udata8: size = 8; break;
	default: return false;
	}
	if ((size_t)(end - *at) < size)
		return false;
	memcpy(&v, *at, size);
	v = le64toh(v);
	if ((format & DW_EH_PE_signed) && size < 8 && v >> (8 * size - 1))
		v |= UINT64_MAX << 8 * size;
	*at += size;
	*ret = v;
	return true;
}

/* Finds the encoding of addresses in CIE's augmentation. False: it is not known. */
static bool read_encoding(const struct unwind *u, const Dwarf_CIE *cie, unsigned *ret)
{
	const uint8_t *at = cie->augmentation_data, *end = at + cie->augmentation_data_size;
	uint64_t ignored;

	*ret = DW_EH_PE_absptr;
	if (cie->augmentation[0] != 'z')
		return cie->augmentation[0] == '\0';
	for (const char *c = cie->augmentation + 1; *c != '\0'; c++) {
		if (*c == 'S' || *c == 'B')
			continue;
		if (at == end)
			return false;
		if (*c == 'R') {
			*ret = *at;
			return true;
		}
		if (*c == 'P') {
			unsigned format = *at++;

			if (!read_value(u, format & FORMAT, &at, end, &ignored))
				return false;
		} else if (*c == 'L') {
			at++;
		} else {
			return false;
		}
	}
	return true;
}

/* Makes CIE the last one that was read. False: it cannot be used. */
static bool read_cie(struct unwind *u, uint64_t cie)
{
	const uint8_t *ident = (const uint8_t *)elf_getident(u->file->elf, NULL);
	Dwarf_CFI_Entry entry;
	Dwarf_Off next;

	if (u->cie == cie)
		return true;
	u->cie = NO_CIE;
	if (dwarf_next_cfi(ident, u->data, true, cie, &next, &entry) != 0 ||
	    !dwarf_cfi_cie_p(&entry) || !read_encoding(u, &entry.cie, &u->encoding))
		return false;
	u->cie = cie;
	return true;
}

/* Adds the function of one entry. 0 or -ENOMEM. */
static int add_entry(struct unwind *u, const Dwarf_FDE *fde)
{
	const uint8_t *at = fde->start, *base = u->data->d_buf;
	struct elf_symbol s = {0};
	uint64_t address, begin, end;

	if (!read_cie(u, fde->CIE_pointer) ||
	    !read_value(u, u->encoding & FORMAT, &at, fde->end, &address) ||
	    !read_value(u, u->encoding & FORMAT & ~(unsigned)DW_EH_PE_signed, &at, fde->end,
			&s.size))
		return 0;
	switch (u->encoding & ~FORMAT) {
	case DW_EH_PE_absptr: break;
	case DW_EH_PE_pcrel: address += u->address + (uint64_t)(fde->start - base); break;
	default: return 0;
	}
	if (u->address_size == 4)
		address = (uint32_t)address;
	if (s.size == 0 || !elf_offset_of(u->file, address, &s.offset) ||
	    !elf_file_code(u->file, s.offset, &begin, &end))
		return 0;
	s.size = MIN_OF(s.size, end - s.offset);
	return elf_add_candidate(u->file, &s, ELF_RANK_UNNAMED);
}

/* Finds .eh_frame, and brings its bytes. */
static bool find_section(struct unwind *u)
{
	Elf_Scn *scn = NULL;
	GElf_Shdr h;

	if (!elf_bring_section_names(u->file))
		return false;
	while ((scn = elf_nextscn(u->file->elf, scn))) {
		if (!gelf_getshdr(scn, &h) || h.sh_type == SHT_NOBITS ||
		    strcmp(elf_section_name(u->file, &h), ".eh_frame") != 0)
			continue;
		u->address = h.sh_addr;
		u->data = elf_bring_section(u->file, &h) ? elf_getdata(scn, NULL) : NULL;
		return u->data && u->data->d_buf;
	}
	return false;
}

int elf_add_unwind(struct elf_file *f)
{
	const uint8_t *ident = (const uint8_t *)elf_getident(f->elf, NULL);
	struct unwind u = {
		.file = f,
		.cie = NO_CIE,
		.address_size = gelf_getclass(f->elf) == ELFCLASS32 ? 4 : 8,
	};
	Dwarf_CFI_Entry entry;
	Dwarf_Off next = 0;
	int r = 0;

	if (!find_section(&u))
		return 0;
	while (r == 0 && dwarf_next_cfi(ident, u.data, true, next, &next, &entry) == 0)
		if (!dwarf_cfi_cie_p(&entry))
			r = add_entry(&u, &entry.fde);
	return r;
}
