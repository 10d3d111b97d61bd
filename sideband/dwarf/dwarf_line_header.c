/*
 * The header of a line table of DWARF 2 to 5: how to read its program, and the names of files.
 *
 * DWARF 5 section 6.2.4; its appendix F describes older versions.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include <dwarf.h>

#include "proto/base.h"
#include "sideband/dwarf/dwarf_private.h"

#define MAX_FORMATS 16u
#define MAX_NAMES   (1u << 20)
#define MAX_PATH    4096u
#define FIRST_NAMES ((size_t)16)

/* --- Tables --- */

/* True: a list of names may grow from CAPACITY to twice that, or to FIRST_NAMES at first. */
static bool may_grow(const struct dwarf_line_header *h, size_t capacity)
{
	return MAX_OF(2 * capacity, FIRST_NAMES) <= h->max_names;
}

static bool add_directory(struct dwarf_line_header *h, const char *name)
{
	if (h->n_directories == h->directories_capacity &&
	    (!may_grow(h, h->directories_capacity) ||
	     ARRAY_RESERVE(h->directories, h->directories_capacity,
			   MAX_OF(h->n_directories + 1, FIRST_NAMES)) < 0))
		return false;
	h->directories[h->n_directories++] = name;
	return true;
}

bool dwarf_line_add_file(struct dwarf_line_header *h, const char *name, uint64_t directory)
{
	if (h->n_files == h->files_capacity &&
	    (!may_grow(h, h->files_capacity) ||
	     ARRAY_RESERVE(h->files, h->files_capacity, MAX_OF(h->n_files + 1, FIRST_NAMES)) < 0))
		return false;
	h->files[h->n_files++] = (struct dwarf_line_file){
		.name = name, .directory = (uint32_t)MIN_OF(directory, (uint64_t)UINT32_MAX)};
	return true;
}

/* --- DWARF 2 to 4 --- */

/* The numbers of files begin with 1 in these versions. */
static bool read_old_tables(struct dwarf_line_header *h, struct dwarf_reader *r)
{
	const char *name;

	if (!add_directory(h, h->compilation_dir) || !dwarf_line_add_file(h, NULL, 0))
		return false;
	while ((name = dwarf_string(r)) && name[0])
		if (!add_directory(h, name))
			return false;
	while (!r->bad && (name = dwarf_string(r)) && name[0]) {
		uint64_t directory = dwarf_unsigned(r);

		dwarf_unsigned(r); /* time of modification */
		dwarf_unsigned(r); /* size */
		if (!dwarf_line_add_file(h, name, directory))
			return false;
	}
	return !r->bad;
}

/* --- DWARF 5 --- */

struct format {
	uint64_t content, form;
};

struct value {
	const char *text;
	uint64_t number;
};

static const char *text_at(const struct dwarf_section *s, uint64_t offset)
{
	return offset < s->size ? (const char *)s->bytes + offset : NULL;
}

/* False: a form that is not allowed in a line table, or no more bytes. */
static bool read_form(const struct dwarf_file *f, const struct dwarf_line_header *h,
		      struct dwarf_reader *r, uint64_t form, struct value *ret)
{
	const struct dwarf_section *s = f->sections.of;

	*ret = (struct value){0};
	switch (form) {
	case DW_FORM_string: ret->text = dwarf_string(r); break;
	case DW_FORM_line_strp:
		ret->text = text_at(&s[DWARF_LINE_STR], dwarf_fixed(r, h->offset_size));
		break;
	case DW_FORM_strp:
		ret->text = text_at(&s[DWARF_STR], dwarf_fixed(r, h->offset_size));
		break;
	case DW_FORM_strp_sup: dwarf_fixed(r, h->offset_size); break;
	case DW_FORM_udata:
	case DW_FORM_strx: ret->number = dwarf_unsigned(r); break;
	case DW_FORM_data1:
	case DW_FORM_strx1: ret->number = dwarf_fixed(r, 1); break;
	case DW_FORM_data2:
	case DW_FORM_strx2: ret->number = dwarf_fixed(r, 2); break;
	case DW_FORM_strx3: ret->number = dwarf_fixed(r, 3); break;
	case DW_FORM_data4:
	case DW_FORM_strx4: ret->number = dwarf_fixed(r, 4); break;
	case DW_FORM_data8: ret->number = dwarf_fixed(r, 8); break;
	case DW_FORM_data16: dwarf_skip(r, 16); break;
	case DW_FORM_block: dwarf_skip(r, dwarf_unsigned(r)); break;
	case DW_FORM_block1: dwarf_skip(r, dwarf_fixed(r, 1)); break;
	case DW_FORM_block2: dwarf_skip(r, dwarf_fixed(r, 2)); break;
	case DW_FORM_block4: dwarf_skip(r, dwarf_fixed(r, 4)); break;
	default: return false;
	}
	return !r->bad;
}

static bool read_entry(const struct dwarf_file *f, const struct dwarf_line_header *h,
		       struct dwarf_reader *r, const struct format *formats, size_t n,
		       struct value *ret)
{
	*ret = (struct value){0};
	for (size_t i = 0; i < n; i++) {
		struct value v;

		if (!read_form(f, h, r, formats[i].form, &v))
			return false;
		if (formats[i].content == DW_LNCT_path)
			ret->text = v.text;
		else if (formats[i].content == DW_LNCT_directory_index)
			ret->number = v.number;
	}
	return true;
}

static bool read_table(const struct dwarf_file *f, struct dwarf_line_header *h,
		       struct dwarf_reader *r, bool files)
{
	struct format formats[MAX_FORMATS];
	size_t n = dwarf_byte(r);
	uint64_t entries;

	if (n > MAX_FORMATS)
		return false;
	for (size_t i = 0; i < n; i++) {
		formats[i].content = dwarf_unsigned(r);
		formats[i].form = dwarf_unsigned(r);
	}
	entries = dwarf_unsigned(r);
	/* Each entry takes at least one byte. */
	if (r->bad || entries > dwarf_left(r) || (n == 0 && entries > 0))
		return false;
	for (uint64_t i = 0; i < entries; i++) {
		struct value v;

		if (!read_entry(f, h, r, formats, n, &v) ||
		    !(files ? dwarf_line_add_file(h, v.text, v.number) : add_directory(h, v.text)))
			return false;
	}
	return true;
}

/* --- The header --- */

/* Reads up to header_length. *ret_program: where the program begins. */
static bool read_beginning(struct dwarf_line_header *h, struct dwarf_reader *r,
			   const uint8_t **ret_program)
{
	uint64_t length = dwarf_fixed(r, 4);

	h->offset_size = 4;
	if (length == UINT32_MAX) {
		h->offset_size = 8;
		length = dwarf_fixed(r, 8);
	}
	if (r->bad || length > dwarf_left(r))
		return false;
	r->end = r->at + length;
	h->version = (unsigned)dwarf_fixed(r, 2);
	if (h->version < 2 || h->version > 5)
		return false;
	if (h->version == 5) {
		h->address_size = dwarf_byte(r);
		if (dwarf_byte(r) != 0) /* segments */
			return false;
	}
	length = dwarf_fixed(r, h->offset_size);
	*ret_program = r->at + MIN_OF(length, dwarf_left(r));
	return !r->bad && length <= dwarf_left(r);
}

bool dwarf_line_header_read(const struct dwarf_file *f, struct dwarf_reader *table,
			    struct dwarf_line_header *ret)
{
	const uint8_t *program;
	struct dwarf_reader r;

	/* Files and directories are in two lists of this length each. */
	ret->max_names = dwarf_memory_for_list(f, sizeof(*ret->files) + sizeof(*ret->directories),
					       MAX_NAMES);
	if (!read_beginning(ret, table, &program))
		return false;
	r = (struct dwarf_reader){table->at, program, false};
	table->at = program;
	ret->instruction = dwarf_byte(&r);
	if (ret->version >= 4)
		dwarf_byte(&r); /* maximum_operations_per_instruction: 1 on x86 */
	dwarf_byte(&r);		/* default_is_stmt */
	ret->line_base = (int8_t)dwarf_byte(&r);
	ret->line_range = dwarf_byte(&r);
	ret->opcode_base = dwarf_byte(&r);
	ret->lengths = r.at;
	if (ret->line_range == 0 || ret->opcode_base == 0 || !dwarf_skip(&r, ret->opcode_base - 1))
		return false;
	if (ret->version < 5)
		return read_old_tables(ret, &r);
	if (!read_table(f, ret, &r, false) || !read_table(f, ret, &r, true))
		return false;
	if (!ret->compilation_dir && ret->n_directories > 0)
		ret->compilation_dir = ret->directories[0];
	return true;
}

uint64_t dwarf_line_header_bytes(const struct dwarf_line_header *h)
{
	return h->files_capacity * sizeof(*h->files) +
	       h->directories_capacity * sizeof(*h->directories);
}

void dwarf_line_header_free(struct dwarf_line_header *h)
{
	for (size_t i = 0; i < h->n_files; i++)
		free(h->files[i].joined);
	free(h->files);
	free(h->directories);
}

/* --- Names --- */

const char *dwarf_line_join(struct dwarf_line_header *h, uint64_t index, size_t *ret_size)
{
	struct dwarf_line_file *file = index < h->n_files ? &h->files[index] : NULL;
	const char *a = h->compilation_dir, *b = NULL;

	*ret_size = 0;
	if (!file || !file->name || file->joined || file->name[0] == '/')
		return !file ? NULL : file->joined ? file->joined : file->name;
	/* Directory 0 is the compilation directory itself. */
	if (file->directory > 0 && file->directory < h->n_directories)
		b = h->directories[file->directory];
	if (strnlen(file->name, MAX_PATH) + (b ? strnlen(b, MAX_PATH) : 0) +
		    (a ? strnlen(a, MAX_PATH) : 0) >
	    MAX_PATH)
		return NULL;
	/* An absolute directory needs nothing before it. */
	if (!a || (b && b[0] == '/'))
		a = "";
	if (!b)
		b = "";
	if (asprintf(&file->joined, "%s%s%s%s%s", a, a[0] ? "/" : "", b, b[0] ? "/" : "",
		     file->name) < 0)
		file->joined = NULL;
	*ret_size = file->joined ? strlen(file->joined) + 1 : 0;
	return file->joined;
}
