/*
 * The kernel makes code at run time for which it has no names: since 2025 one thunk for each
 * indirect branch on processors with the ITS bug (arch/x86/kernel/alternative.c, its_alloc), in
 * pages of the module area that are INT3 but for a few bytes. Called by
 * daemon/gather/kernel_look.c.
 *
 * /proc/vmallocinfo would tell where they are, but hashes its addresses. What is not mapped reads
 * as zeros; data are hardly ever filled with 0xcc.
 */
#include "capture/kernel/kernel_thunks.h"

#include <errno.h>
#include <stdlib.h>

#include "proto/base.h"

#define PAGE	 ((uint64_t)4096)
#define BLOCK	 ((size_t)256 << 10)
#define INT3	 0xcc
#define MIN_INT3 (PAGE / 2)
/* Around the outermost symbols; between them at most. */
#define MARGIN	 ((uint64_t)4 << 20)
#define MAX_SPAN ((uint64_t)256 << 20)

/* Some code among INT3s; pages of nothing else wait to be used. */
static bool is_filled(const uint8_t *page)
{
	size_t n = 0;

	for (size_t i = 0; i < PAGE; i++)
		n += page[i] == INT3;
	return n >= MIN_INT3 && n < PAGE;
}

/* The first region that ends behind ADDRESS; they are in order. */
static bool is_in_region(const struct kernel_region *regions, size_t n, size_t *at,
			 uint64_t address)
{
	while (*at < n && regions[*at].address + regions[*at].size <= address)
		++*at;
	return *at < n && regions[*at].address < address + PAGE;
}

struct search {
	const struct kernel_region *regions;
	size_t n_regions, at;
	struct kernel_symbols *symbols;
	uint64_t begin, end; /* of the pages that were found last */
	int found;
};

static int end_of_pages(struct search *s)
{
	uint64_t size = s->end - s->begin;

	s->found += size > 0;
	return kernel_symbols_add(s->symbols, KERNEL_THUNKS_OWNER, s->begin, size);
}

static int search_block(struct search *s, uint64_t address, const uint8_t *bytes, size_t size)
{
	int r = 0;

	for (size_t i = 0; i + PAGE <= size && r == 0; i += PAGE) {
		if (!is_filled(bytes + i) ||
		    is_in_region(s->regions, s->n_regions, &s->at, address + i))
			continue;
		if (address + i != s->end) {
			r = end_of_pages(s);
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

	if (n == 0 || symbols->marks[0].address < MARGIN ||
	    symbols->marks[n - 1].address > UINT64_MAX - 2 * MARGIN)
		return 0;
	block = malloc(BLOCK);
	if (!block)
		return -ENOMEM;
	at = (symbols->marks[0].address - MARGIN) & ~(BLOCK - 1);
	end = symbols->marks[n - 1].address + MARGIN;
	end = MIN_OF(end, at + MAX_SPAN);
	/* What cannot be read is not there. */
	for (; at < end && r == 0; at += BLOCK)
		if (kcore_read(k, at, block, BLOCK) == 0)
			r = search_block(&s, at, block, BLOCK);
	if (r == 0)
		r = end_of_pages(&s);
	return r < 0 ? r : s.found;
}
