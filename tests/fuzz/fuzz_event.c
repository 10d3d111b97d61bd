/*
 * Fuzzes the event reader with bytes as packets of some processor. Invariants: reading ends, with
 * no more events than the packets allow; events lie within the bytes and, except for marks, do not
 * go back; looking ahead changes nothing; every mark exists.
 */
#include <assert.h>
#include <string.h>

#include "decoder/packet/event.h"
#include "proto/base.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* One processor for each erratum. */
static const uint8_t models[] = {0, 0x3d, 0x4f, 0x5e, 0x55, 0x5c, 0x5f, 0x7a, 0x8e, 0x97, 0xcf};

static void check(const struct event_reader *r, const struct event *e, size_t size, uint64_t *end)
{
	const struct flow_mark *mark;

	assert(e->kind <= EVENT_END);
	assert(e->offset <= e->end && e->end <= size);
	if (e->kind == EVENT_TNT)
		assert(e->n > 0 && e->n < 64);
	if (e->kind != EVENT_MARK) {
		assert(e->end >= *end);
		*end = e->end;
		return;
	}
	mark = event_mark(r, e);
	assert(mark->kind < FLOW_MARK_N_ && mark->offset < size);
}

static bool is_same(const struct event *a, const struct event *b)
{
	return a->kind == b->kind && a->offset == b->offset && a->end == b->end &&
	       a->from == b->from && a->to == b->to && a->has_from == b->has_from &&
	       a->has_to == b->has_to && a->n == b->n && a->bits == b->bits && a->mode == b->mode &&
	       a->fault == b->fault;
}

static struct event_reader reader_of(const uint8_t *data, size_t size, uint8_t choice)
{
	uint8_t model = models[choice % sizeof(models)];
	struct event_reader r;

	event_reader_init(&r, data, size, 0, size, errata_for(model != 0 ? 6 : 0, model));
	return r;
}

/* Asking again gives the remembered answer. */
static void ask(struct event_reader *curious)
{
	struct event_reader fresh = *curious;

	memset(fresh.answers, 0, sizeof(fresh.answers));
	assert(event_off_ahead(&fresh) == event_off_ahead(curious));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct event_reader r, curious;
	struct event e, same;
	uint64_t end = 0;
	size_t n = 0;

	if (size == 0)
		return 0;
	r = curious = reader_of(data + 1, size - 1, data[0]);
	do {
		ask(&curious);
		event_next(&curious, &same);
		event_next(&r, &e);
		assert(is_same(&e, &same));
		check(&r, &e, size - 1, &end);
		assert(++n <= 4 * size + 8);
	} while (e.kind != EVENT_END);
	event_next(&r, &e);
	assert(e.kind == EVENT_END);
	return 0;
}
