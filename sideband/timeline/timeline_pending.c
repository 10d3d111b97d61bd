/*
 * Records between log and base: DATA rings are drained one CPU after the other, so a fork may be
 * logged after what its child did elsewhere. They wait here until the log's oldest are well beyond
 * them. Those of one CPU come in order, and wait in a line; a heap holds the first of each line,
 * and the few that came late. The daemon's.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base.h"
#include "sideband/timeline/timeline_private.h"

#define CAPACITY_MIN 64u
#define CAPACITY_MAX 16384u
#define RECORD_USUAL 256u /* bytes of a MMAP2 */
#define BYTES_MIN    (256u << 10)
#define BYTES_MAX    (CAPACITY_MAX * 512u)
#define NO_LINE	     PENDING_LINES

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

static void rise(struct pending *p, size_t i)
{
	struct pending_record *r = p->heap[i];

	for (; i > 0 && is_before(r, p->heap[(i - 1) / 2]); i = (i - 1) / 2)
		p->heap[i] = p->heap[(i - 1) / 2];
	p->heap[i] = r;
}

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

/* Behind the last of its CPU's line, where it is not older than that. */
static void line_up(struct pending *p, struct pending_record *r, unsigned line)
{
	struct pending_record *last = p->last[line];

	if (!last || !is_before(r, last)) {
		r->line = (uint8_t)line;
		p->last[line] = r;
	}
	if (last && r->line == line) {
		last->next = r;
		return;
	}
	p->heap[p->n_heap++] = r;
	rise(p, p->n_heap - 1);
}

bool pending_add(struct pending *p, const struct glance *record, const void *bytes)
{
	struct pending_record *r = NULL;

	if (p->n < p->capacity)
		r = pool_get(&p->pool, sizeof(*r) + record->size);
	if (!r)
		return false;
	r->time = record->time;
	r->order = p->order++;
	r->line = NO_LINE;
	r->later = timeline_is_later(record->type, record->time);
	r->size = record->size;
	memcpy(r->bytes, bytes, record->size);
	p->n++;
	line_up(p, r, record->cpu % PENDING_LINES);
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
		if (r->line != NO_LINE)
			p->last[r->line] = NULL;
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
