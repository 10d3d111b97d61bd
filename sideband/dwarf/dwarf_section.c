/*
 * The sections of DWARF that lines and inlining need: found, brought, counted, unpacked, for libdw.
 *
 * libelf does not unpack them, as elf_compress() would change the headers in the file's own bytes,
 * and would unpack before the size is checked.
 *
 * libdw gets a stub: an ELF file of our making whose sections point to the bytes where they are. In
 * the stub no section says where another file lies (.gnu_debugaltlink), nothing is packed, and none
 * of the file's own headers is read twice.
 */
#include <byteswap.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <gelf.h>
#include <zlib.h>
#include <zstd.h>

#include "proto/base.h"
#include "sideband/dwarf/dwarf_private.h"

#ifndef ELFCOMPRESS_ZSTD
#define ELFCOMPRESS_ZSTD 2
#endif

/* The header of .zdebug sections, which GNU tools made before SHF_COMPRESSED existed: the magic,
 * and eight bytes of size in big-endian order. */
#define OLD_MAGIC "ZLIB"
#define OLD_SIZE  12u

enum packing { PACKING_NONE, PACKING_ZLIB, PACKING_ZSTD, PACKING_UNKNOWN };

struct found {
	uint64_t offset, size; /* in the file */
	bool compressed;       /* SHF_COMPRESSED */
	bool old;	       /* .zdebug */
	bool there;
	enum packing packing;
	uint64_t skip;	   /* bytes of the header before the packed bytes */
	uint64_t unpacked; /* bytes */
	bool copied;	   /* less than DWARF_TAIL bytes of the file follow */
};

#define NAME_PREFIX ".debug_"
#define OLD_PREFIX  ".zdebug_"
#define NAME_SIZE   24u

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

/* --- Finding --- */

static bool has_prefix(const char *text, const char *prefix)
{
	return strncmp(text, prefix, strlen(prefix)) == 0;
}

/* Keeps a section of DWARF. If several have one name, the first one counts, as in all readers. */
static void keep_section(void *userdata, const struct elf_section *s)
{
	bool old = has_prefix(s->name, OLD_PREFIX);
	struct found *found = userdata;
	const char *rest;

	if (!old && !has_prefix(s->name, NAME_PREFIX))
		return;
	rest = s->name + strlen(old ? OLD_PREFIX : NAME_PREFIX);
	for (size_t i = 0; i < DWARF_N_SECTIONS; i++) {
		if (found[i].there || strcmp(rest, names[i] + strlen(NAME_PREFIX)) != 0)
			continue;
		found[i] = (struct found){.offset = s->offset,
					  .size = s->size,
					  .compressed = s->compressed,
					  .old = old,
					  .there = s->within && s->size > 0};
	}
}

/* --- Packing --- */

static void set_packing(struct found *f, uint32_t type, uint64_t size, uint64_t skip)
{
	f->skip = skip;
	f->unpacked = size;
	f->packing = type == ELFCOMPRESS_ZLIB	? PACKING_ZLIB
		     : type == ELFCOMPRESS_ZSTD ? PACKING_ZSTD
						: PACKING_UNKNOWN;
}

/* Reads how the section, whose bytes were brought, is packed. */
static void read_packing(const struct elf_bytes *bytes, struct found *f)
{
	const uint8_t *at = bytes->bytes + f->offset;
	Elf64_Chdr wide;
	Elf32_Chdr narrow;
	uint64_t size;

	f->unpacked = f->size;
	if (!f->compressed && !f->old)
		return;
	f->packing = PACKING_UNKNOWN;
	if (f->old) {
		if (f->size < OLD_SIZE || memcmp(at, OLD_MAGIC, strlen(OLD_MAGIC)) != 0)
			return;
		memcpy(&size, at + strlen(OLD_MAGIC), sizeof(size));
		set_packing(f, ELFCOMPRESS_ZLIB, bswap_64(size), OLD_SIZE);
	} else if (bytes->bytes[EI_CLASS] == ELFCLASS32) {
		if (f->size < sizeof(narrow))
			return;
		memcpy(&narrow, at, sizeof(narrow));
		set_packing(f, narrow.ch_type, narrow.ch_size, sizeof(narrow));
	} else if (f->size >= sizeof(wide)) {
		memcpy(&wide, at, sizeof(wide));
		set_packing(f, wide.ch_type, wide.ch_size, sizeof(wide));
	}
}

static bool unpack(const uint8_t *from, size_t size, enum packing packing, void *to, size_t to_size)
{
	uLongf n = to_size;

	switch (packing) {
	case PACKING_NONE: memcpy(to, from, size); return true;
	case PACKING_ZSTD: return ZSTD_decompress(to, to_size, from, size) == to_size;
	default: return uncompress(to, &n, from, size) == Z_OK && n == to_size;
	}
}

/* Makes the bytes of one section accessible. A section that cannot be unpacked is left out. 0 or
 * -ENOMEM. */
static int load(const uint8_t *bytes, const struct found *f, struct dwarf_section *ret)
{
	const uint8_t *from = bytes + f->offset + f->skip;
	void *to;

	if (f->packing == PACKING_NONE && !f->copied) {
		*ret = (struct dwarf_section){from, (size_t)f->size, NULL};
		return 0;
	}
	if (f->packing == PACKING_UNKNOWN || f->unpacked == 0)
		return 0;
	to = malloc((size_t)f->unpacked + DWARF_TAIL);
	if (!to)
		return -ENOMEM;
	memset((uint8_t *)to + f->unpacked, 0, DWARF_TAIL);
	if (!unpack(from, (size_t)(f->size - f->skip), f->packing, to, (size_t)f->unpacked)) {
		free(to);
		return 0;
	}
	*ret = (struct dwarf_section){to, (size_t)f->unpacked, to};
	return 0;
}

/* --- Reading --- */

/* Brings the bytes of one section, which the user may keep. 0, DWARF_NONE or DWARF_LARGE. */
static int bring(const struct elf_bytes *bytes, struct dwarf_limits *limits, const struct found *f)
{
	if (!bytes->need)
		return 0;
	if (limits && f->size > limits->left)
		return DWARF_LARGE;
	if (limits)
		limits->left -= f->size;
	if (bytes->need(bytes->userdata, f->offset, f->size))
		return 0;
	/* The bytes may be missing in a file of which only pieces are at hand. */
	return bytes->room && f->size > *bytes->room ? DWARF_LARGE : DWARF_NONE;
}

/* Brings and counts all sections before the first is unpacked: a section counts with its size in
 * the file before it is brought, and with its unpacked size afterwards. *ret_packed: the bytes that
 * unpacking and copying will take. 0, DWARF_NONE or DWARF_LARGE. */
static int bring_all(const struct elf_bytes *bytes, struct dwarf_limits *limits,
		     struct found *found, uint64_t *ret_packed)
{
	uint64_t sum = 0, packed = 0;
	int r;

	for (size_t i = 0; i < DWARF_N_SECTIONS; i++) {
		struct found *f = &found[i];

		if (!f->there)
			continue;
		if (f->size > DWARF_MAX_BYTES - sum)
			return DWARF_LARGE;
		r = bring(bytes, limits, f);
		if (r != 0)
			return r;
		read_packing(bytes, f);
		f->copied = bytes->size - f->offset - f->size < DWARF_TAIL;
		if (f->unpacked > DWARF_MAX_BYTES - sum)
			return DWARF_LARGE;
		sum += f->unpacked;
		packed += f->packing != PACKING_NONE || f->copied ? f->unpacked : 0;
	}
	*ret_packed = packed;
	return 0;
}

/* Text ends with its last complete string, so no read goes beyond it. */
static void end_text(struct dwarf_section *s)
{
	const uint8_t *end = s->size ? memrchr(s->bytes, 0, s->size) : NULL;

	s->size = end ? (size_t)(end - s->bytes) : 0;
}

static int read_found(const struct elf_bytes *bytes, struct dwarf_limits *limits,
		      struct found *found, struct dwarf_sections *ret)
{
	uint64_t packed = 0;
	int r;

	if (!found[DWARF_INFO].there || !found[DWARF_ABBREV].there)
		return DWARF_NONE;
	r = bring_all(bytes, limits, found, &packed);
	if (r != 0)
		return r;
	if (bytes->room) {
		if (packed > *bytes->room)
			return DWARF_LARGE;
		*bytes->room -= packed;
		ret->room = bytes->room;
		ret->taken = packed;
	}
	for (size_t i = 0; i < DWARF_N_SECTIONS && r == 0; i++)
		if (found[i].there)
			r = load(bytes->bytes, &found[i], &ret->of[i]);
	if (r != 0)
		return r;
	if (ret->of[DWARF_INFO].size == 0 || ret->of[DWARF_ABBREV].size == 0)
		return DWARF_NONE;
	end_text(&ret->of[DWARF_STR]);
	end_text(&ret->of[DWARF_LINE_STR]);
	return 0;
}

int dwarf_sections_read(const struct elf_bytes *bytes, struct dwarf_limits *limits,
			struct dwarf_sections *ret)
{
	struct found found[DWARF_N_SECTIONS] = {0};
	struct elf_file *f;
	int r;

	*ret = (struct dwarf_sections){0};
	/* Checks the header tables, which libelf would trust. */
	r = elf_file_open(bytes, ELF_BUILD_ID, &f);
	if (r != 0)
		return r == ELF_NOT ? DWARF_NONE : r;
	elf_file_foreach_section(f, keep_section, found);
	elf_file_free(f);
	return read_found(bytes, limits, found, ret);
}

void dwarf_sections_free(struct dwarf_sections *s)
{
	for (size_t i = 0; i < DWARF_N_SECTIONS; i++)
		free(s->of[i].owned);
	if (s->room)
		*s->room += s->taken;
}

/* --- The stub for libdw --- */

/* Sections 1 to DWARF_N_SECTIONS, empty at first, and then the section of names. */
struct stub_bytes {
	Elf64_Ehdr header;
	Elf64_Shdr sections[DWARF_N_SECTIONS + 2];
	char names[DWARF_N_SECTIONS + 2][NAME_SIZE];
};

struct dwarf_stub {
	struct stub_bytes bytes;
	Elf *elf;
	Dwarf *dwarf;
};

static void fill_headers(struct stub_bytes *m)
{
	const size_t strings = DWARF_N_SECTIONS + 1;

	m->header = (Elf64_Ehdr){
		.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
			    EV_CURRENT},
		.e_type = ET_EXEC,
		.e_machine = EM_X86_64,
		.e_version = EV_CURRENT,
		.e_shoff = offsetof(struct stub_bytes, sections),
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
					    .sh_offset = offsetof(struct stub_bytes, names),
					    .sh_size = sizeof(m->names),
					    .sh_addralign = 1};
}

/* Points the stub's sections to their bytes. 0 or -ENOMEM. */
static int fill_sections(Elf *elf, const struct dwarf_sections *sections)
{
	for (size_t i = 0; i < DWARF_N_SECTIONS; i++) {
		const struct dwarf_section *s = &sections->of[i];
		Elf_Data *data = elf_getdata(elf_getscn(elf, i + 1), NULL);

		if (!data)
			return -ENOMEM;
		/* libdw reads the header of these before it checks the size. */
		if (s->size < 16 && (i == DWARF_RNGLISTS || i == DWARF_STR_OFFSETS))
			continue;
		/* libdw only reads them. */
		data->d_buf = s->size ? (void *)(uintptr_t)s->bytes : NULL;
		data->d_size = s->size;
	}
	return 0;
}

/* libdw's own handler writes a message and exits with EXIT_FAILURE, which would look like a
 * decision of this program. */
__attribute__((noreturn)) static void no_memory(void)
{
	abort();
}

static int open_stub(struct dwarf_stub *s, const struct dwarf_sections *sections)
{
	int r;

	fill_headers(&s->bytes);
	if (elf_version(EV_CURRENT) == EV_NONE)
		return DWARF_NONE;
	s->elf = elf_memory((char *)&s->bytes, sizeof(s->bytes));
	if (!s->elf)
		return -ENOMEM;
	r = fill_sections(s->elf, sections);
	if (r < 0)
		return r;
	s->dwarf = dwarf_begin_elf(s->elf, DWARF_C_READ, NULL);
	if (!s->dwarf)
		return DWARF_NONE;
	dwarf_new_oom_handler(s->dwarf, no_memory);
	return 0;
}

int dwarf_stub_new(const struct dwarf_sections *sections, struct dwarf_stub **ret)
{
	struct dwarf_stub *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return -ENOMEM;
	r = open_stub(s, sections);
	if (r != 0) {
		dwarf_stub_free(s);
		return r;
	}
	*ret = s;
	return 0;
}

void dwarf_stub_free(struct dwarf_stub *s)
{
	if (!s)
		return;
	dwarf_end(s->dwarf);
	elf_end(s->elf);
	free(s);
}

Dwarf *dwarf_stub_dwarf(const struct dwarf_stub *s)
{
	return s->dwarf;
}
