/*
 * Reads the two rings of one perf event.
 *
 * The writer is the kernel, or the software PMU inside the traced process. In the second case the
 * page, the heads and the records are as hostile as that process. Therefore sizes are read from the
 * page once, heads once per operation, and a record is copied out before anything looks at it.
 */
#include "capture/ring/ring.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "proto/perf/perfrecord.h"

#define PAGE_BYTES 4096u

/* Whether a buffer that the page announces is valid: page-aligned, behind the page itself, a power
 * of two, and inside TOTAL. */
static bool buffer_ok(uint64_t offset, uint64_t size, uint64_t total)
{
	if (offset < PAGE_BYTES || offset % PAGE_BYTES != 0)
		return false;
	if (size < PAGE_BYTES || (size & (size - 1)) != 0)
		return false;
	return offset <= total && size <= total - offset;
}

int ring_init(struct ring *ret, struct perf_event_mmap_page *page, uint64_t total, uint8_t *scratch)
{
	uint64_t data_offset, data_size, aux_offset, aux_size;

	if (total < PAGE_BYTES)
		return -EINVAL;
	data_offset = __atomic_load_n(&page->data_offset, __ATOMIC_RELAXED);
	data_size = __atomic_load_n(&page->data_size, __ATOMIC_RELAXED);
	aux_offset = __atomic_load_n(&page->aux_offset, __ATOMIC_RELAXED);
	aux_size = __atomic_load_n(&page->aux_size, __ATOMIC_RELAXED);
	if (!buffer_ok(data_offset, data_size, total))
		return -EINVAL;
	if (aux_size != 0 &&
	    (!buffer_ok(aux_offset, aux_size, total) ||
	     (aux_offset < data_offset + data_size && data_offset < aux_offset + aux_size)))
		return -EINVAL;
	*ret = (struct ring){
		.page = page,
		.data = (uint8_t *)page + data_offset,
		.data_size = data_size,
		.aux = aux_size != 0 ? (const uint8_t *)page + aux_offset : NULL,
		.aux_size = aux_size,
		.scratch = scratch,
	};
	return 0;
}

static uint64_t data_head(const struct ring *r)
{
	/* Pairs with the release in the kernel's perf_output_put_handle(): all records before the
	 * head are complete. */
	return __atomic_load_n(&r->page->data_head, __ATOMIC_ACQUIRE);
}

static uint64_t data_tail(const struct ring *r)
{
	return __atomic_load_n(&r->page->data_tail, __ATOMIC_RELAXED);
}

static void set_data_tail(struct ring *r, uint64_t tail)
{
	/* Our reads must be complete before the writer may reuse the bytes. */
	__atomic_store_n(&r->page->data_tail, tail, __ATOMIC_RELEASE);
}

/* Copies SIZE bytes (at most RING_SIZE) from the running position POS of a ring. */
static void copy_out(const uint8_t *ring, uint64_t ring_size, uint64_t pos, void *to, uint64_t size)
{
	uint64_t offset = pos & (ring_size - 1);
	uint64_t first = size < ring_size - offset ? size : ring_size - offset;

	memcpy(to, ring + offset, first);
	memcpy((uint8_t *)to + first, ring, size - first);
}

int ring_peek(struct ring *r, const void **ret_record, size_t *ret_size)
{
	uint64_t tail = data_tail(r), used = data_head(r) - tail;
	struct perf_event_header header;

	if (used == 0)
		return RING_EMPTY;
	if (used > r->data_size || used < sizeof(header))
		return -EBADMSG;
	copy_out(r->data, r->data_size, tail, &header, sizeof(header));
	/* The size of every record is a multiple of 8: perf_output_begin() does not round. */
	if (header.size < sizeof(header) || header.size % 8 != 0 || header.size > used)
		return -EBADMSG;
	copy_out(r->data, r->data_size, tail, r->scratch, header.size);
	/* The writer may have changed the header since the check. */
	memcpy(r->scratch, &header, sizeof(header));
	*ret_record = r->scratch;
	*ret_size = header.size;
	return 0;
}

int ring_used(const struct ring *r, uint64_t *ret_size)
{
	uint64_t used = data_head(r) - data_tail(r);

	*ret_size = used;
	if (used == 0)
		return RING_EMPTY;
	return used > r->data_size || used % 8 != 0 ? -EBADMSG : 0;
}

void ring_copy_data(const struct ring *r, uint64_t size, uint8_t *to)
{
	assert(size <= r->data_size);
	copy_out(r->data, r->data_size, data_tail(r), to, size);
}

void ring_consume(struct ring *r, size_t size)
{
	set_data_tail(r, data_tail(r) + size);
}

uint64_t ring_skip_all(struct ring *r)
{
	uint64_t tail = data_tail(r), head = data_head(r);

	set_data_tail(r, head);
	return head - tail;
}

uint64_t ring_copy_aux(const struct ring *r, uint64_t wanted, uint8_t *to)
{
	uint64_t size = wanted == 0 || wanted > r->aux_size ? r->aux_size : wanted;
	uint64_t head;

	if (!r->aux)
		return 0;
	head = __atomic_load_n(&r->page->aux_head, __ATOMIC_ACQUIRE);
	copy_out(r->aux, r->aux_size, head - size, to, size);
	return size;
}
