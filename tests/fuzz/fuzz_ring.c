/*
 * Fuzzes the reader of a ring whose head, tail and bytes are untrusted. Invariants: reading ends,
 * gives only whole records, and stays within the ring.
 */
#include "capture/ring/ring.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base.h"
#include "proto/perf/perfrecord.h"

#define PAGE 4096u

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

/* The input begins with this struct; the rings' bytes follow. */
struct input {
	uint64_t tail, head, aux_head, wanted;
};

static void fill(struct perf_event_mmap_page *page, const struct input *in, const uint8_t *bytes,
		 size_t size)
{
	memset(page, 0, 3 * PAGE);
	memcpy((uint8_t *)page + PAGE, bytes, MIN_OF(size, 2 * PAGE));
	page->data_offset = page->data_size = page->aux_size = PAGE;
	page->aux_offset = 2 * PAGE;
	page->data_tail = in->tail;
	page->data_head = in->head;
	page->aux_head = in->aux_head;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	static uint8_t scratch[PERFRECORD_MAX_SIZE];
	CLEANUP_FREE void *memory = aligned_alloc(PAGE, 3 * PAGE);
	uint8_t copy[PAGE];
	uint64_t given = 0;
	const void *record;
	size_t record_size;
	struct input in;
	struct ring r;

	if (size < sizeof(in))
		return 0;
	memcpy(&in, bytes, sizeof(in));
	fill(memory, &in, bytes + sizeof(in), size - sizeof(in));
	assert(ring_init(&r, memory, 3 * PAGE, scratch) == 0);
	for (; ring_peek(&r, &record, &record_size) == 0; given += record_size) {
		assert(record_size >= 8 && given + record_size <= PAGE);
		ring_consume(&r, record_size);
	}
	assert(ring_skip_all(&r) + given == in.head - in.tail && r.page->data_tail == in.head);
	assert(ring_copy_aux(&r, in.wanted, copy) <= PAGE);
	return 0;
}
