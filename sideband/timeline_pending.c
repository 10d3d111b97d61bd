/*
 * Records between log and base: DATA rings are drained one CPU after the other, so a fork may be
 * logged after what its child did elsewhere. They wait in a heap by time until the log's oldest
 * are well beyond them. The daemon's.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base.h"
#include "sideband/timeline_private.h"

#define CAPACITY_MIN 64u
#define CAPACITY_MAX 16384u
#define RECORD_USUAL 256u /* bytes of a MMAP2 */
#define BYTES_MIN    (256u << 10)

int pending_init(struct pending *p, uint64_t log_bytes)
{
	uint64_t capacity = MAX_OF(CAPACITY_MIN, MIN_OF(CAPACITY_MAX, log_bytes / RECORD_USUAL));

	*p = (struct pending){.capacity = (size_t)capacity};
	pool_init(&p->pool, MAX_OF(BYTES_MIN, log_bytes / 4));
	p->heap = calloc(p->capacity, sizeof(*p->heap));
	return p->heap ? 0 : -ENOMEM;
}

void pending_done(struct pending *p)
{
	free(p->heap);
	pool_done(&p->pool);
	*p = (struct pending){0};
}

static bool is_before(const struct pending_record *a, const struct pending_record *b)
{
	if (a->time != b->time)
		return a->time < b->time;
	return a->later != b->later ? b->later : a->order < b->order;
}

static void swap(struct pending_record *a, struct pending_record *b)
{
	struct pending_record c = *a;

	*a = *b;
	*b = c;
}

bool pending_add(struct pending *p, uint64_t time, const void *bytes, size_t size)
{
	const struct perf_event_header *header = bytes;
	struct pending_record r = {.time = time,
				   .order = p->order,
				   .later = timeline_is_later(header->type, time),
				   .size = size};
	size_t i = p->n;

	if (p->n == p->capacity)
		return false;
	r.bytes = pool_get(&p->pool, size);
	if (!r.bytes)
		return false;
	memcpy(r.bytes, bytes, size);
	p->order++;
	p->heap[p->n++] = r;
	for (; i > 0 && is_before(&p->heap[i], &p->heap[(i - 1) / 2]); i = (i - 1) / 2)
		swap(&p->heap[i], &p->heap[(i - 1) / 2]);
	return true;
}

const struct pending_record *pending_first(const struct pending *p)
{
	return p->n ? &p->heap[0] : NULL;
}

void pending_drop_first(struct pending *p)
{
	size_t i = 0, child;

	pool_put(&p->pool, p->heap[0].bytes, p->heap[0].size);
	p->heap[0] = p->heap[--p->n];
	while ((child = 2 * i + 1) < p->n) {
		if (child + 1 < p->n && is_before(&p->heap[child + 1], &p->heap[child]))
			child++;
		if (!is_before(&p->heap[child], &p->heap[i]))
			return;
		swap(&p->heap[i], &p->heap[child]);
		i = child;
	}
}
