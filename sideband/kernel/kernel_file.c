/*
 * A linked kernel's text, moved to where it runs; masks in order. Called by the worker for images
 * of kind "kernel-file".
 *
 * A kernel that was moved (KASLR) is moved as a whole: direct branches in it stay as they are, and
 * of the addresses in its instructions none is a branch's. So nothing is relocated. Its tables of
 * patched places lie in data sections, where only symbols tell them; those of the running kernel
 * are in its list of symbols, at the same distance from _text as in the file.
 */
#include "sideband/kernel/kernel_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base.h"
#include "sideband/kernel/kernel_file_private.h"

#define MAX_TEXT   ((uint64_t)256 << 20)
#define MAX_TABLE  ((uint64_t)64 << 20)
#define MAX_MASKED ((size_t)8 << 20)

/* --- Masks --- */

int kernel_file_mask(struct kernel_file_text *t, uint64_t address, uint64_t size)
{
	uint64_t offset = address - t->address;

	if (size == 0)
		return 0;
	if (address < t->address || offset >= t->size)
		return 0;
	if (t->n_masked == MAX_MASKED)
		return -ENOMEM;
	if (ARRAY_RESERVE(t->masked, t->masked_capacity, t->n_masked + 1) < 0)
		return -ENOMEM;
	t->masked[t->n_masked++] =
		(struct kernel_span){address, address + MIN_OF(size, t->size - offset)};
	return 0;
}

static int by_begin(const void *a, const void *b)
{
	const struct kernel_span *x = a, *y = b;

	return x->begin < y->begin ? -1 : x->begin > y->begin;
}

static void join_masks(struct kernel_file_text *t)
{
	size_t n = 0;

	if (t->n_masked > 1)
		qsort(t->masked, t->n_masked, sizeof(*t->masked), by_begin);
	for (size_t i = 0; i < t->n_masked; i++) {
		struct kernel_span *last = n ? &t->masked[n - 1] : NULL;

		if (last && t->masked[i].begin <= last->end)
			last->end = MAX_OF(last->end, t->masked[i].end);
		else
			t->masked[n++] = t->masked[i];
	}
	t->n_masked = n;
}

void kernel_file_text_done(struct kernel_file_text *t)
{
	free(t->bytes);
	free(t->masked);
	*t = (struct kernel_file_text){0};
}

/* --- A linked kernel --- */

/* The code that stays: .text; that of the start is thrown away. */
static int place_text(const struct kernel_file *file, const struct kernel_elf *e,
		      struct kernel_file_text *ret, uint64_t *ret_delta)
{
	uint64_t begin = kernel_links_own(file->links, "_stext");
	uint64_t end = kernel_links_own(file->links, "_etext");
	size_t text = kernel_elf_section(e, ".text");
	const Elf64_Shdr *s = &e->sections[text];
	size_t size;
	int r;

	if (begin == 0 || end <= begin)
		return KERNEL_FILE_UNPLACED;
	/* _stext is where .text begins: arch/x86/kernel/vmlinux.lds.S. */
	if (text == 0 || end - begin > s->sh_size || s->sh_size > MAX_TEXT)
		return -EBADMSG;
	r = kernel_elf_read_section(e, text, &ret->bytes, &size);
	if (r < 0)
		return r == -ENODATA ? -EBADMSG : r;
	ret->address = begin;
	ret->size = end - begin;
	*ret_delta = begin - s->sh_addr;
	return 0;
}

struct linked {
	const struct kernel_elf *elf;
	struct kernel_file_text *text;
	uint64_t delta; /* from the file's addresses to those of the running kernel */
};

/* A site, as the file has it, in code? */
static bool is_code(const struct kernel_elf *e, uint64_t address)
{
	for (size_t i = 1; i < e->n_sections; i++) {
		const Elf64_Shdr *s = &e->sections[i];

		if ((s->sh_flags & SHF_EXECINSTR) && address - s->sh_addr < s->sh_size)
			return true;
	}
	return false;
}

/* The place, by the file's addresses, that the entry at ADDRESS means. */
static uint64_t site_of(const struct kernel_sites *sites, const uint8_t *entry, uint64_t address)
{
	uint64_t absolute;
	int32_t distance;

	if (sites->absolute) {
		memcpy(&absolute, entry, sizeof(absolute));
		return absolute;
	}
	memcpy(&distance, entry, sizeof(distance));
	return address + (uint64_t)(int64_t)distance;
}

/* How long entries of .altinstructions are, by what makes sense of them; 0: nothing does. */
static size_t alternative_entry(const struct linked *l, const struct kernel_sites *sites,
				const uint8_t *table, size_t size, uint64_t address)
{
	for (const size_t *entry = kernel_sites_alternatives; *entry; entry++) {
		size_t at = 0;

		if (size % *entry)
			continue;
		while (at < size && kernel_file_is_alternative(table + at, *entry) &&
		       is_code(l->elf, site_of(sites, table + at, address + at)))
			at += *entry;
		if (at == size)
			return *entry;
	}
	return 0;
}

static int mask_all(struct kernel_file_text *t)
{
	return kernel_file_mask(t, t->address, t->size);
}

static int mask_table(const struct linked *l, const struct kernel_sites *sites,
		      const uint8_t *table, size_t size, uint64_t address)
{
	size_t entry =
		sites->entry ? sites->entry : alternative_entry(l, sites, table, size, address);
	int r = 0;

	if (entry == 0 || size % entry)
		return mask_all(l->text);
	for (size_t at = 0; at < size && r == 0; at += entry)
		r = kernel_file_mask_site(l->text, sites, table + at, entry,
					  site_of(sites, table + at, address + at) + l->delta);
	return r;
}

/* A table that a kernel does not name it does not have, but there is one that each has. */
static int mask_sites(const struct linked *l, const struct kernel_sites *sites,
		      const struct kernel_links *links)
{
	CLEANUP_FREE uint8_t *table = NULL;
	uint64_t begin = kernel_links_own(links, sites->begin);
	uint64_t end = kernel_links_own(links, sites->end);
	int r;

	if (begin == 0 && end == 0 && strcmp(sites->section, KERNEL_SITES_NEEDED) != 0)
		return 0;
	if (begin == 0 || end < begin || end - begin > MAX_TABLE)
		return mask_all(l->text);
	if (begin == end)
		return 0;
	r = kernel_elf_read_address(l->elf, begin - l->delta, end - begin, &table);
	if (r == -ENODATA || r == -EBADMSG)
		return mask_all(l->text);
	return r < 0 ? r : mask_table(l, sites, table, (size_t)(end - begin), begin - l->delta);
}

static int place_kernel(const struct kernel_file *file, const struct kernel_elf *e,
			struct kernel_file_text *ret)
{
	struct linked l = {.elf = e, .text = ret};
	int r = place_text(file, e, ret, &l.delta);

	for (size_t i = 0; i < kernel_sites_n && r == 0; i++)
		r = mask_sites(&l, &kernel_sites[i], file->links);
	return r;
}

/* --- Any file --- */

/* A module stands where its sections are, and is known by its build id alone; so is a kernel. */
static bool is_other(const struct kernel_file *file, const struct kernel_elf *e)
{
	uint8_t id[20];
	size_t size = file->build_id_size ? kernel_elf_build_id(e, id) : 0;

	return size > 0 && (size != file->build_id_size || memcmp(id, file->build_id, size) != 0);
}

static int read_elf(const struct kernel_file *file, const struct kernel_source *source,
		    struct kernel_file_text *ret)
{
	struct kernel_elf e;
	int r = kernel_elf_open(source, &e);

	if (r < 0)
		return r;
	if (is_other(file, &e))
		r = KERNEL_FILE_OTHER;
	else if (file->module)
		r = e.header.e_type == ET_REL ? kernel_file_link_module(file, &e, ret) : -EBADMSG;
	else
		r = e.header.e_type == ET_REL ? -EBADMSG : place_kernel(file, &e, ret);
	if (r == 0)
		r = kernel_file_mask_names(ret, file->links);
	if (r == 0)
		r = kernel_file_mask_probes(ret, file);
	kernel_elf_close(&e);
	return r;
}

struct unpacked {
	const uint8_t *bytes;
	size_t size;
};

static ssize_t read_unpacked(void *userdata, uint64_t offset, void *to, size_t size)
{
	const struct unpacked *u = userdata;
	size_t n = offset < u->size ? MIN_OF(size, u->size - (size_t)offset) : 0;

	memcpy(to, u->bytes + (n ? offset : 0), n);
	return (ssize_t)n;
}

static int read_packed(const struct kernel_file *file, struct kernel_file_text *ret)
{
	CLEANUP_FREE uint8_t *bytes = NULL;
	struct unpacked u;
	struct kernel_source source = {.read = read_unpacked, .userdata = &u};
	size_t size;
	int r = kernel_file_unpack(&file->source, &bytes, &size);

	if (r < 0)
		return r;
	u = (struct unpacked){bytes, size};
	source.size = size;
	return read_elf(file, &source, ret);
}

int kernel_file_text(const struct kernel_file *file, struct kernel_file_text *ret)
{
	int r;

	*ret = (struct kernel_file_text){0};
	r = read_elf(file, &file->source, ret);
	if (r == -EBADMSG && !file->module) {
		kernel_file_text_done(ret);
		r = read_packed(file, ret);
	}
	if (r != 0) {
		kernel_file_text_done(ret);
		return r;
	}
	join_masks(ret);
	return 0;
}
