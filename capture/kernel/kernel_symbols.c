/*
 * Reads /proc/modules and /proc/kallsyms.
 *
 * A line of /proc/kallsyms is "ADDRESS TYPE NAME" and, for anything outside of the kernel's image,
 * a tab and "[OWNER]" (kernel/kallsyms.c, s_show). TYPE is nm's letter: t, T, w, W for code. A
 * symbol of a module that is no code tells where the code before it ends at the latest.
 */
#include "capture/kernel/kernel_symbols.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "capture/proc/number.h"
#include "proto/base.h"

/* The modules and BPF programs of any host have fewer. */
#define MAX_MARKS  (4u << 20)
#define MAX_OWNERS 8192u

/* --- Modules --- */

/* Parses a line such as
 * "virtio 20480 2 virtio_blk,virtio_pci, Live 0xffffffffc0213000 (E)". */
static bool parse_module(const char *line, struct kernel_module *ret)
{
	size_t name = strcspn(line, " ");
	const char *at = strstr(line, " 0x");

	if (name == 0 || name >= sizeof(ret->name) || line[name] != ' ' || !at ||
	    !number_parse(line + name + 1, 10, UINT32_MAX, " ", NULL, &ret->size) ||
	    !number_parse(at + 1, 0, UINT64_MAX - ret->size, " \n", NULL, &ret->address))
		return false;
	memcpy(ret->name, line, name);
	ret->name[name] = '\0';
	return true;
}

int kernel_modules_read(const char *path, struct kernel_modules *ret)
{
	CLEANUP_FREE char *line = NULL;
	FILE *f = fopen(path, "re");
	size_t capacity = 0;
	ssize_t n;
	int r = 0;

	*ret = (struct kernel_modules){0};
	bytes_out_init(&ret->text, KERNEL_MODULES_MAX_TEXT);
	if (!f)
		return -errno;
	while (r == 0 && (n = getline(&line, &capacity, f)) > 0) {
		struct kernel_module module;

		bytes_put_block(&ret->text, line, (size_t)n);
		r = ret->text.error;
		if (r < 0 || !parse_module(line, &module))
			continue;
		r = ARRAY_RESERVE(ret->items, ret->capacity, ret->n + 1);
		if (r == 0)
			ret->items[ret->n++] = module;
	}
	if (r == 0 && ferror(f))
		r = -EIO;
	fclose(f);
	if (r < 0)
		kernel_modules_done(ret);
	return r;
}

void kernel_modules_done(struct kernel_modules *m)
{
	bytes_out_done(&m->text);
	free(TAKE_PTR(m->items));
	m->n = m->capacity = 0;
}

const struct kernel_module *kernel_modules_find(const struct kernel_modules *m,
						const struct kernel_module *x)
{
	for (size_t i = 0; i < m->n; i++)
		if (m->items[i].address == x->address && m->items[i].size == x->size &&
		    strcmp(m->items[i].name, x->name) == 0)
			return &m->items[i];
	return NULL;
}

/* --- Symbols --- */

/* Symbols that say where the kernel's code lies, and where the tables of its patched places begin
 * and end: arch/x86/kernel/vmlinux.lds.S and include/asm-generic/vmlinux.lds.h. */
static const char *const limits[] = {
	"_text",
	"_stext",
	"_etext",
	"_sinittext",
	"_einittext",
	"_end",
	"__entry_text_start",
	"__entry_text_end",
	"__indirect_thunk_start",
	"__indirect_thunk_end",
	"__start___jump_table",
	"__stop___jump_table",
	"__start_static_call_sites",
	"__stop_static_call_sites",
	"__start_mcount_loc",
	"__stop_mcount_loc",
	"__alt_instructions",
	"__alt_instructions_end",
	"__parainstructions",
	"__parainstructions_end",
	"__retpoline_sites",
	"__retpoline_sites_end",
	"__return_sites",
	"__return_sites_end",
	"__call_sites",
	"__call_sites_end",
	"__cfi_sites",
	"__cfi_sites_end",
	"__ibt_endbr_seal",
	"__ibt_endbr_seal_end",
};

struct line {
	uint64_t address;
	char type;
	const char *name, *owner; /* OWNER NULL: the kernel's image */
	size_t name_size, owner_size;
};

static bool parse_symbol(const char *text, struct line *ret)
{
	const char *at, *tab;

	if (!number_parse(text, 16, UINT64_MAX, " ", &at, &ret->address) || at[0] != ' ' ||
	    at[1] <= ' ' || at[2] != ' ' || at[3] <= ' ')
		return false;
	ret->type = at[1];
	ret->name = at + 3;
	ret->name_size = strcspn(ret->name, " \t\n");
	ret->owner = NULL;
	tab = ret->name + ret->name_size;
	tab += strspn(tab, " \t");
	if (*tab != '[')
		return true;
	ret->owner = tab + 1;
	ret->owner_size = strcspn(ret->owner, "]\n");
	return ret->owner_size > 0 && ret->owner_size < KERNEL_OWNER_SIZE;
}

static bool is_code(char type)
{
	return type == 't' || type == 'T' || type == 'w' || type == 'W';
}

static bool is_named(const struct line *l, const char *name)
{
	return strlen(name) == l->name_size && memcmp(name, l->name, l->name_size) == 0;
}

/* The index of L's owner, which is added if it is new. Lines of one owner stand together, so the
 * search begins with the newest owner. */
static int find_owner(struct kernel_symbols *s, const struct line *l, uint32_t *ret)
{
	for (size_t i = s->n_owners; i-- > 0;)
		if (strlen(s->owners[i]) == l->owner_size &&
		    memcmp(s->owners[i], l->owner, l->owner_size) == 0) {
			*ret = (uint32_t)i;
			return 0;
		}
	if (s->n_owners == MAX_OWNERS)
		return -E2BIG;
	if (ARRAY_RESERVE(s->owners, s->owners_capacity, s->n_owners + 1) < 0)
		return -ENOMEM;
	memcpy(s->owners[s->n_owners], l->owner, l->owner_size);
	s->owners[s->n_owners][l->owner_size] = '\0';
	*ret = (uint32_t)s->n_owners++;
	return 0;
}

static int add_mark(struct kernel_symbols *s, const struct line *l)
{
	uint32_t owner;
	int r = find_owner(s, l, &owner);

	if (r < 0)
		return r;
	if (s->n_marks >= MAX_MARKS)
		return -E2BIG;
	if (ARRAY_RESERVE(s->marks, s->marks_capacity, s->n_marks + 1) < 0)
		return -ENOMEM;
	s->marks[s->n_marks++] = (struct kernel_mark){l->address, owner, is_code(l->type)};
	return 0;
}

static int take_line(struct kernel_symbols *s, const char *text, size_t size, bool *ret_seen)
{
	struct line l;
	bool limit = false;
	int r = 0;

	if (!parse_symbol(text, &l))
		return 0;
	*ret_seen |= l.address != 0;
	if (!l.owner && l.name[0] == '_')
		for (size_t i = 0; i < ARRAY_SIZE(limits) && !limit; i++)
			limit = is_named(&l, limits[i]);
	if (limit && is_named(&l, "_text"))
		s->first = l.address;
	else if (limit && is_named(&l, "_stext"))
		s->code_begin = l.address;
	else if (limit && is_named(&l, "_etext"))
		s->code_end = l.address;
	if (l.owner && l.address != 0)
		r = add_mark(s, &l);
	if (!limit && !is_code(l.type))
		return r;
	s->n_functions += is_code(l.type);
	bytes_put_block(&s->text, text, size);
	return r < 0 ? r : s->text.error;
}

static int by_address(const void *a, const void *b)
{
	const struct kernel_mark *x = a, *y = b;

	if (x->address != y->address)
		return x->address < y->address ? -1 : 1;
	/* At one address something ends before code begins. */
	return (int)x->code - (int)y->code;
}

void kernel_symbols_sort(struct kernel_symbols *s)
{
	if (s->n_marks > 1)
		qsort(s->marks, s->n_marks, sizeof(*s->marks), by_address);
	s->n_sorted = s->n_marks;
}

static int read_lines(FILE *f, struct kernel_symbols *ret)
{
	CLEANUP_FREE char *line = NULL;
	size_t capacity = 0;
	bool seen = false;
	ssize_t n;
	int r = 0;

	while (r == 0 && (n = getline(&line, &capacity, f)) > 0)
		if (line[n - 1] == '\n' && !memchr(line, 0, (size_t)n))
			r = take_line(ret, line, (size_t)n, &seen);
	if (r == 0 && ferror(f))
		r = -EIO;
	ret->hidden = !seen;
	kernel_symbols_sort(ret);
	return r;
}

int kernel_symbols_read(const char *path, struct kernel_symbols *ret)
{
	FILE *f = fopen(path, "re");
	int r;

	*ret = (struct kernel_symbols){0};
	bytes_out_init(&ret->text, KERNEL_SYMBOLS_MAX_TEXT);
	if (!f)
		return -errno;
	r = read_lines(f, ret);
	fclose(f);
	if (r < 0)
		kernel_symbols_done(ret);
	return r;
}

int kernel_symbols_add(struct kernel_symbols *s, const char *owner, uint64_t address, uint64_t size)
{
	struct line l = {.address = address,
			 .type = 't',
			 .owner = owner,
			 .owner_size = strnlen(owner, KERNEL_OWNER_SIZE - 1)};
	size_t at = FIRST_WHERE(i, s->n_sorted, s->marks[i].address >= address);
	int r;

	if (size == 0 || size > UINT64_MAX - address ||
	    (at < s->n_sorted && s->marks[at].address == address))
		return 0;
	r = add_mark(s, &l);
	/* The end is a mark that is no code. */
	l.address = address + size;
	l.type = 'r';
	return r < 0 ? r : add_mark(s, &l);
}

void kernel_symbols_done(struct kernel_symbols *s)
{
	bytes_out_done(&s->text);
	free(TAKE_PTR(s->marks));
	free(TAKE_PTR(s->owners));
	s->n_marks = s->n_sorted = s->marks_capacity = s->n_owners = s->owners_capacity = 0;
}
