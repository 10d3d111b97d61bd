/*
 * Decodes a trace in one way and keeps all results, for comparison with another way.
 *
 * Batches may end anywhere. The comparison covers all of them in a row, each item with its batch's
 * context.
 */
#include "tests/oracle/nodes_compare.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base.h"
#include "tests/support/flow_look.h"

#define PORTION_MAX 4096u
#define ITEMS_MAX   ((size_t)1 << 22)

struct kept {
	struct flow_item item; /* gap and mark indices count from the beginning */
	uint64_t context;
};

struct nodes_stream {
	struct kept *items;
	struct flow_gap *gaps;
	struct flow_mark *marks;
	size_t n_items, n_gaps, n_marks, max_items, max_gaps, max_marks;
	struct flow_stats stats;
	uint64_t ahead;
	int result;
};

struct nodes_stream *nodes_stream_new(void)
{
	struct nodes_stream *s = calloc(1, sizeof(*s));

	if (s == NULL)
		abort();
	return s;
}

void nodes_stream_free(struct nodes_stream *s)
{
	free(s->items);
	free(s->gaps);
	free(s->marks);
	free(s);
}

size_t nodes_stream_items(const struct nodes_stream *s)
{
	return s->n_items;
}

uint64_t nodes_stream_ahead(const struct nodes_stream *s)
{
	return s->ahead;
}

/* Makes room for N more elements of SIZE bytes. */
static void *room(void *list, size_t n, size_t *max, size_t more, size_t size)
{
	if (n + more <= *max)
		return list;
	*max = 2 * (n + more);
	list = reallocarray(list, *max, size);
	if (list == NULL)
		abort();
	return list;
}

static void keep(struct nodes_stream *s, const struct flow_item *item, size_t gaps, size_t marks,
		 uint64_t context)
{
	struct kept *k;

	if (s->n_items == ITEMS_MAX)
		return;
	s->items = room(s->items, s->n_items, &s->max_items, 1, sizeof(*s->items));
	k = &s->items[s->n_items++];
	*k = (struct kept){*item, context};
	if (item->kind == FLOW_GAP)
		k->item.gap += (uint32_t)gaps;
	if (item->kind == FLOW_MARK)
		k->item.mark += (uint32_t)marks;
}

static void keep_steps(struct nodes_stream *s, struct flow *f, const struct flow_batch *b,
		       uint32_t walk, const struct nodes_way *way)
{
	static struct flow_item items[PORTION_MAX];
	struct flow_position position = {0};
	size_t portion = way->portion != 0 ? way->portion : PORTION_MAX, n;

	do {
		n = flow_expand(f, b, walk, &position, items, portion);
		assert(n <= portion);
		for (size_t i = 0; i < n; i++)
			keep(s, &items[i], 0, 0, b->context);
	} while (n > 0);
	flow_look_count(f, b, walk);
}

static void keep_batch(struct nodes_stream *s, struct flow *f, const struct flow_batch *b,
		       const struct nodes_way *way)
{
	for (size_t i = 0; i < b->n_items; i++) {
		if (b->items[i].kind == FLOW_STEPS) {
			assert(way->steps && b->items[i].walk < b->n_walks);
			keep_steps(s, f, b, b->items[i].walk, way);
		} else {
			keep(s, &b->items[i], s->n_gaps, s->n_marks, b->context);
		}
	}
	s->gaps = room(s->gaps, s->n_gaps, &s->max_gaps, b->n_gaps, sizeof(*s->gaps));
	for (size_t i = 0; i < b->n_gaps; i++)
		s->gaps[s->n_gaps++] = b->gaps[i];
	s->marks = room(s->marks, s->n_marks, &s->max_marks, b->n_marks, sizeof(*s->marks));
	for (size_t i = 0; i < b->n_marks; i++)
		s->marks[s->n_marks++] = b->marks[i];
}

void nodes_decode(const struct nodes_compare *c, const struct nodes_way *way,
		  struct nodes_stream *ret)
{
	struct flow_config config = c->config;
	struct flow_batch batch;
	struct flow *f;
	int r;

	ret->n_items = ret->n_gaps = ret->n_marks = 0;
	config.stepping = way->stepping;
	config.steps = way->steps;
	config.batch_items = way->batch_items;
	config.threads = way->threads != 0 ? way->threads : 1;
	config.thread_bytes = way->thread_bytes;
	config.share = way->own ? NULL : c->share;
	if (flow_new(&config, &f) != 0)
		abort();
	if (c->reset != NULL)
		c->reset(config.userdata, f);
	while ((r = flow_next(f, &batch)) == 0 || r == FLOW_LATER) {
		if (way->settle)
			flow_look_settle(f);
		keep_batch(ret, f, &batch, way);
	}
	ret->result = r;
	ret->stats = *flow_get_stats(f);
	ret->ahead = flow_look_settle(f);
	flow_free(f);
}

/* --- Comparing --- */

static const char *const kinds[] = {"cond",    "jump", "call", "jump*", "call*",
				    "ret",     "far",  "sysc", "async", "enable",
				    "disable", "end",  "gap",  "mark",	"steps"};

static void item_text(const struct nodes_stream *s, size_t at, char *to, size_t size)
{
	const struct flow_item *i = &s->items[at].item;

	if (at >= s->n_items) {
		snprintf(to, size, "nothing");
		return;
	}
	snprintf(to, size,
		 "%s %" PRIx64 " -> %" PRIx64 " start %" PRIx64 " insns %" PRIu32 " time %" PRIu64
		 "..%" PRIu64 " offset %" PRIu64 " u %" PRIu32 " flags %x of %" PRIu64 " %s",
		 kinds[i->kind], i->from, i->to, i->start, i->insns, i->tsc_lo, i->tsc_hi,
		 i->offset, i->gap, i->flags, s->items[at].context,
		 i->kind == FLOW_GAP ? fault_name(s->gaps[i->gap].fault) : "");
}

static bool same_item(const struct kept *a, const struct kept *b)
{
	const struct flow_item *x = &a->item, *y = &b->item;

	return x->from == y->from && x->to == y->to && x->start == y->start &&
	       x->tsc_lo == y->tsc_lo && x->tsc_hi == y->tsc_hi && x->offset == y->offset &&
	       x->insns == y->insns && x->gap == y->gap && x->kind == y->kind &&
	       x->flags == y->flags && a->context == b->context;
}

static bool same_gap(const struct flow_gap *a, const struct flow_gap *b)
{
	return a->fault == b->fault && a->offset == b->offset && a->bytes == b->bytes &&
	       a->address == b->address && a->read == b->read && a->tsc_lo == b->tsc_lo &&
	       a->tsc_hi == b->tsc_hi && a->stays == b->stays;
}

static bool same_mark(const struct flow_mark *a, const struct flow_mark *b)
{
	return a->offset == b->offset && a->ip == b->ip && a->value == b->value &&
	       memcmp(a->evd, b->evd, sizeof(a->evd)) == 0 && a->tsc_lo == b->tsc_lo &&
	       a->tsc_hi == b->tsc_hi && a->kind == b->kind && a->type == b->type &&
	       a->size == b->size && a->id == b->id && a->flags == b->flags;
}

static bool equal_items(const struct nodes_stream *a, const struct nodes_stream *b, char *why,
			size_t size)
{
	char left[400], right[400];
	size_t i = 0;

	while (i < a->n_items && i < b->n_items && same_item(&a->items[i], &b->items[i]))
		i++;
	if (i == a->n_items && i == b->n_items)
		return true;
	item_text(a, i, left, sizeof(left));
	item_text(b, i, right, sizeof(right));
	snprintf(why, size, "item %zu of %zu and %zu:\n  %s\n  %s", i, a->n_items, b->n_items, left,
		 right);
	return false;
}

static bool equal_gaps(const struct nodes_stream *a, const struct nodes_stream *b, char *why,
		       size_t size)
{
	for (size_t i = 0; i < MIN_OF(a->n_gaps, b->n_gaps); i++) {
		const struct flow_gap *x = &a->gaps[i], *y = &b->gaps[i];

		if (same_gap(x, y))
			continue;
		snprintf(why, size,
			 "gap %zu: %s %" PRIx64 " %" PRIu64 "+%" PRIu64 " read %" PRIu64 " %" PRIu64
			 "..%" PRIu64 " stays %" PRIu64 "\n  %s %" PRIx64 " %" PRIu64 "+%" PRIu64
			 " read %" PRIu64 " %" PRIu64 "..%" PRIu64 " stays %" PRIu64,
			 i, fault_name(x->fault), x->address, x->offset, x->bytes, x->read,
			 x->tsc_lo, x->tsc_hi, x->stays, fault_name(y->fault), y->address,
			 y->offset, y->bytes, y->read, y->tsc_lo, y->tsc_hi, y->stays);
		return false;
	}
	snprintf(why, size, "%zu and %zu gaps", a->n_gaps, b->n_gaps);
	return a->n_gaps == b->n_gaps;
}

static bool equal_marks(const struct nodes_stream *a, const struct nodes_stream *b, char *why,
			size_t size)
{
	for (size_t i = 0; i < MIN_OF(a->n_marks, b->n_marks); i++) {
		const struct flow_mark *x = &a->marks[i], *y = &b->marks[i];

		if (same_mark(x, y))
			continue;
		snprintf(why, size,
			 "mark %zu: kind %u at %" PRIu64 " ip %" PRIx64 " time %" PRIu64
			 "..%" PRIu64 "\n  kind %u at %" PRIu64 " ip %" PRIx64 " time %" PRIu64
			 "..%" PRIu64,
			 i, x->kind, x->offset, x->ip, x->tsc_lo, x->tsc_hi, y->kind, y->offset,
			 y->ip, y->tsc_lo, y->tsc_hi);
		return false;
	}
	snprintf(why, size, "%zu and %zu marks", a->n_marks, b->n_marks);
	return a->n_marks == b->n_marks;
}

static bool equal_stats(const struct nodes_stream *a, const struct nodes_stream *b, char *why,
			size_t size)
{
	static const char *const names[] = {"bytes",
					    "bytes_decoded",
					    "instructions",
					    "kernel_instructions",
					    "changing same",
					    "changing memory",
					    "changing shared",
					    "changing mapping",
					    "changing file",
					    "changing unverified",
					    "branches",
					    "psbs",
					    "cbr",
					    "overflows",
					    "unknown",
					    "tsc_first",
					    "tsc_last",
					    "packets",
					    "compressed_returns",
					    "returns",
					    "returns_all",
					    "returns_compressed",
					    "returns_undecided",
					    "branches_undecided"};
	const uint64_t *x = (const uint64_t *)&a->stats, *y = (const uint64_t *)&b->stats;

	_Static_assert(sizeof(struct flow_stats) == ARRAY_SIZE(names) * sizeof(uint64_t),
		       "a name is missing");
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		if (x[i] == y[i])
			continue;
		snprintf(why, size, "stats %s: %" PRIu64 " and %" PRIu64, names[i], x[i], y[i]);
		return false;
	}
	return true;
}

bool nodes_equal_items(const struct nodes_stream *a, const struct nodes_stream *b, char *why,
		       size_t size)
{
	return a->result == b->result && equal_items(a, b, why, size) &&
	       equal_gaps(a, b, why, size);
}

size_t nodes_stream_gaps(const struct nodes_stream *s)
{
	return s->n_gaps;
}

const struct flow_stats *nodes_stream_stats(const struct nodes_stream *s)
{
	return &s->stats;
}

bool nodes_equal(const struct nodes_stream *a, const struct nodes_stream *b, char *why, size_t size)
{
	if (a->result != b->result) {
		snprintf(why, size, "results %d and %d", a->result, b->result);
		return false;
	}
	return equal_items(a, b, why, size) && equal_gaps(a, b, why, size) &&
	       equal_marks(a, b, why, size) && equal_stats(a, b, why, size);
}
