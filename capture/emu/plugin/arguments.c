/*
 * The arguments of execve, read from the guest's memory.
 */
#include "capture/emu/plugin/arguments.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "capture/emu/plugin/guest.h"
#include "proto/base.h"

#define PAGE 4096u
/* fs/exec.c, bprm_stack_limits; include/uapi/linux/limits.h, ARG_MAX */
#define MOST  (8u * 1024 * 1024 / 4 * 3)
#define LEAST (128u * 1024)

size_t arguments_limit(void)
{
	struct rlimit stack;

	if (getrlimit(RLIMIT_STACK, &stack) < 0)
		return LEAST;
	return MAX_OF(MIN_OF(stack.rlim_cur / 4, (rlim_t)MOST), (rlim_t)LEAST);
}

/* SIZE, reduced so that [ADDRESS, ADDRESS + SIZE) ends within the page: whole pages are readable or
 * not. */
static size_t up_to_page_end(uint64_t address, size_t size)
{
	return MIN_OF(size, (size_t)(PAGE - address % PAGE));
}

int arguments_read_string(uint64_t address, size_t max, int too_long, char **ret)
{
	CLEANUP_FREE char *text = NULL;
	char chunk[512];
	size_t size = 0;

	while (size < max) {
		size_t wanted = up_to_page_end(address + size, MIN_OF(sizeof(chunk), max - size));
		size_t n;

		if (!guest_read(address + size, chunk, wanted))
			return -EFAULT;
		n = strnlen(chunk, wanted);
		if (ARRAY_FIT(text, size + n + 1) < 0)
			return -ENOMEM;
		memcpy(text + size, chunk, n);
		size += n;
		text[size] = '\0';
		if (n < wanted) {
			*ret = TAKE_PTR(text);
			return 0;
		}
	}
	return too_long;
}

struct vector {
	char **strings; /* NULL-terminated at all times */
	size_t n, capacity;
};

/* Makes room for one more string and the NULL behind it. */
static int make_room(struct vector *v)
{
	if (ARRAY_RESERVE(v->strings, v->capacity, v->n + 2) < 0)
		return -ENOMEM;
	v->strings[v->n] = NULL;
	return 0;
}

static int add_string(struct vector *v, uint64_t address, size_t *room)
{
	size_t size;
	int r = make_room(v);

	if (r == 0)
		r = arguments_read_string(address, ARGUMENTS_MAX_STRING, -E2BIG, &v->strings[v->n]);
	if (r < 0)
		return r;
	size = strlen(v->strings[v->n]) + 1 + sizeof(uint64_t);
	v->strings[++v->n] = NULL;
	if (size > *room)
		return -E2BIG;
	*room -= size;
	return 0;
}

/* Adds the strings at COUNT pointers. *RET_END: one of the pointers was NULL. */
static int add_strings(struct vector *v, const uint64_t *pointers, size_t count, size_t *room,
		       bool *ret_end)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < count; i++) {
		if (pointers[i] == 0) {
			*ret_end = true;
			return 0;
		}
		r = add_string(v, pointers[i], room);
	}
	return r;
}

int arguments_read_vector(uint64_t address, size_t *room, char ***ret)
{
	struct vector v = {0};
	uint64_t pointers[64];
	bool end = address == 0;
	int r = make_room(&v);

	while (r == 0 && !end) {
		size_t size = up_to_page_end(address, sizeof(pointers)) & ~(size_t)7;

		/* An unaligned pointer may lie on two pages. */
		if (size == 0)
			size = sizeof(uint64_t);
		r = guest_read(address, pointers, size) ? 0 : -EFAULT;
		if (r == 0)
			r = add_strings(&v, pointers, size / sizeof(uint64_t), room, &end);
		address += size;
	}
	if (r < 0) {
		arguments_free(v.strings);
		return r;
	}
	*ret = v.strings;
	return 0;
}

void arguments_free(char **strings)
{
	for (size_t i = 0; strings && strings[i]; i++)
		free(strings[i]);
	free(strings);
}
