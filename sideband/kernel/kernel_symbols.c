/*
 * Names of kernel code: /proc/kallsyms (kernel/kallsyms.c, s_show), and what KSYMBOL records say of
 * BPF programs and trampolines. Part of kernel.c.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base.h"
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

/* Hexadecimal digits at *TEXT, at most 16. False: none. */
static bool take_address(char **text, uint64_t *ret)
{
	static const char digits[] = "0123456789abcdef";
	const char *digit;
	unsigned n = 0;

	*ret = 0;
	while (n < 16 && **text != '\0' && (digit = strchr(digits, **text)) != NULL) {
		*ret = *ret << 4 | (uint64_t)(digit - digits);
		(*text)++;
		n++;
	}
	return n > 0;
}

/* LINE ends with a NUL, and is cut up. False: it is no function's. */
static bool parse_line(char *line, struct kernel_name *ret)
{
	char *module, *end;

	*ret = (struct kernel_name){0};
	if (!take_address(&line, &ret->address) || ret->address == 0 || line[0] != ' ' ||
	    line[1] == '\0' || line[2] != ' ' || strchr("tTwW", line[1]) == NULL)
		return false;
	ret->type = line[1];
	ret->name = line + 3;
	module = strchr(line + 3, '\t');
	if (module != NULL) {
		*module++ = '\0';
		end = strchr(module, ']');
		if (*module != '[' || end == NULL)
			return false;
		*end = '\0';
		ret->module = module + 1;
	}
	return ret->name[0] != '\0';
}

int kernel_add_symbols(struct kernel *k, const char *text, size_t size)
{
	char *at = kernel_keep_text(k, text, size), *end;

	if (!at)
		return -ENOMEM;
	end = at + size;
	while (at < end) {
		char *line = at, *stop = memchr(at, '\n', (size_t)(end - at));
		struct kernel_name name;

		at = stop ? stop + 1 : end;
		if (stop)
			*stop = '\0';
		if (parse_line(line, &name) && kernel_add_name(k, &name) < 0)
			return -ENOMEM;
	}
	return 0;
}

/* Of several at one address the best is the last: global ones, those without underscores in front,
 * those that came later. */
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
	size_t i, n = 0;

	if (k->n_names > 1)
		qsort(k->names, k->n_names, sizeof(*k->names), by_address);
	for (i = 0; i < k->n_names; i++) {
		if (n > 0 && k->names[n - 1].address == k->names[i].address)
			n--;
		k->names[n++] = k->names[i];
	}
	k->n_names = n;
}

bool kernel_symbol_at(const struct kernel *k, uint64_t address, struct kernel_symbol *ret)
{
	const struct kernel_piece *piece = kernel_piece_at(k, address);
	size_t lo;
	const struct kernel_name *name;
	uint64_t end = UINT64_MAX;

	lo = FIRST_WHERE(i, k->n_names, k->names[i].address > address);
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

/* Asked for a few names, once. Names that lost their address to another one are not found. */
uint64_t kernel_symbol_address(const struct kernel *k, const char *name)
{
	for (size_t i = 0; i < k->n_names; i++)
		if (!k->names[i].module && strcmp(k->names[i].name, name) == 0)
			return k->names[i].address;
	return 0;
}
