/*
 * Keeps calls in the order of their begins until their ends are known.
 */
#include "ctl/calls/order.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base.h"

#define NOWHERE	 UINT64_MAX
#define MAX_GAPS 256u /* names */

/* Instead of a name and an image that are not kept. */
static char nameless[] = ORDER_NAMELESS, no_image[] = "";

/* An open frame: where its call waits, and how long its thread had had no CPU. */
struct open_frame {
	uint64_t position; /* NOWHERE: the call is left out */
	uint64_t off;
};

struct order_stack {
	struct open_frame *frames; /* owned */
	size_t n, capacity;
	bool is_off;
	uint64_t since, off; /* without a CPU since then; and in all before */
};

void order_init(struct order *o)
{
	*o = (struct order){.depth = UINT32_MAX, .names_max = ORDER_MAX_NAMES};
}

static void free_text(char *text)
{
	if (text != nameless && text != no_image)
		free(text);
}

void order_done(struct order *o)
{
	for (size_t i = 0; i < o->n_threads; i++)
		free_text(o->threads[i].name);
	for (size_t i = 0; i < o->n_functions; i++) {
		free_text(o->functions[i].name);
		free_text(o->functions[i].image);
	}
	for (size_t i = 0; i < o->n_gaps; i++)
		free(o->gaps[i]);
	for (size_t i = 0; i < o->n_stacks; i++)
		free(o->stacks[i].frames);
	free(o->threads);
	free(o->functions);
	free(o->gaps);
	free(o->stacks);
	free(o->calls);
	*o = (struct order){0};
}

uint64_t order_duration(const struct order_call *call, uint64_t *ret_uncertain)
{
	uint64_t begin = call->begin + call->begin_width / 2, end = call->end + call->end_width / 2;

	*ret_uncertain = call->begin_width / 2 + call->end_width / 2;
	return end > begin ? end - begin : 0;
}

/* --- The calls that wait --- */

static struct order_call *call_at(const struct order *o, uint64_t position)
{
	return &o->calls[position & (o->capacity - 1)];
}

static int tell_first(struct order *o)
{
	const struct order_call *call = call_at(o, o->head++);

	return call->dropped ? 0 : o->fn(o->userdata, call);
}

static int tell_known(struct order *o)
{
	int r = 0;

	/* What was left out last makes room at once. */
	while (o->tail > o->head && call_at(o, o->tail - 1)->dropped)
		o->tail--;
	while (r == 0 && o->head < o->tail && call_at(o, o->head)->known)
		r = tell_first(o);
	return r;
}

/* The call that began first has not ended, and no more can wait. */
static int tell_running(struct order *o, uint64_t now)
{
	struct order_call *call = call_at(o, o->head);
	uint64_t uncertain;

	call->running = true;
	call->end = MAX_OF(now, call->begin);
	call->dropped = order_duration(call, &uncertain) < o->longer_than;
	o->running += !call->dropped;
	return tell_first(o);
}

static int grow(struct order *o)
{
	size_t capacity = o->capacity ? 2 * o->capacity : 256;
	struct order_call *calls = calloc(capacity, sizeof(*calls));

	if (!calls)
		return -ENOMEM;
	for (uint64_t i = o->head; i < o->tail; i++)
		calls[i & (capacity - 1)] = *call_at(o, i);
	free(o->calls);
	o->calls = calls;
	o->capacity = capacity;
	return 0;
}

/* *RET: where CALL waits. */
static int push(struct order *o, const struct order_call *call, uint64_t *ret)
{
	int r = 0;

	if (o->tail - o->head == ORDER_MAX)
		r = tell_running(o, call->begin);
	if (r == 0)
		r = tell_known(o);
	if (r == 0 && o->tail - o->head == o->capacity)
		r = grow(o);
	if (r != 0)
		return r;
	*ret = o->tail;
	*call_at(o, o->tail++) = *call;
	return 0;
}

/* --- Items --- */

/* Copies TEXT if there is room for it; else *RET is INSTEAD, which is not owned. 0 or -ENOMEM. */
static int keep(struct order *o, const char *text, char *instead, char **ret)
{
	const size_t size = strlen(text) + 1;

	*ret = instead;
	if (size > o->names_max - o->names_used)
		return 0;
	*ret = strdup(text);
	if (!*ret)
		return -ENOMEM;
	o->names_used += size;
	return 0;
}

static int take_thread(struct order *o, const struct callstream_item *item)
{
	struct order_thread *t;
	int r;

	if (item->thread >= ORDER_MAX_THREADS) {
		o->threads_left_out++;
		return 0;
	}
	if (ARRAY_RESERVE(o->threads, o->threads_capacity, (size_t)item->thread + 1) < 0 ||
	    ARRAY_RESERVE(o->stacks, o->stacks_capacity, (size_t)item->thread + 1) < 0)
		return -ENOMEM;
	while (o->n_threads <= item->thread)
		o->threads[o->n_threads++] = (struct order_thread){0};
	while (o->n_stacks <= item->thread)
		o->stacks[o->n_stacks++] = (struct order_stack){0};
	t = &o->threads[item->thread];
	*t = (struct order_thread){item->pid, item->tid, NULL};
	r = keep(o, item->name, nameless, &t->name);
	o->nameless += t->name == nameless;
	return r;
}

static int take_function(struct order *o, const struct callstream_item *item)
{
	struct order_function *f;
	int r;

	if (item->function >= ORDER_MAX_FUNCTIONS) {
		o->nameless++;
		return 0;
	}
	if (ARRAY_RESERVE(o->functions, o->functions_capacity, (size_t)item->function + 1) < 0)
		return -ENOMEM;
	while (o->n_functions <= item->function)
		o->functions[o->n_functions++] = (struct order_function){0};
	f = &o->functions[item->function];
	r = keep(o, item->name, nameless, &f->name);
	if (r == 0)
		r = keep(o, item->image, no_image, &f->image);
	o->nameless += f->name == nameless;
	return r;
}

const struct order_thread *order_thread(const struct order *o, uint32_t number)
{
	static const struct order_thread nobody = {.name = nameless};

	return number < o->n_threads && o->threads[number].name ? &o->threads[number] : &nobody;
}

const struct order_function *order_function(const struct order *o, uint32_t number)
{
	static const struct order_function unknown = {nameless, no_image};

	return number < o->n_functions && o->functions[number].image ? &o->functions[number]
								     : &unknown;
}

static uint64_t off_until(const struct order_stack *s, uint64_t time)
{
	return s->off + (s->is_off && time > s->since ? time - s->since : 0);
}

static int take_begin(struct order *o, struct order_stack *s, const struct callstream_item *item)
{
	struct order_call call = {
		.begin = item->time,
		.begin_width = item->width,
		.thread = item->thread,
		.cpu = item->cpu,
		.function = item->function,
		.depth = (uint32_t)MIN_OF(s->n, (size_t)UINT32_MAX - 1),
		.how = (uint8_t)item->begin,
	};
	uint64_t position = NOWHERE;
	int r = 0;

	if (call.depth < o->depth)
		r = push(o, &call, &position);
	if (r == 0 && ARRAY_RESERVE(s->frames, s->capacity, s->n + 1) < 0)
		r = -ENOMEM;
	if (r == 0)
		s->frames[s->n++] =
			(struct open_frame){position, off_until(s, item->time + item->width / 2)};
	return r;
}

static int take_finish(struct order *o, struct order_stack *s, const struct callstream_item *item)
{
	const struct open_frame f = s->frames[--s->n];
	struct order_call *call;
	uint64_t uncertain;

	/* It is left out, or was told while it was running. */
	if (f.position == NOWHERE || f.position < o->head)
		return 0;
	call = call_at(o, f.position);
	call->end = item->time;
	call->end_width = item->width;
	call->off = off_until(s, item->time + item->width / 2) - f.off;
	call->insns = item->insns;
	call->ended = (uint8_t)item->end;
	call->known = true;
	call->dropped = order_duration(call, &uncertain) < o->longer_than;
	return tell_known(o);
}

static void take_switch(struct order_stack *s, const struct callstream_item *item)
{
	s->off = off_until(s, item->time);
	s->is_off = item->kind == CALLSTREAM_OFF;
	s->since = item->time;
}

/* There are few names of gaps. */
static int number_gap(struct order *o, const char *name, uint32_t *ret)
{
	for (*ret = 0; *ret < o->n_gaps; ++*ret)
		if (strcmp(o->gaps[*ret], name) == 0)
			return 0;
	if (o->n_gaps == MAX_GAPS) {
		*ret = MAX_GAPS - 1;
		return 0;
	}
	/* More than a decoder knows: the stream is somebody else's. */
	if (o->n_gaps == MAX_GAPS - 1)
		name = "other";
	if (ARRAY_RESERVE(o->gaps, o->gaps_capacity, o->n_gaps + 1) < 0 ||
	    !(o->gaps[o->n_gaps] = strdup(name)))
		return -ENOMEM;
	o->n_gaps++;
	return 0;
}

static int take_gap(struct order *o, const struct callstream_item *item)
{
	struct order_call call = {
		.begin = item->time,
		.end = item->time + item->width,
		.thread = item->thread,
		.cpu = item->cpu,
		.gap = true,
		.known = true,
	};
	uint64_t position;
	int r = number_gap(o, item->name, &call.function);

	if (r == 0)
		r = push(o, &call, &position);
	return r == 0 ? tell_known(o) : r;
}

/* A slice ends its frames itself; what waits still is a gap or has ended. */
static int take_end(struct order *o, const struct callstream_item *item)
{
	int r = 0;

	o->cut = item->cut;
	while (r == 0 && o->head < o->tail)
		r = tell_first(o);
	return r;
}

static bool needs_stack(enum callstream_kind kind)
{
	return kind == CALLSTREAM_BEGIN || kind == CALLSTREAM_FINISH || kind == CALLSTREAM_ON ||
	       kind == CALLSTREAM_OFF;
}

int order_take(void *order, const struct callstream_item *item)
{
	struct order *o = order;
	struct order_stack *s =
		item->thread > 0 && item->thread < o->n_stacks ? &o->stacks[item->thread] : NULL;

	/* A thread beyond the limit. */
	if (!s && needs_stack(item->kind))
		return 0;
	switch (item->kind) {
	case CALLSTREAM_HEAD:
		o->first = item->time;
		o->trigger = item->value;
		return 0;
	case CALLSTREAM_THREAD: return take_thread(o, item);
	case CALLSTREAM_FUNCTION: return take_function(o, item);
	case CALLSTREAM_BEGIN: return take_begin(o, s, item);
	case CALLSTREAM_FINISH: return take_finish(o, s, item);
	case CALLSTREAM_ON:
	case CALLSTREAM_OFF: take_switch(s, item); return 0;
	case CALLSTREAM_GAP: return take_gap(o, item);
	case CALLSTREAM_END: return take_end(o, item);
	default: return 0;
	}
}
