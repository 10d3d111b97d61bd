/*
 * Kernel text from files: the symbols that files are linked by, the masks of a text, and a linked
 * kernel moved to where it runs.
 *
 * Nothing is relocated: a kernel is moved as a whole (KASLR), so direct branches within it stay as
 * they are, and the addresses in its instructions are never targets of branches. The tables of
 * patched sites lie in data sections and only symbols tell where. The symbols of the running kernel
 * are in its list of symbols, at the same distance from _text as in the file.
 */
#include "sideband/kernel/kernel_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base.h"
#include "sideband/kernel/kernel_file_private.h"

#define LINKS_MAX  ((size_t)1 << 22)
#define MAX_TEXT   ((uint64_t)256 << 20)
#define MAX_TABLE  ((uint64_t)64 << 20)
#define MAX_MASKED ((size_t)8 << 20)

/* --- Symbols of the running kernel, by name --- */

struct kernel_links {
	struct kernel_link *items; /* in order of name */
	size_t n, capacity;
};

/* The size of the next word before END, which is at *ret; moves *AT behind the word. */
static size_t word(const char **at, const char *end, const char **ret)
{
	while (*at < end && (**at == ' ' || **at == '\t'))
		++*at;
	*ret = *at;
	while (*at < end && **at != ' ' && **at != '\t')
		++*at;
	return (size_t)(*at - *ret);
}

static bool parse_link(const char *at, const char *end, struct kernel_link *ret)
{
	const char *text;
	size_t size;

	while (at < end && (*at == ' ' || *at == '\t'))
		at++;
	if (!kernel_take_address(&at, end, &ret->address) || at == end ||
	    (*at != ' ' && *at != '\t'))
		return false;
	if (word(&at, end, &text) != 1)
		return false;
	ret->type = text[0];
	size = word(&at, end, &ret->name);
	ret->name_size = (uint32_t)MIN_OF(size, UINT32_MAX);
	size = word(&at, end, &ret->owner);
	ret->owner_size = 0;
	if (size > 2 && ret->owner[0] == '[' && ret->owner[size - 1] == ']') {
		ret->owner++;
		ret->owner_size = (uint32_t)MIN_OF(size - 2, UINT32_MAX);
	}
	return ret->name_size > 0;
}

static int compare(const char *a, size_t a_size, const char *b, size_t b_size)
{
	int r = memcmp(a, b, MIN_OF(a_size, b_size));

	return r ? r : a_size < b_size ? -1 : a_size > b_size;
}

static int by_name(const void *a, const void *b)
{
	const struct kernel_link *x = a, *y = b;
	int r = compare(x->name, x->name_size, y->name, y->name_size);

	return r ? r : x->address < y->address ? -1 : x->address > y->address;
}

int kernel_links_new(const char *text, size_t size, struct kernel_links **ret)
{
	struct kernel_links *n = calloc(1, sizeof(*n));
	const char *at = text, *end = text + size, *newline;
	struct kernel_link link;

	if (!n)
		return -ENOMEM;
	for (; at < end && n->n < LINKS_MAX; at = newline < end ? newline + 1 : end) {
		newline = memchr(at, '\n', (size_t)(end - at));
		newline = newline ? newline : end;
		if (!parse_link(at, newline, &link))
			continue;
		if (ARRAY_RESERVE(n->items, n->capacity, n->n + 1) < 0) {
			kernel_links_free(n);
			return -ENOMEM;
		}
		n->items[n->n++] = link;
	}
	if (n->n > 1)
		qsort(n->items, n->n, sizeof(*n->items), by_name);
	*ret = n;
	return 0;
}

void kernel_links_free(struct kernel_links *n)
{
	if (!n)
		return;
	free(n->items);
	free(n);
}

/* The one address that NAME has in the kernel's own image, or, with MODULES, that a module may link
 * to; 0: none, or several. */
static uint64_t find_link(const struct kernel_links *n, const char *name, bool modules)
{
	size_t size = strlen(name);
	uint64_t found = 0;
	size_t first = FIRST_WHERE(
		i, n->n, compare(n->items[i].name, n->items[i].name_size, name, size) >= 0);

	for (size_t i = first; i < n->n; i++) {
		const struct kernel_link *l = &n->items[i];
		bool is_own = l->owner_size == 0, is_global = l->type >= 'A' && l->type <= 'Z';

		if (l->name_size != size || memcmp(l->name, name, size) != 0)
			break;
		/* The letters of modules' symbols are small, whether exported or not. */
		if (modules ? is_own && !is_global : !is_own)
			continue;
		if (found && found != l->address)
			return 0;
		found = l->address;
	}
	return found;
}

uint64_t kernel_links_own(const struct kernel_links *n, const char *name)
{
	return find_link(n, name, false);
}

uint64_t kernel_links_global(const struct kernel_links *n, const char *name)
{
	return find_link(n, name, true);
}

const struct kernel_link *kernel_links_all(const struct kernel_links *n, size_t *ret_n)
{
	*ret_n = n->n;
	return n->items;
}

/* --- Masks --- */

int kernel_file_mask(struct kernel_file_text *t, uint64_t address, uint64_t size)
{
	uint64_t offset = address - t->address;

	if (size == 0 || address < t->address || offset >= t->size)
		return 0;
	if (t->n_masked == MAX_MASKED ||
	    ARRAY_RESERVE(t->masked, t->masked_capacity, t->n_masked + 1) < 0)
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

/* Reads .text, the code that stays: the kernel throws away the code of its start. */
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

/* Whether ADDRESS, one of the file, is in code. */
static bool is_code(const struct kernel_elf *e, uint64_t address)
{
	for (size_t i = 1; i < e->n_sections; i++) {
		const Elf64_Shdr *s = &e->sections[i];

		if ((s->sh_flags & SHF_EXECINSTR) && address - s->sh_addr < s->sh_size)
			return true;
	}
	return false;
}

/* The site that the entry at ADDRESS means; both are addresses of the file. */
static uint64_t site_of(const struct kernel_site_table *sites, const uint8_t *entry,
			uint64_t address)
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

/* The size of the entries of .altinstructions with which all entries make sense; 0: none. */
static size_t alternative_entry(const struct linked *l, const struct kernel_site_table *sites,
				const uint8_t *table, size_t size, uint64_t address)
{
	for (const size_t *entry = kernel_alternative_sizes; *entry; entry++) {
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

/* Masks the sites of one table; all of the text if the table cannot be read. A kernel may lack a
 * table, except for the one that every kernel has. */
static int mask_sites(const struct linked *l, const struct kernel_site_table *sites,
		      const struct kernel_links *links)
{
	CLEANUP_FREE uint8_t *table = NULL;
	uint64_t begin = kernel_links_own(links, sites->begin);
	uint64_t end = kernel_links_own(links, sites->end), address = begin - l->delta;
	size_t size = (size_t)(end - begin), entry = sites->entry;
	int r;

	if (begin == 0 && end == 0 && strcmp(sites->section, KERNEL_SITE_TABLE_NEEDED) != 0)
		return 0;
	if (begin == 0 || end < begin || end - begin > MAX_TABLE)
		return mask_all(l->text);
	if (begin == end)
		return 0;
	r = kernel_elf_read_address(l->elf, address, size, &table);
	if (r == -ENODATA || r == -EBADMSG)
		return mask_all(l->text);
	if (r < 0)
		return r;
	if (entry == 0)
		entry = alternative_entry(l, sites, table, size, address);
	if (entry == 0 || size % entry)
		return mask_all(l->text);
	for (size_t at = 0; at < size && r == 0; at += entry)
		r = kernel_file_mask_site(l->text, sites, table + at, entry,
					  site_of(sites, table + at, address + at) + l->delta);
	return r;
}

static int place_kernel(const struct kernel_file *file, const struct kernel_elf *e,
			struct kernel_file_text *ret)
{
	struct linked l = {.elf = e, .text = ret};
	int r = place_text(file, e, ret, &l.delta);

	for (size_t i = 0; i < kernel_site_tables_n && r == 0; i++)
		r = mask_sites(&l, &kernel_site_tables[i], file->links);
	return r;
}

/* --- A file of any kind --- */

static int read_elf(const struct kernel_file *file, const struct kernel_source *source,
		    struct kernel_file_text *ret)
{
	struct kernel_elf e;
	uint8_t id[20];
	size_t id_size;
	int r = kernel_elf_open(source, &e);

	if (r < 0)
		return r;
	id_size = file->build_id_size ? kernel_elf_build_id(&e, id) : 0;
	if (id_size && (id_size != file->build_id_size || memcmp(id, file->build_id, id_size) != 0))
		r = KERNEL_FILE_OTHER;
	else if ((e.header.e_type == ET_REL) != !!file->module)
		r = -EBADMSG;
	else if (file->module)
		r = kernel_file_link_module(file, &e, ret);
	else
		r = place_kernel(file, &e, ret);
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

int kernel_file_text(const struct kernel_file *file, struct kernel_file_text *ret)
{
	CLEANUP_FREE uint8_t *bytes = NULL;
	int r;

	*ret = (struct kernel_file_text){0};
	r = read_elf(file, &file->source, ret);
	if (r == -EBADMSG && !file->module) {
		size_t size;

		kernel_file_text_done(ret);
		r = kernel_file_unpack(&file->source, &bytes, &size);
		if (r == 0) {
			struct unpacked u = {bytes, size};
			struct kernel_source source = {read_unpacked, &u, size};

			r = read_elf(file, &source, ret);
		}
	}
	if (r != 0) {
		kernel_file_text_done(ret);
		return r;
	}
	join_masks(ret);
	return 0;
}
