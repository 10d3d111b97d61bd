/*
 * Opens an ELF file by libelf: its build id, its segments, its code sections, its addresses.
 */
#include "sideband/elf/elf.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base.h"
#include "sideband/elf/elf_private.h"

#define MAX_SPANS 1024u
#define MAX_NOTES 16u

/* --- Addresses --- */

/* 0 or -ENOMEM. Adds nothing beyond MAX_SPANS. */
static int add_span(struct elf_spans *s, const struct elf_span *span)
{
	if (s->n == MAX_SPANS)
		return 0;
	if (ARRAY_RESERVE(s->items, s->capacity, s->n + 1) < 0)
		return -ENOMEM;
	s->items[s->n++] = *span;
	return 0;
}

/* Clips SIZE bytes at OFFSET to the file. False: nothing is left. */
static bool span_of(const struct elf_file *f, uint64_t offset, uint64_t size, uint64_t address,
		    struct elf_span *ret)
{
	if (size == 0 || offset >= f->size)
		return false;
	*ret = (struct elf_span){offset, offset + MIN_OF(size, f->size - offset), address};
	return true;
}

bool elf_offset_of(const struct elf_file *f, uint64_t address, uint64_t *ret)
{
	for (size_t i = 0; i < f->segments.n; i++) {
		const struct elf_span *s = &f->segments.items[i];

		if (address < s->address || address - s->address >= s->end - s->begin)
			continue;
		*ret = s->begin + (address - s->address);
		return true;
	}
	return false;
}

bool elf_file_address(const struct elf_file *f, uint64_t offset, uint64_t *ret)
{
	for (size_t i = 0; i < f->segments.n; i++) {
		const struct elf_span *s = &f->segments.items[i];

		if (offset < s->begin || offset >= s->end)
			continue;
		*ret = s->address + (offset - s->begin);
		return true;
	}
	return false;
}

bool elf_file_code(const struct elf_file *f, uint64_t offset, uint64_t *ret_begin,
		   uint64_t *ret_end)
{
	for (size_t i = f->code.n; i-- > 0;) {
		const struct elf_span *s = &f->code.items[i];

		if (offset < s->begin || offset >= s->end)
			continue;
		*ret_begin = s->begin;
		*ret_end = s->end;
		return true;
	}
	return false;
}

void elf_file_foreach_section(struct elf_file *f,
			      void (*fn)(void *userdata, const struct elf_section *s),
			      void *userdata)
{
	Elf_Scn *scn = NULL;
	GElf_Shdr h;

	if (!elf_bring_section_names(f))
		return;
	while ((scn = elf_nextscn(f->elf, scn))) {
		struct elf_section s;

		if (!gelf_getshdr(scn, &h) || h.sh_type == SHT_NOBITS)
			continue;
		s = (struct elf_section){
			.name = elf_section_name(f, &h),
			.offset = h.sh_offset,
			.size = h.sh_size,
			.within = h.sh_offset <= f->size && h.sh_size <= f->size - h.sh_offset,
			.compressed = h.sh_flags & SHF_COMPRESSED,
		};
		fn(userdata, &s);
	}
}

static int read_segments(struct elf_file *f)
{
	size_t n;

	if (elf_getphdrnum(f->elf, &n) < 0)
		return 0;
	for (size_t i = 0; i < n; i++) {
		struct elf_span span;
		GElf_Phdr p;

		if (!gelf_getphdr(f->elf, (int)i, &p) || p.p_type != PT_LOAD ||
		    !span_of(f, p.p_offset, p.p_filesz, p.p_vaddr, &span))
			continue;
		if (add_span(&f->segments, &span) < 0)
			return -ENOMEM;
		/* read_code_sections() replaces these if there are sections. */
		if ((p.p_flags & PF_X) && add_span(&f->code, &span) < 0)
			return -ENOMEM;
	}
	return 0;
}

static int by_begin(const void *a, const void *b)
{
	const struct elf_span *x = a, *y = b;

	return x->begin < y->begin ? -1 : x->begin > y->begin;
}

static int read_code_sections(struct elf_file *f)
{
	struct elf_spans sections = {0};
	Elf_Scn *scn = NULL;
	struct elf_span span;
	GElf_Shdr h;

	while ((scn = elf_nextscn(f->elf, scn))) {
		if (!gelf_getshdr(scn, &h) || !(h.sh_flags & SHF_EXECINSTR) ||
		    h.sh_type == SHT_NOBITS ||
		    !span_of(f, h.sh_offset, h.sh_size, h.sh_addr, &span))
			continue;
		if (add_span(&sections, &span) < 0) {
			free(sections.items);
			return -ENOMEM;
		}
	}
	if (sections.n > 0) {
		free(f->code.items);
		f->code = sections;
	}
	if (f->code.n > 1)
		qsort(f->code.items, f->code.n, sizeof(*f->code.items), by_begin);
	return 0;
}

/* --- Build id --- */

/* Looks for the build id among the notes DATA (NULL: none). */
static bool find_build_id(struct elf_file *f, Elf_Data *data)
{
	size_t at = 0, next, name, desc;
	GElf_Nhdr note;

	while (data && (next = gelf_getnote(data, at, &note, &name, &desc)) > at) {
		const char *bytes = data->d_buf;

		at = next;
		if (note.n_type != NT_GNU_BUILD_ID || note.n_namesz != sizeof(ELF_NOTE_GNU) ||
		    memcmp(bytes + name, ELF_NOTE_GNU, sizeof(ELF_NOTE_GNU)) != 0 ||
		    note.n_descsz == 0)
			continue;
		f->build_id = (const uint8_t *)bytes + desc;
		f->build_id_size = note.n_descsz;
		return true;
	}
	return false;
}

static void read_build_id(struct elf_file *f)
{
	unsigned notes = 0;
	Elf_Scn *scn = NULL;
	GElf_Shdr h;
	GElf_Phdr p;
	size_t n;

	if (elf_getphdrnum(f->elf, &n) < 0)
		n = 0;
	for (size_t i = 0; i < n && notes < MAX_NOTES; i++) {
		if (!gelf_getphdr(f->elf, (int)i, &p) || p.p_type != PT_NOTE ||
		    p.p_offset > f->size || p.p_filesz > f->size - p.p_offset ||
		    !elf_bring(f, p.p_offset, p.p_filesz))
			continue;
		notes++;
		if (find_build_id(f,
				  elf_getdata_rawchunk(f->elf, (int64_t)p.p_offset, p.p_filesz,
						       p.p_align == 8 ? ELF_T_NHDR8 : ELF_T_NHDR)))
			return;
	}
	while (notes < MAX_NOTES && (scn = elf_nextscn(f->elf, scn))) {
		if (!gelf_getshdr(scn, &h) || h.sh_type != SHT_NOTE || !elf_bring_section(f, &h))
			continue;
		notes++;
		if (find_build_id(f, elf_getdata(scn, NULL)))
			return;
	}
}

/* --- The file --- */

static int read_names(struct elf_file *f)
{
	int r;

	r = read_segments(f);
	if (r < 0)
		return r;
	r = read_code_sections(f);
	if (r < 0)
		return r;
	r = elf_add_tables(f, f);
	if (r < 0)
		return r;
	r = elf_add_mini(f);
	if (r < 0)
		return r;
	r = elf_add_plt(f);
	if (r < 0)
		return r;
	r = elf_add_unwind(f);
	if (r < 0)
		return r;
	return elf_choose_symbols(f);
}

static int read_file(struct elf_file *f, enum elf_wanted wanted)
{
	if (!elf_is_known_kind(f) || elf_version(EV_CURRENT) == EV_NONE)
		return ELF_NOT;
	/* elf_memory() opens with ELF_C_READ, which never writes to the bytes. Its parameter is not
	 * const because other commands write. */
	f->elf = elf_memory((char *)(uintptr_t)f->bytes, f->size);
	if (!f->elf || elf_kind(f->elf) != ELF_K_ELF)
		return ELF_NOT;
	/* First, as it needs few bytes. */
	read_build_id(f);
	return wanted == ELF_NAMES ? read_names(f) : 0;
}

int elf_file_open(const struct elf_bytes *bytes, enum elf_wanted wanted, struct elf_file **ret)
{
	struct elf_file *f = calloc(1, sizeof(*f));
	int r;

	if (!f)
		return -ENOMEM;
	f->bytes = bytes->bytes;
	f->size = bytes->size;
	f->need = bytes->need;
	f->userdata = bytes->userdata;
	f->room = bytes->room;
	r = read_file(f, wanted);
	if (r != 0) {
		elf_file_free(f);
		return r;
	}
	*ret = f;
	return 0;
}

int elf_file_new(const uint8_t *bytes, size_t size, struct elf_file **ret)
{
	return elf_file_open(&(struct elf_bytes){.bytes = bytes, .size = size}, ELF_NAMES, ret);
}

void elf_file_free(struct elf_file *f)
{
	if (!f)
		return;
	for (size_t i = 0; i < f->n_plt_names; i++)
		free(f->plt_names[i]);
	free(f->plt_names);
	free(f->candidates);
	free(f->symbols);
	free(f->ranks);
	free(f->segments.items);
	free(f->code.items);
	elf_end(f->elf);
	elf_file_free(f->debug);
	elf_drop_mini(f);
	free(f);
}

const uint8_t *elf_file_build_id(const struct elf_file *f, size_t *ret_size)
{
	*ret_size = f->build_id_size;
	return f->build_id;
}
