#include "tests/unit/sideband/dwarf_maker.h"

#include <assert.h>
#include <byteswap.h>
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <dwarf.h>
#include <zlib.h>
#include <zstd.h>

#include "proto/base.h"
#include "tests/unit/sideband/elf_maker.h"

void dwarf_put(struct dwarf_bytes *b, uint64_t value, size_t size)
{
	assert(b->n + size <= sizeof(b->bytes));
	memcpy(b->bytes + b->n, &value, size);
	b->n += size;
}

void dwarf_put_unsigned(struct dwarf_bytes *b, uint64_t value)
{
	for (; value >= 0x80; value >>= 7)
		dwarf_put(b, (value & 0x7f) | 0x80, 1);
	dwarf_put(b, value, 1);
}

void dwarf_put_signed(struct dwarf_bytes *b, int64_t value)
{
	for (; value < -64 || value > 63; value >>= 7)
		dwarf_put(b, ((uint64_t)value & 0x7f) | 0x80, 1);
	dwarf_put(b, (uint64_t)value & 0x7f, 1);
}

void dwarf_put_text(struct dwarf_bytes *b, const char *text)
{
	for (size_t i = 0; i <= strlen(text); i++)
		dwarf_put(b, (uint8_t)text[i], 1);
}

/* clang-format off */
#define CODE DW_AT_low_pc, DW_FORM_addr, DW_AT_high_pc, DW_FORM_data4
static const unsigned shapes[][16] = {
	[SHAPE_UNIT] = {DW_TAG_compile_unit, 1, DW_AT_name, DW_FORM_string, DW_AT_comp_dir,
			DW_FORM_string, CODE, DW_AT_stmt_list, DW_FORM_sec_offset},
	[SHAPE_FUNCTION] = {DW_TAG_subprogram, 1, DW_AT_name, DW_FORM_string, CODE},
	[SHAPE_INLINED] = {DW_TAG_inlined_subroutine, 1, DW_AT_abstract_origin, DW_FORM_ref4, CODE,
			   DW_AT_call_file, DW_FORM_data1, DW_AT_call_line, DW_FORM_data2,
			   DW_AT_call_column, DW_FORM_data1},
	[SHAPE_ABSTRACT] = {DW_TAG_subprogram, 0, DW_AT_name, DW_FORM_string, DW_AT_linkage_name,
			    DW_FORM_string},
	[SHAPE_BLOCK] = {DW_TAG_lexical_block, 1},
	[SHAPE_CLONE] = {DW_TAG_subprogram, 1, DW_AT_abstract_origin, DW_FORM_ref4, CODE},
	[SHAPE_ORIGIN] = {DW_TAG_subprogram, 0, DW_AT_abstract_origin, DW_FORM_ref4},
	[SHAPE_APART] = {DW_TAG_subprogram, 1, DW_AT_name, DW_FORM_GNU_strp_alt,
			 DW_AT_abstract_origin, DW_FORM_GNU_ref_alt, CODE},
	[SHAPE_OLD_SKELETON] = {DW_TAG_compile_unit, 0, DW_AT_GNU_dwo_name, DW_FORM_string,
				DW_AT_GNU_dwo_id, DW_FORM_data8, CODE, DW_AT_stmt_list,
				DW_FORM_sec_offset},
	[SHAPE_SKELETON] = {DW_TAG_skeleton_unit, 0, DW_AT_dwo_name, DW_FORM_string, CODE,
			    DW_AT_stmt_list, DW_FORM_sec_offset},
	[SHAPE_BARE] = {DW_TAG_compile_unit, 1},
	[SHAPE_ELSEWHERE] = {DW_TAG_subprogram, 0, DW_AT_abstract_origin, DW_FORM_ref_addr, CODE},
	[SHAPE_SPACE] = {DW_TAG_namespace, 1, DW_AT_name, DW_FORM_string},
	[SHAPE_LINKED] = {DW_TAG_compile_unit, 1, DW_AT_stmt_list, DW_FORM_sec_offset},
};
/* clang-format on */

static void put_shapes(struct dwarf_bytes *b)
{
	for (unsigned i = SHAPE_UNIT; i < ARRAY_SIZE(shapes); i++) {
		dwarf_put_unsigned(b, i);
		dwarf_put_unsigned(b, shapes[i][0]);
		dwarf_put(b, shapes[i][1], 1);
		for (size_t k = 2; k < 16 && shapes[i][k]; k += 2) {
			dwarf_put_unsigned(b, shapes[i][k]);
			dwarf_put_unsigned(b, shapes[i][k + 1]);
		}
		dwarf_put(b, 0, 2);
	}
	dwarf_put(b, 0, 1);
}

static void begin_unit(struct dwarf_maker *m, unsigned version, unsigned type)
{
	m->unit = m->info.n;
	dwarf_put(&m->info, 0, 4);
	dwarf_put(&m->info, version, 2);
	if (version == 5) {
		dwarf_put(&m->info, type, 1);
		dwarf_put(&m->info, 8, 1);
	}
	dwarf_put(&m->info, 0, 4);
	if (version == 4)
		dwarf_put(&m->info, 8, 1);
	if (version == 5 && type != DW_UT_compile && type != DW_UT_partial)
		dwarf_put(&m->info, 0x1234, 8);
}

void dwarf_maker_init(struct dwarf_maker *m, unsigned version, unsigned type)
{
	memset(m, 0, sizeof(*m));
	put_shapes(&m->abbrev);
	begin_unit(m, version, type);
}

uint32_t dwarf_maker_entry(struct dwarf_maker *m, enum dwarf_shape shape)
{
	uint32_t at = (uint32_t)(m->info.n - m->unit);

	dwarf_put_unsigned(&m->info, shape);
	return at;
}

static void put_code(struct dwarf_maker *m, uint64_t begin, uint64_t size)
{
	dwarf_put(&m->info, begin, 8);
	dwarf_put(&m->info, size, 4);
}

void dwarf_maker_unit(struct dwarf_maker *m, uint64_t begin, uint64_t size)
{
	dwarf_maker_entry(m, SHAPE_UNIT);
	dwarf_put_text(&m->info, "a.c");
	dwarf_put_text(&m->info, "/src");
	put_code(m, begin, size);
	dwarf_put(&m->info, 0, 4);
}

void dwarf_maker_function(struct dwarf_maker *m, const char *name, uint64_t begin, uint64_t size)
{
	dwarf_maker_entry(m, SHAPE_FUNCTION);
	dwarf_put_text(&m->info, name);
	put_code(m, begin, size);
}

void dwarf_maker_inlined(struct dwarf_maker *m, uint32_t origin, uint64_t begin, uint64_t size,
			 unsigned line)
{
	dwarf_maker_entry(m, SHAPE_INLINED);
	dwarf_put(&m->info, origin, 4);
	put_code(m, begin, size);
	dwarf_put(&m->info, 1, 1);
	dwarf_put(&m->info, line, 2);
	dwarf_put(&m->info, 7, 1);
}

uint32_t dwarf_maker_abstract(struct dwarf_maker *m, const char *name, const char *linkage)
{
	uint32_t at = dwarf_maker_entry(m, SHAPE_ABSTRACT);

	dwarf_put_text(&m->info, name);
	dwarf_put_text(&m->info, linkage);
	return at;
}

static void put_length(struct dwarf_bytes *b, size_t begin)
{
	uint32_t length = (uint32_t)(b->n - begin - 4);

	memcpy(b->bytes + begin, &length, sizeof(length));
}

void dwarf_maker_end_unit(struct dwarf_maker *m)
{
	put_length(&m->info, m->unit);
}

size_t dwarf_maker_lines(struct dwarf_maker *m)
{
	static const uint8_t lengths[] = {0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1};
	struct dwarf_bytes *b = &m->line;
	size_t begin = b->n, header;

	dwarf_put(b, 0, 4);
	dwarf_put(b, 4, 2);
	header = b->n;
	dwarf_put(b, 0, 4);
	dwarf_put(b, 1, 1);	      /* minimum_instruction_length */
	dwarf_put(b, 1, 1);	      /* maximum_operations_per_instruction */
	dwarf_put(b, 1, 1);	      /* default_is_stmt */
	dwarf_put(b, (uint8_t)-3, 1); /* line base */
	dwarf_put(b, 12, 1);	      /* line range */
	dwarf_put(b, sizeof(lengths) + 1, 1);
	for (size_t i = 0; i < sizeof(lengths); i++)
		dwarf_put(b, lengths[i], 1);
	dwarf_put_text(b, "sub");
	dwarf_put(b, 0, 1);
	dwarf_put_text(b, "a.c");
	dwarf_put(b, 0, 3);
	dwarf_put_text(b, "b.h");
	dwarf_put(b, 1, 3);
	dwarf_put_text(b, "/c.h");
	dwarf_put(b, 0, 3);
	dwarf_put(b, 0, 1);
	put_length(b, header);
	return begin;
}

void dwarf_maker_end_lines(struct dwarf_maker *m, size_t begin)
{
	put_length(&m->line, begin);
}

void dwarf_maker_row(struct dwarf_maker *m, uint64_t address, unsigned advance, unsigned file,
		     int line_more)
{
	struct dwarf_bytes *b = &m->line;

	if (address) {
		dwarf_put(b, 0, 1);
		dwarf_put_unsigned(b, 9);
		dwarf_put(b, DW_LNE_set_address, 1);
		dwarf_put(b, address, 8);
	}
	dwarf_put(b, DW_LNS_advance_pc, 1);
	dwarf_put_unsigned(b, advance);
	dwarf_put(b, DW_LNS_set_file, 1);
	dwarf_put_unsigned(b, file);
	dwarf_put(b, DW_LNS_advance_line, 1);
	dwarf_put_signed(b, line_more);
	dwarf_put(b, DW_LNS_copy, 1);
}

void dwarf_maker_end_sequence(struct dwarf_maker *m, unsigned advance)
{
	dwarf_put(&m->line, DW_LNS_advance_pc, 1);
	dwarf_put_unsigned(&m->line, advance);
	dwarf_put(&m->line, 0, 1);
	dwarf_put_unsigned(&m->line, 1);
	dwarf_put(&m->line, DW_LNE_end_sequence, 1);
}

/* --- The file --- */

/* The header of a packed section: that of SHF_COMPRESSED, or the old one. */
static size_t put_packing(const struct dwarf_maker *m, uint64_t size, uint8_t *to)
{
	const Elf64_Chdr header = {.ch_type = m->packing == DWARF_ZSTD ? 2 : ELFCOMPRESS_ZLIB,
				   .ch_size = size,
				   .ch_addralign = 1};

	if (m->packing != DWARF_OLD) {
		memcpy(to, &header, sizeof(header));
		return sizeof(header);
	}
	memcpy(to, "ZLIB", 4);
	size = bswap_64(size);
	memcpy(to + 4, &size, 8);
	return 12;
}

static void add(const struct dwarf_maker *m, struct elf_maker *e, const char *name,
		const struct dwarf_bytes *b)
{
	static uint8_t packed[2 * DWARF_MAKER_BYTES];
	size_t header = put_packing(m, m->claimed ? m->claimed : b->n, packed);
	uLongf n = sizeof(packed) - header;
	char full[32];

	snprintf(full, sizeof(full), m->packing == DWARF_OLD ? ".zdebug_%s" : ".debug_%s", name);
	if (b->n == 0)
		return;
	if (m->packing == DWARF_PLAIN) {
		elf_maker_add(e, full, SHT_PROGBITS, 0, 0, b->bytes, b->n);
		return;
	}
	if (m->packing == DWARF_ZSTD)
		n = ZSTD_compress(packed + header, n, b->bytes, b->n, 1);
	else
		compress(packed + header, &n, b->bytes, b->n);
	elf_maker_add(e, full, SHT_PROGBITS, m->packing == DWARF_OLD ? 0 : SHF_COMPRESSED, 0,
		      packed, header + n);
}

uint8_t *dwarf_maker_file(const struct dwarf_maker *m, size_t *ret_size)
{
	static struct elf_maker e;
	char further[64] = "";

	elf_maker_init(&e, ET_DYN);
	/* Separates the other sections from the bytes that are requested for the file's header. */
	elf_maker_add(&e, ".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, 0x1000, further, 1);
	add(m, &e, "info", &m->info);
	add(m, &e, "abbrev", &m->abbrev);
	add(m, &e, "line", &m->line);
	if (m->further) {
		strncpy(further, m->further_text, sizeof(further) - 1);
		elf_maker_add(&e, m->further, SHT_PROGBITS, 0, 0, further, sizeof(further));
	}
	return elf_maker_end(&e, ret_size);
}
