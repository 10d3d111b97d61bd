/*
 * Writes records of 16 to 256 bytes, so that they wrap at any place.
 */
#include "tests/unit/capture/data_ring.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "proto/perf/perfrecord.h"

#define PAGE	 4096u
#define MAX_SIZE 256u

void data_ring_init(struct data_ring *r, uint64_t size)
{
	uint64_t total = PAGE + size;
	struct perf_event_mmap_page *page;

	r->next = 0;
	r->memory = aligned_alloc(PAGE, total + 16 * PAGE);
	assert_non_null(r->memory);
	memset(r->memory, 0, total);
	page = (struct perf_event_mmap_page *)r->memory;
	page->data_offset = PAGE;
	page->data_size = size;
	assert_int_equal(ring_init(&r->ring, page, total, r->memory + total), 0);
}

void data_ring_done(struct data_ring *r)
{
	free(r->memory);
}

static uint16_t size_of(uint64_t number)
{
	return (uint16_t)(16 + number * 8 % (MAX_SIZE - 8));
}

static uint8_t pattern_of(uint64_t number)
{
	return (uint8_t)(number * 37 + 1);
}

bool data_ring_put(struct data_ring *r)
{
	struct perf_event_mmap_page *page = r->ring.page;
	uint64_t head = page->data_head;
	uint64_t tail = __atomic_load_n(&page->data_tail, __ATOMIC_ACQUIRE);
	struct perf_event_header header = {.type = DATA_RING_TYPE, .size = size_of(r->next)};
	uint8_t bytes[MAX_SIZE];

	if (header.size > r->ring.data_size - (head - tail))
		return false;
	memset(bytes, pattern_of(r->next), sizeof(bytes));
	memcpy(bytes, &header, sizeof(header));
	memcpy(bytes + sizeof(header), &r->next, sizeof(r->next));
	for (size_t i = 0; i < header.size; i++)
		r->ring.data[(head + i) & (r->ring.data_size - 1)] = bytes[i];
	__atomic_store_n(&page->data_head, head + header.size, __ATOMIC_RELEASE);
	r->next++;
	return true;
}

uint64_t data_ring_fill(struct data_ring *r, uint64_t n)
{
	uint64_t done = 0;

	while (done < n && data_ring_put(r))
		done++;
	return done;
}

bool data_ring_is(const void *record, size_t size, uint64_t number)
{
	const uint8_t *bytes = record;
	struct perf_event_header header;
	uint64_t found;

	if (size != size_of(number))
		return false;
	memcpy(&header, bytes, sizeof(header));
	memcpy(&found, bytes + sizeof(header), sizeof(found));
	if (header.type != DATA_RING_TYPE || header.size != size || found != number)
		return false;
	for (size_t i = sizeof(header) + sizeof(found); i < size; i++)
		if (bytes[i] != pattern_of(number))
			return false;
	return true;
}
