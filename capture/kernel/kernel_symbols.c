/*
 * A line of /proc/kallsyms is "ADDRESS TYPE NAME", and for what is not in the kernel's image a tab
 * and "[OWNER]" (kernel/kallsyms.c, s_show). TYPE is nm's letter: t, T, w, W for code. A symbol of
 * a module that is no code says where its code ends at the latest.
 */
#include "capture/kernel/kernel_symbols.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "capture/proc/number.h"
#include "proto/base.h"

/* More than modules and BPF programs of any host have. */
#define MAX_MARKS  (4u << 20)
#define MAX_OWNERS 8192u

/* Where code is, and where the tables begin and end that name its patched places:
 * arch/x86/kernel/vmlinux.lds.S and include/asm-generic/vmlinux.lds.h. */
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
	const char *name, *owner; /* OWNER NULL: the kernel's */
	size_t name_size, owner_size;
};

static bool parse_line(const char *text, struct line *ret)
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

static bool is_limit(const struct line *l)
{
	if (l->owner || l->name[0] != '_')
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(limits); i++)
		if (strlen(limits[i]) == l->name_size &&
		    memcmp(limits[i], l->name, l->name_size) == 0)
			return true;
	return false;
}

static bool is_named(const struct line *l, const char *name)
{
	return strlen(name) == l->name_size && memcmp(name, l->name, l->name_size) == 0;
}

static void take_limit(struct kernel_symbols *s, const struct line *l)
{
	if (is_named(l, "_text"))
		s->first = l->address;
	else if (is_named(l, "_stext"))
		s->code_begin = l->address;
	else if (is_named(l, "_etext"))
		s->code_end = l->address;
}

/* Lines of one owner stand together: the newest is looked at first. */
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
	bool limit;
	int r = 0;

	if (!parse_line(text, &l))
		return 0;
	*ret_seen |= l.address != 0;
	limit = is_limit(&l);
	if (limit)
		take_limit(s, &l);
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
	/* What is code begins behind what ends there. */
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
		if (line[n - 1] == '\n' && memchr(line, 0, (size_t)n) == NULL)
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

static bool has_mark(const struct kernel_symbols *s, uint64_t address)
{
	size_t low = FIRST_WHERE(i, s->n_sorted, s->marks[i].address >= address);

	return low < s->n_sorted && s->marks[low].address == address;
}

int kernel_symbols_add(struct kernel_symbols *s, const char *owner, uint64_t address, uint64_t size)
{
	struct line l = {.address = address,
			 .type = 't',
			 .owner = owner,
			 .owner_size = strnlen(owner, KERNEL_OWNER_SIZE - 1)};
	int r;

	if (size == 0 || size > UINT64_MAX - address || has_mark(s, address))
		return 0;
	r = add_mark(s, &l);
	/* Where it ends begins something else. */
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
