/*
 * Which questions of whose code it is (flow_config.context) are asked within one batch. Who answers
 * may know more when another trace has come further, so with `steps` that depends on the trace
 * alone, and not on what threads did or on where a batch is full. Called by the rest of the walk,
 * whose part it is (flow_private.h).
 *
 * The first question of a group is asked at the beginning of a batch. Others are of the same group
 * if their packets begin less than so many bytes behind its one; the next question ends the batch
 * before it is asked. Up to there the batch is open: it does not end for want of room, but grows,
 * in proportion to these bytes. Behind them it may end anywhere: nobody is asked.
 *
 * What bytes do not bound are items of direct branches that the stepping walk goes over. In the
 * kernel's code they are counted, and end the batch at the same one always. In user code the
 * stepping walk is alone only where nodes cannot be made; a batch that is full of these ends, and
 * there alone threads may move an end by the few that stand where a piece of theirs does.
 */
#include <stdlib.h>
#include <string.h>

#include "decoder/flow/flow_private.h"
#include "proto/base.h"

/* Bytes of a group, and items that may need the stepping walk; with small batches fewer. */
#define GROUP_BYTES 4096u
#define GROUP_ITEMS 2048u
#define SMALL_PART  4u

static uint32_t part_of(const struct flow *f)
{
	return f->few_items < FLOW_ITEMS ? SMALL_PART : 1;
}

static void open_at(struct flow *f, uint64_t offset)
{
	f->open = f->config.steps;
	f->asked_at = offset;
	f->open_until = offset + GROUP_BYTES / part_of(f);
	f->n_firm = 0;
}

/* The next packet that may lead to a question lies here, or behind it. */
static uint64_t next_at(const struct flow *f)
{
	const struct event_reader *r = &f->reader;

	if (f->have_event || r->queue_n > 0 || r->n_waits > 0 || r->mode_waits || r->fup_owed)
		return f->event.offset;
	return (uint64_t)(r->c.pos - r->trace);
}

bool flow_is_open(struct flow *f)
{
	f->open = f->open && next_at(f) < f->open_until;
	return f->open;
}

bool flow_may_ask(struct flow *f)
{
	uint64_t offset = f->event.offset;

	if (!f->config.steps)
		return true;
	if (f->n_items == 0)
		open_at(f, offset);
	if (!f->open || offset >= f->open_until) {
		f->full = true;
		return false;
	}
	f->asked_at = offset;
	return true;
}

void flow_begin_group(struct flow *f)
{
	f->open = false;
	if (!f->started)
		open_at(f, (uint64_t)(f->reader.c.pos - f->reader.trace));
	else if (f->asked || f->changes || f->parted)
		open_at(f, f->asked ? MAX_OF(f->asked_at, f->event.offset) : f->asked_at);
	f->parted = false;
}

/* Twice as many items, within bounds: those that are counted, one of steps for each byte, and as
 * many others as are counted. *RET: there is room for a step. 0 or -ENOMEM. */
static int grow(struct flow *f, bool *ret)
{
	const uint32_t max = (2 * GROUP_ITEMS + GROUP_BYTES) / part_of(f);
	uint32_t n = MIN_OF(2 * f->max_items, max);

	*ret = f->n_items + FLOW_STEP_ITEMS <= n;
	if (!*ret)
		return 0;
	if (ARRAY_FIT(f->items, n) < 0 || ARRAY_FIT(f->gaps, n) < 0 ||
	    (f->config.marks && ARRAY_FIT(f->marks, n) < 0))
		return -ENOMEM;
	f->max_items = n;
	return 0;
}

int flow_has_room(struct flow *f, bool *ret)
{
	bool open = flow_is_open(f);

	*ret = f->n_items + FLOW_STEP_ITEMS <= (open ? f->max_items : f->few_items);
	if (open && f->n_firm >= GROUP_ITEMS / part_of(f))
		*ret = false;
	else if (open && !*ret)
		return grow(f, ret);
	return 0;
}
