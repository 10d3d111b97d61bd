/*
 * The recorder's log, and the records that wait between the log and the base.
 *
 * The log is a byte ring of records as they came, allocated at once.
 *
 * DATA rings are drained one CPU after the other, so a fork may enter the log after what its child
 * did on another CPU. Records that fall out of the log wait here, as pending records, until the
 * oldest record of the log is well beyond them. The records of one CPU come in order and wait in a
 * queue (CPUs share PENDING_QUEUES queues); a heap has the first of each queue and the few records
 * that came late.
 */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base.h"
#include "sideband/timeline/timeline_private.h"

#define CAPACITY_MIN 64u
#define CAPACITY_MAX 16384u
#define RECORD_USUAL 256u /* bytes of an MMAP2 record */
#define BYTES_MIN    (256u << 10)
#define BYTES_MAX    (CAPACITY_MAX * 512u)
#define NO_QUEUE     PENDING_QUEUES

/* --- The log --- */

int log_init(struct log *log, uint64_t size)
{
	*log = (struct log){
		.ring = malloc(size), .size = size, .scratch = malloc(LOG_SCRATCH_SIZE)};
	return log->ring && log->scratch ? 0 : -ENOMEM;
}

void log_done(struct log *log)
{
	free(log->ring);
	free(log->scratch);
	*log = (struct log){0};
}

bool log_fits(const struct log *log, size_t size)
{
	return size <= log->size - (log->head - log->tail);
}

void log_append(struct log *log, const void *bytes, size_t size)
{
	uint64_t at = log->head & (log->size - 1);
	size_t first = MIN_OF(size, (size_t)(log->size - at));

	memcpy(log->ring + at, bytes, first);
	if (first < size)
		memcpy(log->ring, (const uint8_t *)bytes + first, size - first);
	log->head += size;
}

static void copy_out(const struct log *log, uint64_t at, void *to, size_t size)
{
	uint64_t from = at & (log->size - 1);
	size_t first = MIN_OF(size, (size_t)(log->size - from));

	memcpy(to, log->ring + from, first);
	memcpy((uint8_t *)to + first, log->ring, size - first);
}

const uint8_t *log_at(const struct log *log, uint64_t at, uint8_t *scratch, size_t *ret_size)
{
	uint64_t from = at & (log->size - 1);
	struct perf_event_header header;

	if (sizeof(header) <= log->size - from)
		memcpy(&header, log->ring + from, sizeof(header));
	else
		copy_out(log, at, &header, sizeof(header));
	*ret_size = header.size;
	if (header.size <= log->size - from)
		return log->ring + from;
	copy_out(log, at, scratch, header.size);
	return scratch;
}

/* --- Pending records --- */

static uint64_t capacity_for(uint64_t log_bytes)
{
	return MAX_OF(CAPACITY_MIN, MIN_OF(CAPACITY_MAX, log_bytes / RECORD_USUAL));
}

static uint64_t bytes_for(uint64_t log_bytes)
{
	return MAX_OF(BYTES_MIN, MIN_OF(BYTES_MAX, log_bytes / 4));
}

uint64_t pending_most(uint64_t log_bytes)
{
	return bytes_for(log_bytes) + capacity_for(log_bytes) * sizeof(struct pending_record *);
}

int pending_init(struct pending *p, uint64_t log_bytes)
{
	*p = (struct pending){.capacity = (size_t)capacity_for(log_bytes)};
	pool_init(&p->pool, (size_t)bytes_for(log_bytes));
	p->heap = calloc(p->capacity, sizeof(struct pending_record *));
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

/* Restores the heap's order when its first record has changed. */
static void sink(struct pending *p)
{
	struct pending_record *r = p->heap[0];
	size_t i = 0, child;

	while ((child = 2 * i + 1) < p->n_heap) {
		if (child + 1 < p->n_heap && is_before(p->heap[child + 1], p->heap[child]))
			child++;
		if (!is_before(p->heap[child], r))
			break;
		p->heap[i] = p->heap[child];
		i = child;
	}
	p->heap[i] = r;
}

/* Appends R to QUEUE. The first record of a queue enters the heap, and so does a record that is
 * older than the queue's last. */
static void enqueue(struct pending *p, struct pending_record *r, unsigned queue)
{
	struct pending_record *last = p->last[queue];
	size_t i;

	if (!last || !is_before(r, last)) {
		r->queue = (uint8_t)queue;
		p->last[queue] = r;
	}
	if (last && r->queue == queue) {
		last->next = r;
		return;
	}
	for (i = p->n_heap++; i > 0 && is_before(r, p->heap[(i - 1) / 2]); i = (i - 1) / 2)
		p->heap[i] = p->heap[(i - 1) / 2];
	p->heap[i] = r;
}

bool pending_add(struct pending *p, const struct record_head *head, const void *bytes)
{
	struct pending_record *r = NULL;

	if (p->n < p->capacity)
		r = pool_get(&p->pool, sizeof(*r) + head->size);
	if (!r)
		return false;
	r->time = head->time;
	r->order = p->order++;
	r->queue = NO_QUEUE;
	r->later = timeline_is_later(head->type, head->time);
	r->size = head->size;
	memcpy(r->bytes, bytes, head->size);
	p->n++;
	enqueue(p, r, head->cpu % PENDING_QUEUES);
	return true;
}

const struct pending_record *pending_first(const struct pending *p)
{
	return p->n ? p->heap[0] : NULL;
}

void pending_drop_first(struct pending *p)
{
	struct pending_record *r = p->heap[0];

	if (r->next) {
		p->heap[0] = r->next;
	} else {
		if (r->queue != NO_QUEUE)
			p->last[r->queue] = NULL;
		p->heap[0] = p->heap[--p->n_heap];
	}
	p->n--;
	pool_put(&p->pool, r, sizeof(*r) + r->size);
	if (p->n > 0)
		sink(p);
}

void pending_list(const struct pending *p, const struct pending_record **ret)
{
	for (size_t i = 0; i < p->n_heap; i++)
		for (const struct pending_record *r = p->heap[i]; r; r = r->next)
			*ret++ = r;
}
