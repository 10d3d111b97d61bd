/*
 * A memory pool of size classes: pages for small blocks, malloc for large ones, one byte limit.
 *
 * Small blocks share pages; a page has blocks of one class. An empty page can serve any class
 * again, so a full pool is not lost to fragmentation. Large blocks come from malloc one by one. A
 * large block that is put back is kept for the next of its class and returns to malloc only when
 * the pool is at its limit. Pages never return to malloc, so a quarter of the limit is reserved for
 * large blocks.
 */
#include "sideband/timeline/pool.h"

#include <stdlib.h>
#include <string.h>

#include "proto/base.h"

#define PAGE	    4096u
#define CHUNK_PAGES 64u
#define STEP	    16u
#define STEPS	    16u	  /* classes of STEP, 2 * STEP ... 256 bytes; then 512 and 1024 */
#define SMALL_MAX   1024u /* bytes */
#define SIZE_LIMIT  ((size_t)1 << 40)

/* One block from malloc. Its pages begin at its first page boundary. */
struct pool_chunk {
	struct pool_chunk *next;
};

struct pool_block {
	struct pool_block *next;
};

struct pool_page {
	_Alignas(STEP) struct pool_page *next, *prev; /* in empty or in partial[class] */
	struct pool_block *free;
	uint32_t class;
	uint32_t live;	/* blocks handed out */
	uint32_t fresh; /* offset of the bytes that were never handed out */
};

struct pool_large {
	_Alignas(STEP) struct pool_large *next, *prev;
	size_t size; /* bytes of the block that follows */
};

void pool_init(struct pool *p, size_t limit)
{
	*p = (struct pool){.limit = limit, .pages_limit = limit - limit / 4};
}

static void free_large(struct pool *p, struct pool_large *l)
{
	p->taken -= l->size + sizeof(*l);
	free(l);
}

static void free_spare(struct pool *p)
{
	for (unsigned c = 0; c < POOL_LARGE_CLASSES; c++)
		while (p->spare[c]) {
			struct pool_large *l = p->spare[c];

			p->spare[c] = l->next;
			free_large(p, l);
		}
}

void pool_done(struct pool *p)
{
	struct pool_chunk *next_chunk;
	struct pool_large *next_large;

	for (struct pool_chunk *c = p->chunks; c; c = next_chunk) {
		next_chunk = c->next;
		free(c);
	}
	for (struct pool_large *l = p->large; l; l = next_large) {
		next_large = l->next;
		free_large(p, l);
	}
	free_spare(p);
	*p = (struct pool){0};
}

/* --- Small --- */

static size_t small_size(unsigned class)
{
	return class < STEPS ? (class + 1) * STEP : (size_t)512 << (class - STEPS);
}

static unsigned small_class(size_t size)
{
	if (size <= STEP * STEPS)
		return size == 0 ? 0 : (unsigned)((size - 1) / STEP);
	return size <= 512 ? STEPS : STEPS + 1;
}

static bool is_full(const struct pool_page *page)
{
	return !page->free && PAGE - page->fresh < small_size(page->class);
}

static void link_page(struct pool_page **list, struct pool_page *page)
{
	page->prev = NULL;
	page->next = *list;
	if (page->next)
		page->next->prev = page;
	*list = page;
}

static void unlink_page(struct pool_page **list, struct pool_page *page)
{
	if (page->next)
		page->next->prev = page->prev;
	if (page->prev)
		page->prev->next = page->next;
	else
		*list = page->next;
}

static size_t room_for_pages(const struct pool *p)
{
	return MIN_OF(p->pages_limit - p->pages_taken, p->limit - p->taken) / PAGE;
}

/* Adds empty pages: many at a time, fewer near the limit. The chunk's header and the alignment cost
 * one page. */
static bool add_pages(struct pool *p)
{
	struct pool_chunk *chunk;
	uint8_t *page;
	size_t n;

	if (room_for_pages(p) < 2)
		free_spare(p);
	n = MIN_OF(CHUNK_PAGES, MAX_OF(p->pages_limit / 16 / PAGE, 1));
	n = MIN_OF(n, MAX_OF(room_for_pages(p), 1) - 1);
	p->exceeded = n == 0;
	chunk = n ? malloc((n + 1) * PAGE) : NULL;
	if (!chunk)
		return false;
	p->taken += (n + 1) * PAGE;
	p->pages_taken += (n + 1) * PAGE;
	chunk->next = p->chunks;
	p->chunks = chunk;
	page = (uint8_t *)chunk + PAGE - (uintptr_t)chunk % PAGE;
	for (; n > 0; n--, page += PAGE)
		link_page(&p->empty, (struct pool_page *)(void *)page);
	return true;
}

static void *get_small(struct pool *p, size_t size)
{
	unsigned class = small_class(size);
	struct pool_page *page = p->partial[class];
	void *block;

	if (!page) {
		if (!p->empty && !add_pages(p))
			return NULL;
		page = p->empty;
		unlink_page(&p->empty, page);
		*page = (struct pool_page){.class = class, .fresh = sizeof(*page)};
		link_page(&p->partial[class], page);
	}
	block = page->free;
	if (block) {
		page->free = page->free->next;
	} else {
		block = (uint8_t *)page + page->fresh;
		page->fresh += (uint32_t)small_size(class);
	}
	page->live++;
	if (is_full(page))
		unlink_page(&p->partial[class], page);
	p->used += small_size(class);
	return memset(block, 0, small_size(class));
}

static void put_small(struct pool *p, void *data)
{
	struct pool_page *page = (void *)((uint8_t *)data - (uintptr_t)data % PAGE);
	struct pool_block *block = data;

	if (is_full(page))
		link_page(&p->partial[page->class], page);
	block->next = page->free;
	page->free = block;
	p->used -= small_size(page->class);
	if (--page->live > 0)
		return;
	unlink_page(&p->partial[page->class], page);
	link_page(&p->empty, page);
}

/* --- Large --- */

/* The sizes of large classes are 2 * SMALL_MAX, 4 * SMALL_MAX, ... bytes. */
static unsigned large_class(size_t size)
{
	return (unsigned)(64 - __builtin_clzll((size - 1) / SMALL_MAX)) - 1;
}

static struct pool_large *new_large(struct pool *p, size_t size)
{
	size_t bytes = size + sizeof(struct pool_large);
	struct pool_large *l;

	if (bytes > p->limit - p->taken)
		free_spare(p);
	p->exceeded = bytes > p->limit - p->taken;
	l = p->exceeded ? NULL : malloc(bytes);
	if (!l)
		return NULL;
	l->size = size;
	p->taken += bytes;
	return l;
}

static void *get_large(struct pool *p, size_t size)
{
	unsigned class = large_class(size);
	struct pool_large *l = p->spare[class];

	if (l)
		p->spare[class] = l->next;
	else
		l = new_large(p, (size_t)(2 * SMALL_MAX) << class);
	if (!l)
		return NULL;
	l->prev = NULL;
	l->next = p->large;
	if (l->next)
		l->next->prev = l;
	p->large = l;
	p->used += l->size;
	return memset(l + 1, 0, l->size);
}

static void put_large(struct pool *p, void *data)
{
	struct pool_large *l = (struct pool_large *)data - 1;
	unsigned class = large_class(l->size);

	if (l->next)
		l->next->prev = l->prev;
	if (l->prev)
		l->prev->next = l->next;
	else
		p->large = l->next;
	p->used -= l->size;
	l->next = p->spare[class];
	p->spare[class] = l;
}

/* --- Blocks of any size --- */

void *pool_get(struct pool *p, size_t size)
{
	if (size <= SMALL_MAX)
		return get_small(p, size);
	if (size <= SIZE_LIMIT)
		return get_large(p, size);
	p->exceeded = true;
	return NULL;
}

void pool_put(struct pool *p, void *data, size_t size)
{
	if (!data)
		return;
	if (size <= SMALL_MAX)
		put_small(p, data);
	else
		put_large(p, data);
}

void *pool_grow(struct pool *p, void *data, size_t from, size_t to)
{
	void *grown = pool_get(p, to);

	if (!grown)
		return NULL;
	if (data)
		memcpy(grown, data, from);
	pool_put(p, data, from);
	return grown;
}
