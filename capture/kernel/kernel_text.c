/*
 * Finds where kernel text lies, and copies it.
 *
 * Symbols have no sizes in /proc/kallsyms, and /proc/modules counts a module's text and data
 * together. A region therefore runs from the page of an owner's first function to the next symbol
 * of something else, at most a little behind the owner's last function. Surplus bytes do no harm:
 * memory really held them. Modules, BPF programs and trampolines are all in the module area, which
 * reads as zeros where nothing is mapped.
 */
#include "capture/kernel/kernel_text.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "proto/base.h"
#include "proto/memfd.h"

#define PAGE  ((uint64_t)4096)
#define BLOCK ((size_t)256 << 10) /* bytes that are read at once */
/* Functions of one owner that are farther apart are not in one region. */
#define MAX_HOLE ((uint64_t)256 << 10)
/* Bytes from the beginning of the last function to the end of its region, at most. */
#define MAX_TAIL ((uint64_t)64 << 10)
#define READINGS 5
/* Thunks: a page of them has so many INT3s at least. They are searched around the outermost symbols
 * by MARGIN, and between them by MAX_SPAN at most. */
#define INT3	 0xcc
#define MIN_INT3 (PAGE / 2)
#define MARGIN	 ((uint64_t)4 << 20)
#define MAX_SPAN ((uint64_t)256 << 20)

/* --- Regions --- */

struct regions {
	struct kernel_region *items;
	size_t n, capacity;
	uint64_t bytes;
};

/* Adds [BEGIN, END) but for what the last region has. */
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

/* The end of module NAME, which ADDRESS lies in; UINT64_MAX: there is none. */
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

/* The end of the text whose last function is LAST; NEXT is the first mark behind it, or NULL. */
static uint64_t text_end(const struct kernel_mark *last, const struct kernel_mark *next,
			 uint64_t limit)
{
	uint64_t end = last->address + MIN_OF(MAX_TAIL, UINT64_MAX - last->address), page;

	end = end > UINT64_MAX - PAGE ? UINT64_MAX : (end + PAGE - 1) & ~(PAGE - 1);
	end = MIN_OF(end, limit);
	if (!next || next->address >= end)
		return end;
	/* Text and data have pages of their own, but two BPF programs may share a page. */
	page = next->address & ~(PAGE - 1);
	return page > last->address ? page : next->address;
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
	const struct kernel_mark *m = s->marks;
	bool kernel = false;
	int r = 0;

	for (size_t first = 0, end = 0; r == 0 && first < s->n_marks; first = end) {
		const char *name = s->owners[m[first].owner];

		if (!kernel && m[first].address >= s->code_begin) {
			kernel = true;
			r = add_kernel(to, s);
		}
		end = first + 1;
		if (r < 0 || !m[first].code)
			continue;
		/* Code of one owner without a large hole is one region. */
		while (end < s->n_marks && m[end].code && m[end].owner == m[first].owner &&
		       m[end].address - m[end - 1].address <= MAX_HOLE)
			end++;
		r = add_region(to, name, m[first].address & ~(PAGE - 1),
			       text_end(&m[end - 1], end < s->n_marks ? &m[end] : NULL,
					module_end(modules, name, m[first].address)));
	}
	return r == 0 && !kernel ? add_kernel(to, s) : r;
}

int kernel_text_regions(const struct kernel_symbols *symbols, const struct kernel_modules *modules,
			struct kernel_region **ret, size_t *ret_n)
{
	struct regions to = {0};
	int r;

	assert(symbols->n_sorted == symbols->n_marks);
	r = collect(&to, symbols, modules);
	if (r < 0) {
		free(to.items);
		return r;
	}
	*ret = to.items;
	*ret_n = to.n;
	return 0;
}

/* --- Code without symbols --- */

/*
 * The kernel makes code at run time for which it has no names: since 2025 one thunk for each
 * indirect branch on processors with the ITS bug (arch/x86/kernel/alternative.c, its_alloc), in
 * pages of the module area that are INT3 but for a few bytes. /proc/vmallocinfo would tell where
 * they are, but hashes its addresses. Memory that is not mapped reads as zeros, and data are hardly
 * ever filled with 0xcc.
 */
/* Whether PAGE has code among INT3s. A page of INT3s alone is not in use yet. */
static bool is_filled(const uint8_t *page)
{
	size_t n = 0;

	for (size_t i = 0; i < PAGE; i++)
		n += page[i] == INT3;
	return n >= MIN_INT3 && n < PAGE;
}

struct search {
	const struct kernel_region *regions; /* in order of address */
	size_t n_regions, at;		     /* AT: the first that ends behind the last address */
	struct kernel_symbols *symbols;
	uint64_t begin, end; /* of the last piece that was found */
	int found;	     /* pieces */
};

/* Adds the last piece that was found, if there is one. */
static int add_piece(struct search *s)
{
	uint64_t size = s->end - s->begin;

	s->found += size > 0;
	return kernel_symbols_add(s->symbols, KERNEL_THUNKS_OWNER, s->begin, size);
}

static int search_block(struct search *s, uint64_t address, const uint8_t *bytes, size_t size)
{
	int r = 0;

	for (size_t i = 0; i + PAGE <= size && r == 0; i += PAGE) {
		if (!is_filled(bytes + i))
			continue;
		while (s->at < s->n_regions &&
		       s->regions[s->at].address + s->regions[s->at].size <= address + i)
			s->at++;
		if (s->at < s->n_regions && s->regions[s->at].address < address + i + PAGE)
			continue;
		if (address + i != s->end) {
			r = add_piece(s);
			s->begin = address + i;
		}
		s->end = address + i + PAGE;
	}
	return r;
}

int kernel_thunks_find(const struct kcore *k, const struct kernel_region *regions, size_t n_regions,
		       struct kernel_symbols *symbols)
{
	struct search s = {.regions = regions, .n_regions = n_regions, .symbols = symbols};
	size_t n = symbols->n_sorted;
	CLEANUP_FREE uint8_t *block = NULL;
	uint64_t at, end;
	int r = 0;

	assert(symbols->n_sorted == symbols->n_marks);
	if (n == 0 || symbols->marks[0].address < MARGIN ||
	    symbols->marks[n - 1].address > UINT64_MAX - 2 * MARGIN)
		return 0;
	block = malloc(BLOCK);
	if (!block)
		return -ENOMEM;
	at = (symbols->marks[0].address - MARGIN) & ~(BLOCK - 1);
	end = symbols->marks[n - 1].address + MARGIN;
	end = MIN_OF(end, at + MAX_SPAN);
	/* Memory that cannot be read is left out. */
	for (; at < end && r == 0; at += BLOCK)
		if (kcore_read(k, at, block, BLOCK) == 0)
			r = search_block(&s, at, block, BLOCK);
	if (r == 0)
		r = add_piece(&s);
	return r < 0 ? r : s.found;
}

/* --- Copy --- */

/* Reads R again, and takes over what differs. 0; 1: something differed; -errno. */
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
