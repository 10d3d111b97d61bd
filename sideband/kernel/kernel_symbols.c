/*
 * The names of kernel functions, by address: from lines of /proc/kallsyms (kernel/kallsyms.c,
 * s_show), "ADDRESS TYPE NAME" and, for modules, a tab and "[MODULE]", and from KSYMBOL records of
 * BPF programs and trampolines.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base.h"
#include "sideband/kernel/kernel_file_private.h"
#include "sideband/kernel/kernel_private.h"

#define NAMES_MAX ((size_t)1 << 22)

char *kernel_keep_text(struct kernel *k, const char *text, size_t size)
{
	char *copy;

	if (ARRAY_RESERVE(k->texts, k->max_texts, k->n_texts + 1) < 0)
		return NULL;
	copy = malloc(size + 1);
	if (!copy)
		return NULL;
	memcpy(copy, text, size);
	copy[size] = '\0';
	k->texts[k->n_texts++] = copy;
	return copy;
}

int kernel_add_name(struct kernel *k, const struct kernel_name *name)
{
	if (k->n_names == NAMES_MAX || name->name[0] == '\0')
		return 0;
	if (ARRAY_RESERVE(k->names, k->max_names, k->n_names + 1) < 0)
		return -ENOMEM;
	k->names[k->n_names] = *name;
	k->names[k->n_names].order = (uint32_t)k->n_names;
	k->n_names++;
	return 0;
}

/* LINE, up to its NUL at END, is cut into pieces. False: it is no function's. */
static bool parse_function(char *line, const char *end, struct kernel_name *ret)
{
	const char *at = line;
	char *module;

	*ret = (struct kernel_name){0};
	if (!kernel_take_address(&at, end, &ret->address) || ret->address == 0 || at[0] != ' ' ||
	    at[1] == '\0' || at[2] != ' ' || !strchr("tTwW", at[1]))
		return false;
	ret->type = at[1];
	ret->name = at + 3;
	module = strchr(line, '\t');
	if (module) {
		char *close;

		*module++ = '\0';
		close = strchr(module, ']');
		if (*module != '[' || !close)
			return false;
		*close = '\0';
		ret->module = module + 1;
	}
	return ret->name[0] != '\0';
}

int kernel_add_symbols(struct kernel *k, const char *text, size_t size)
{
	char *at = kernel_keep_text(k, text, size), *end;

	assert(!k->ready);
	if (!at)
		return -ENOMEM;
	end = at + size;
	while (at < end) {
		char *line = at, *newline = memchr(at, '\n', (size_t)(end - at));
		struct kernel_name name;

		newline = newline ? newline : end; /* the NUL behind the copy */
		*newline = '\0';
		at = newline + 1;
		if (parse_function(line, newline, &name) && kernel_add_name(k, &name) < 0)
			return -ENOMEM;
	}
	return 0;
}

/* If several names have one address, the best one becomes the last: a global name beats a local
 * one, then a name without an underscore in front beats one with it, then the later name wins. */
static int by_address(const void *a, const void *b)
{
	const struct kernel_name *x = a, *y = b;
	bool local_x = x->type >= 'a', local_y = y->type >= 'a';

	if (x->address != y->address)
		return x->address < y->address ? -1 : 1;
	if (local_x != local_y)
		return local_x ? -1 : 1;
	if ((x->name[0] == '_') != (y->name[0] == '_'))
		return x->name[0] == '_' ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

void kernel_sort_names(struct kernel *k)
{
	size_t n = 0;

	if (k->n_names > 1)
		qsort(k->names, k->n_names, sizeof(*k->names), by_address);
	for (size_t i = 0; i < k->n_names; i++) {
		if (n > 0 && k->names[n - 1].address == k->names[i].address)
			n--;
		k->names[n++] = k->names[i];
	}
	k->n_names = n;
}

bool kernel_symbol_at(const struct kernel *k, uint64_t address, struct kernel_symbol *ret)
{
	const struct kernel_piece *piece = kernel_piece_at(k, address);
	const struct kernel_name *name;
	uint64_t end = UINT64_MAX;
	size_t lo = FIRST_WHERE(i, k->n_names, k->names[i].address > address);

	assert(k->ready);
	if (lo == 0)
		return false;
	name = &k->names[lo - 1];
	if (lo < k->n_names)
		end = k->names[lo].address;
	else if (!piece && name->size == 0)
		return false;
	if (piece)
		end = MIN_OF(end, piece->address + piece->size);
	if (name->size > 0)
		end = MIN_OF(end, name->address + name->size);
	if (address >= end || (piece && name->address < piece->address))
		return false;
	*ret = (struct kernel_symbol){name->address, end - name->address, name->name, name->module};
	return true;
}

uint64_t kernel_symbol_address(const struct kernel *k, const char *name)
{
	assert(k->ready);
	for (size_t i = 0; i < k->n_names; i++)
		if (!k->names[i].module && strcmp(k->names[i].name, name) == 0)
			return k->names[i].address;
	return 0;
}
