/*
 * Where kernel text lies, and its copy. Called by daemon/gather/kernel.c for each snapshot of a
 * trace of the kernel.
 *
 * Symbols have no sizes in /proc/kallsyms, and /proc/modules counts a module's text and data
 * together, so a region runs from the page of an owner's first function to the next symbol of
 * something else, at most a little behind its last function. Bytes too many do no harm: they are
 * what was there. Modules, BPF programs and trampolines are all in the module area, which reads as
 * zeros where nothing is mapped.
 */
#include "capture/kernel/kernel_text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "proto/base.h"
#include "proto/memfd.h"

#define PAGE ((uint64_t)4096)
/* Functions of one owner that are farther apart are not of one piece. */
#define MAX_HOLE ((uint64_t)256 << 10)
/* What may lie behind the beginning of the last function. */
#define MAX_TAIL ((uint64_t)64 << 10)
#define READINGS 5
#define BLOCK	 ((size_t)256 << 10)

/* --- Regions --- */

struct regions {
	struct kernel_region *items;
	size_t n, capacity;
	uint64_t bytes;
};

static int add_region(struct regions *to, const char *name, uint64_t begin, uint64_t end)
{
	const struct kernel_region *last = to->n ? &to->items[to->n - 1] : NULL;
	struct kernel_region *r;

	if (last && begin < last->address + last->size)
		begin = last->address + last->size;
	if (begin >= end)
		return 0;
	if (to->n == KERNEL_TEXT_MAX_REGIONS || end - begin > KERNEL_TEXT_MAX_BYTES - to->bytes)
		return -E2BIG;
	if (ARRAY_RESERVE(to->items, to->capacity, to->n + 1) < 0)
		return -ENOMEM;
	r = &to->items[to->n++];
	*r = (struct kernel_region){.address = begin, .size = end - begin};
	strncpy(r->name, name, sizeof(r->name) - 1);
	to->bytes += r->size;
	return 0;
}

/* The marks from FIRST on that are of one piece: code of one owner. Returns the one behind. */
static size_t run_end(const struct kernel_symbols *s, size_t first)
{
	const struct kernel_mark *m = s->marks;
	size_t i = first + 1;

	while (i < s->n_marks && m[i].code && m[i].owner == m[first].owner &&
	       m[i].address - m[i - 1].address <= MAX_HOLE)
		i++;
	return i;
}

/* The end of the module that ADDRESS lies in; UINT64_MAX: in none. */
static uint64_t module_end(const struct kernel_modules *modules, const char *name, uint64_t address)
{
	for (size_t i = 0; i < modules->n; i++) {
		const struct kernel_module *m = &modules->items[i];

		if (address >= m->address && address - m->address < m->size &&
		    strcmp(m->name, name) == 0)
			return m->address + m->size;
	}
	return UINT64_MAX;
}

static uint64_t page_up(uint64_t address)
{
	return address > UINT64_MAX - PAGE ? UINT64_MAX : (address + PAGE - 1) & ~(PAGE - 1);
}

/* Where the text ends whose last function is LAST, and behind which NEXT is the first mark (NULL:
 * there is none). */
static uint64_t text_end(const struct kernel_mark *last, const struct kernel_mark *next,
			 uint64_t limit)
{
	uint64_t end = page_up(last->address + MIN_OF(MAX_TAIL, UINT64_MAX - last->address));
	uint64_t page;

	end = MIN_OF(end, limit);
	if (!next || next->address >= end)
		return end;
	page = next->address & ~(PAGE - 1);
	/* Text and data are in pages of their own, functions of two BPF programs are not. */
	return page > last->address ? page : next->address;
}

static int add_run(struct regions *to, const struct kernel_symbols *s,
		   const struct kernel_modules *modules, size_t first, size_t end)
{
	const struct kernel_mark *m = &s->marks[first], *last = &s->marks[end - 1];
	const char *name = s->owners[m->owner];
	uint64_t limit = module_end(modules, name, m->address);

	return add_region(to, name, m->address & ~(PAGE - 1),
			  text_end(last, end < s->n_marks ? &s->marks[end] : NULL, limit));
}

static int add_kernel(struct regions *to, const struct kernel_symbols *s)
{
	if (s->code_begin == 0 || s->code_end <= s->code_begin)
		return 0;
	return add_region(to, KERNEL_TEXT_KERNEL, s->code_begin, s->code_end);
}

static int collect(struct regions *to, const struct kernel_symbols *s,
		   const struct kernel_modules *modules)
{
	size_t first = 0, end;
	bool kernel = false;
	int r = 0;

	while (r == 0 && first < s->n_marks) {
		if (!kernel && s->marks[first].address >= s->code_begin) {
			kernel = true;
			r = add_kernel(to, s);
		}
		end = first + 1;
		if (r == 0 && s->marks[first].code) {
			end = run_end(s, first);
			r = add_run(to, s, modules, first, end);
		}
		first = end;
	}
	return r == 0 && !kernel ? add_kernel(to, s) : r;
}

int kernel_text_regions(const struct kernel_symbols *symbols, const struct kernel_modules *modules,
			struct kernel_region **ret, size_t *ret_n)
{
	struct regions to = {0};
	int r = collect(&to, symbols, modules);

	if (r < 0) {
		free(to.items);
		return r;
	}
	*ret = to.items;
	*ret_n = to.n;
	return 0;
}

/* --- Copy --- */

/* Once more; what differs is taken over. 0; 1: something differed; -errno. */
static int read_again(const struct kcore *k, const struct kernel_region *r, uint8_t *bytes,
		      uint8_t *block)
{
	int differs = 0;

	for (uint64_t at = 0; at < r->size; at += BLOCK) {
		size_t size = (size_t)MIN_OF(r->size - at, BLOCK);
		int e = kcore_read(k, r->address + at, block, size);

		if (e < 0)
			return e;
		if (memcmp(bytes + at, block, size) == 0)
			continue;
		memcpy(bytes + at, block, size);
		differs = 1;
	}
	return differs;
}

static int read_twice(const struct kcore *k, const struct kernel_region *region, uint8_t *bytes,
		      uint64_t (*now)(void *userdata), void *userdata, struct kernel_copy *ret)
{
	CLEANUP_FREE uint8_t *block = malloc(BLOCK);
	int r = block ? kcore_read(k, region->address, bytes, (size_t)region->size) : -ENOMEM;

	for (int i = 1; r == 0 && i < READINGS; i++) {
		ret->read_ns = now(userdata);
		r = read_again(k, region, bytes, block);
		if (r == 0)
			return 0;
		r = MIN_OF(r, 0);
	}
	ret->changing = r == 0;
	return r;
}

int kernel_text_copy(const struct kcore *k, const struct kernel_region *region,
		     uint64_t (*now)(void *userdata), void *userdata, struct kernel_copy *ret)
{
	CLEANUP_CLOSE int fd = -EBADF;
	uint8_t *bytes;
	int r = memfd_new("ptsnap-kernel", region->size, &fd);

	*ret = (struct kernel_copy){.fd = -EBADF};
	if (r < 0)
		return r;
	bytes = mmap(NULL, (size_t)region->size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (bytes == MAP_FAILED)
		return -errno;
	r = read_twice(k, region, bytes, now, userdata, ret);
	munmap(bytes, (size_t)region->size);
	if (r == 0)
		r = memfd_seal(fd);
	if (r == 0)
		ret->fd = take_fd(&fd);
	return r;
}
