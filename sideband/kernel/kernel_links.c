/*
 * Lines "ADDRESS TYPE NAME" and, for modules, a tab and "[OWNER]". Called by kernel_file*.c. The
 * text is the kernel's, but came through a bundle: a stranger's.
 */
#include "sideband/kernel/kernel_links.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base.h"

#define MAX_LINKS ((size_t)4 << 20)

struct kernel_links {
	struct kernel_link *items; /* in order of name */
	size_t n, capacity;
};

static int digit_of(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The word at *at, which ends before END or at a blank; *at is set behind it. */
static size_t word(const char **at, const char *end, const char **ret)
{
	while (*at < end && (**at == ' ' || **at == '\t'))
		++*at;
	*ret = *at;
	while (*at < end && **at != ' ' && **at != '\t')
		++*at;
	return (size_t)(*at - *ret);
}

static bool parse_line(const char *at, const char *end, struct kernel_link *ret)
{
	const char *text;
	size_t size = word(&at, end, &text);

	if (size == 0 || size > 16)
		return false;
	ret->address = 0;
	for (size_t i = 0; i < size; i++) {
		int digit = digit_of(text[i]);

		if (digit < 0)
			return false;
		ret->address = ret->address << 4 | (uint64_t)digit;
	}
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

static int add(struct kernel_links *n, const struct kernel_link *name)
{
	if (n->n == MAX_LINKS)
		return 0;
	if (ARRAY_RESERVE(n->items, n->capacity, n->n + 1) < 0)
		return -ENOMEM;
	n->items[n->n++] = *name;
	return 0;
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
	const char *at = text, *end = text + size;
	struct kernel_link name;
	int r = n ? 0 : -ENOMEM;

	while (r == 0 && at < end) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));

		newline = newline ? newline : end;
		if (parse_line(at, newline, &name))
			r = add(n, &name);
		at = newline < end ? newline + 1 : end;
	}
	if (r < 0) {
		kernel_links_free(n);
		return r;
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

/* The first that is not before NAME. */
static size_t lower_bound(const struct kernel_links *n, const char *name, size_t size)
{
	return FIRST_WHERE(i, n->n,
			   compare(n->items[i].name, n->items[i].name_size, name, size) >= 0);
}

/* Of those that WANTED says: one address, or 0. */
static uint64_t find(const struct kernel_links *n, const char *name,
		     bool (*wanted)(const struct kernel_link *x))
{
	size_t size = strlen(name);
	uint64_t found = 0;

	for (size_t i = lower_bound(n, name, size);
	     i < n->n && n->items[i].name_size == size && memcmp(n->items[i].name, name, size) == 0;
	     i++) {
		if (!wanted(&n->items[i]))
			continue;
		if (found && found != n->items[i].address)
			return 0;
		found = n->items[i].address;
	}
	return found;
}

static bool is_own(const struct kernel_link *x)
{
	return x->owner_size == 0;
}

/* Symbols of modules stand there in small letters, whether they are exported or not. */
static bool is_linkable(const struct kernel_link *x)
{
	return x->owner_size > 0 || (x->type >= 'A' && x->type <= 'Z');
}

uint64_t kernel_links_own(const struct kernel_links *n, const char *name)
{
	return find(n, name, is_own);
}

uint64_t kernel_links_global(const struct kernel_links *n, const char *name)
{
	return find(n, name, is_linkable);
}

const struct kernel_link *kernel_links_all(const struct kernel_links *n, size_t *ret_n)
{
	*ret_n = n->n;
	return n->items;
}
