/*
 * Slices a call stream while it passes.
 */
#include "ctl/calls/slice.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base.h"

#include "ctl/base/say.h"
#include "ctl/base/size.h"

/* --- Options --- */

enum { FROM, TO, CPU, PID, TID = SLICE_TID, COMM, FUNCTION, IMAGE };
static const char *const names[SLICE_OPTIONS] = {"from", "to",	 "cpu",	     "pid",
						 "tid",	 "comm", "function", "image"};

void slice_option_table(struct option to[static SLICE_OPTIONS], int first)
{
	for (int i = 0; i < (int)SLICE_OPTIONS; i++)
		to[i] = (struct option){names[i], required_argument, NULL, first + i};
}

static int take_time(struct slice_time *t, size_t index, const char *value)
{
	bool before = *value == '-';
	uint64_t usec = 0;
	int r = size_parse_time(value + before, &usec);

	if (r == 0 && __builtin_mul_overflow(usec, UINT64_C(1000), &t->ns))
		r = -ERANGE;
	t->given = true;
	t->before_trigger = before;
	if (r == 0)
		return 0;
	return say_error(EXIT_CODE_USAGE,
			 "--%s=%s: give a time like 20ms, from the begin of the trace, or -20ms, "
			 "before the trigger",
			 names[index], value);
}

static int take_number(uint32_t *n, bool *has, size_t index, const char *value)
{
	uint64_t v = 0;

	if (size_parse_number(value, &v) < 0 || v > UINT32_MAX)
		return say_error(EXIT_CODE_USAGE, "--%s=%s: give a number, decimal or 0x",
				 names[index], value);
	*n = (uint32_t)v;
	*has = true;
	return 0;
}

int slice_option_take(struct slice *s, size_t index, const char *value)
{
	switch (index) {
	case FROM: return take_time(&s->from, index, value);
	case TO: return take_time(&s->to, index, value);
	case CPU: return take_number(&s->cpu, &s->has_cpu, index, value);
	case PID: return take_number(&s->pid, &s->has_pid, index, value);
	case TID: return take_number(&s->tid, &s->has_tid, index, value);
	case COMM: s->comm = value; return 0;
	case FUNCTION: s->function = value; return 0;
	default: s->image = value; return 0;
	}
}

bool slice_is_given(const struct slice *s)
{
	return s->from.given || s->to.given || s->has_cpu || s->has_pid || s->has_tid || s->comm ||
	       s->function || s->image;
}

/* --- For the decoder --- */

static uint32_t where(const struct slice_time *t)
{
	if (!t->given)
		return WORKER_TIME_NONE;
	return t->before_trigger ? WORKER_TIME_TRIGGER : WORKER_TIME_BEGIN;
}

struct decode_slice slice_decode_until(const struct slice *s)
{
	return (struct decode_slice){.to_ns = s->to.ns, .to = where(&s->to)};
}

struct decode_slice slice_decode_span(const struct slice *s)
{
	struct decode_slice span = slice_decode_until(s);

	span.from_ns = s->from.ns;
	span.from = where(&s->from);
	return span;
}

int slice_decode_all(const struct slice *s, struct decode_slice *ret)
{
	*ret = slice_decode_span(s);
	ret->has_cpu = s->has_cpu;
	ret->has_pid = s->has_pid;
	ret->has_tid = s->has_tid;
	ret->cpu = s->cpu;
	ret->pid = s->pid;
	ret->tid = s->tid;
	if (s->comm && strlen(s->comm) >= sizeof(ret->comm))
		return say_error(EXIT_CODE_USAGE,
				 "--comm: give a pattern of at most %zu bytes; the name of a "
				 "thread has 15",
				 sizeof(ret->comm) - 1);
	if (s->comm)
		strcpy(ret->comm, s->comm);
	return 0;
}

/* --- Slicing --- */

struct frame {
	uint32_t function;
	enum callstream_begin begin;
	bool shown; /* its begin was handed on, and its end was not */
};

struct thread {
	bool wanted;
	bool seen;	    /* there was an item of it */
	bool entered, left; /* an item at or behind the slice's begin, behind its end */
	bool inside;	    /* in the span of time and on the CPU of the slice */
	bool on, off;	    /* has a CPU, has none; neither is known */
	bool on_told;	    /* the turn's begin was handed on, and its end was not */
	uint32_t cpu;
	struct frame *frames; /* owned */
	size_t n, capacity;
	size_t first; /* the first frame of the functions of the slice, or SIZE_MAX */
};

struct slicer {
	const struct slice *slice;
	calls_fn fn;
	void *userdata;
	uint64_t from, to;	/* ns */
	struct thread *threads; /* by number */
	size_t n_threads, threads_capacity;
	bool *functions; /* by number: is of the slice */
	size_t n_functions, functions_capacity;
	uint64_t n_frames; /* handed on */
};

int slicer_new(const struct slice *slice, calls_fn fn, void *userdata, struct slicer **ret)
{
	struct slicer *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->slice = slice;
	s->fn = fn;
	s->userdata = userdata;
	*ret = s;
	return 0;
}

void slicer_freep(struct slicer **sp)
{
	struct slicer *s = *sp;

	if (!s)
		return;
	for (size_t i = 0; i < s->n_threads; i++)
		free(s->threads[i].frames);
	free(s->threads);
	free(s->functions);
	free(s);
	*sp = NULL;
}

static int hand_on(struct slicer *s, const struct callstream_item *item)
{
	struct callstream_item with_texts = *item;

	if (!with_texts.name)
		with_texts.name = with_texts.image = with_texts.file = "";
	return s->fn(s->userdata, &with_texts);
}

static uint64_t resolve(const struct slice_time *t, const struct callstream_item *head,
			uint64_t otherwise)
{
	uint64_t base = head->value ? head->value : head->time + head->width, ns;

	if (!t->given)
		return otherwise;
	if (t->before_trigger)
		return base > t->ns ? base - t->ns : 0;
	return __builtin_add_overflow(head->time, t->ns, &ns) ? UINT64_MAX : ns;
}

int slice_span(const struct slice *s, const struct callstream_item *head, uint64_t *ret_from,
	       uint64_t *ret_to)
{
	uint64_t end = head->time + head->width;

	*ret_from = MAX_OF(resolve(&s->from, head, head->time), head->time);
	*ret_to = MIN_OF(resolve(&s->to, head, end), end);
	/* A trace may be a moment; only what the user gave can be empty. */
	return *ret_from > *ret_to || (*ret_from == *ret_to && head->width > 0) ? -EINVAL : 0;
}

static int take_head(struct slicer *s, const struct callstream_item *item)
{
	struct callstream_item head = *item;

	if (slice_span(s->slice, item, &s->from, &s->to) < 0)
		return -EINVAL;
	head.time = s->from;
	head.width = s->to - s->from;
	return hand_on(s, &head);
}

static bool matches(const char *pattern, const char *text)
{
	return !pattern || fnmatch(pattern, text, 0) == 0;
}

static int take_thread(struct slicer *s, const struct callstream_item *item)
{
	const struct slice *slice = s->slice;
	struct thread *t;

	if (ARRAY_RESERVE(s->threads, s->threads_capacity, (size_t)item->thread + 1) < 0)
		return -ENOMEM;
	while (s->n_threads <= item->thread)
		s->threads[s->n_threads++] = (struct thread){.first = SIZE_MAX};
	t = &s->threads[item->thread];
	t->wanted = (!slice->has_pid || slice->pid == item->pid) &&
		    (!slice->has_tid || slice->tid == item->tid) &&
		    matches(slice->comm, item->name);
	return t->wanted ? hand_on(s, item) : 0;
}

static int take_function(struct slicer *s, const struct callstream_item *item)
{
	if (ARRAY_RESERVE(s->functions, s->functions_capacity, (size_t)item->function + 1) < 0)
		return -ENOMEM;
	while (s->n_functions <= item->function)
		s->functions[s->n_functions++] = false;
	s->functions[item->function] =
		matches(s->slice->function, item->name) && matches(s->slice->image, item->image);
	return hand_on(s, item);
}

/* Begins all open frames of the slice, and the turn, at TIME. */
static int show(struct slicer *s, struct thread *t, uint32_t number, uint64_t time)
{
	struct callstream_item item = {
		.kind = CALLSTREAM_ON, .thread = number, .cpu = t->cpu, .time = time};
	int r = 0;

	t->inside = true;
	if (t->on) {
		t->on_told = true;
		r = hand_on(s, &item);
	}
	item.kind = CALLSTREAM_BEGIN;
	for (size_t i = t->first; i < t->n && r == 0; i++) {
		item.function = t->frames[i].function;
		/* A frame without a function is known by its begin alone. */
		item.begin = item.function ? CALLSTREAM_FOUND : t->frames[i].begin;
		t->frames[i].shown = true;
		s->n_frames++;
		r = hand_on(s, &item);
	}
	return r;
}

/* Shows what was there when the slice began. */
static int show_begun(struct slicer *s, struct thread *t, uint32_t number)
{
	const struct callstream_item off = {.kind = CALLSTREAM_OFF,
					    .thread = number,
					    .cpu = t->cpu,
					    .time = s->from,
					    .why = CALLSTREAM_WHY_UNKNOWN};
	int r = show(s, t, number, s->from);

	return t->off && r == 0 ? hand_on(s, &off) : r;
}

/* Ends them. */
static int hide(struct slicer *s, struct thread *t, uint32_t number, uint64_t time)
{
	struct callstream_item item = {.kind = CALLSTREAM_FINISH,
				       .thread = number,
				       .cpu = t->cpu,
				       .time = time,
				       .end = CALLSTREAM_OPEN};
	int r = 0;

	t->inside = false;
	for (size_t i = t->n; i-- > 0 && r == 0;) {
		if (!t->frames[i].shown)
			break;
		t->frames[i].shown = false;
		r = hand_on(s, &item);
	}
	item.kind = CALLSTREAM_OFF;
	item.end = 0;
	item.why = CALLSTREAM_WHY_UNKNOWN;
	if (t->on_told && r == 0)
		r = hand_on(s, &item);
	t->on_told = false;
	return r;
}

static bool fits(const struct slicer *s, uint32_t cpu)
{
	return !s->slice->has_cpu || s->slice->cpu == cpu;
}

/* Brings the thread to TIME: over the begin and the end of the slice. */
static int pass(struct slicer *s, struct thread *t, uint32_t number, uint64_t time)
{
	int r = 0;

	if (!t->entered && time >= s->from) {
		t->entered = true;
		if (t->seen && fits(s, t->cpu))
			r = show_begun(s, t, number);
	}
	if (r == 0 && !t->left && time > s->to) {
		t->left = true;
		if (t->inside)
			r = hide(s, t, number, s->to);
	}
	t->seen = true;
	return r;
}

/* Brings the thread to the time and the CPU of an item. */
static int move(struct slicer *s, struct thread *t, const struct callstream_item *item)
{
	const bool within = item->time >= s->from && item->time <= s->to;
	int r = pass(s, t, item->thread, item->time);

	if (r == 0 && t->inside && !fits(s, item->cpu))
		r = hide(s, t, item->thread, item->time);
	t->cpu = item->cpu;
	if (r == 0 && !t->inside && within && fits(s, item->cpu))
		r = show(s, t, item->thread, item->time);
	return r;
}

static int take_begin(struct slicer *s, struct thread *t, const struct callstream_item *item)
{
	/* An unknown function is of the slice if every one is. */
	const bool of_slice = item->function ? s->functions[item->function]
					     : !s->slice->function && !s->slice->image;
	struct frame *f;

	if (ARRAY_RESERVE(t->frames, t->capacity, t->n + 1) < 0)
		return -ENOMEM;
	if (t->first == SIZE_MAX && of_slice)
		t->first = t->n;
	f = &t->frames[t->n++];
	*f = (struct frame){.function = item->function,
			    .begin = item->begin,
			    .shown = t->inside && t->first != SIZE_MAX};
	s->n_frames += f->shown;
	return f->shown ? hand_on(s, item) : 0;
}

static int take_finish(struct slicer *s, struct thread *t, const struct callstream_item *item)
{
	const bool shown = t->frames[--t->n].shown;

	if (t->first == t->n)
		t->first = SIZE_MAX;
	return shown ? hand_on(s, item) : 0;
}

static int take_switch(struct slicer *s, struct thread *t, const struct callstream_item *item)
{
	t->on = item->kind == CALLSTREAM_ON;
	t->off = !t->on;
	if (!t->inside)
		return 0;
	t->on_told = t->on;
	return hand_on(s, item);
}

/* A gap may lie partly in the slice. */
static int take_gap(struct slicer *s, const struct callstream_item *item)
{
	struct callstream_item gap = *item;
	uint64_t end;

	if (__builtin_add_overflow(item->time, item->width, &end))
		end = UINT64_MAX;
	if (end < s->from || item->time > s->to || !fits(s, item->cpu))
		return 0;
	gap.time = MAX_OF(item->time, s->from);
	gap.width = MIN_OF(end, s->to) - gap.time;
	return hand_on(s, &gap);
}

static int take_mark(struct slicer *s, const struct callstream_item *item)
{
	bool within = item->time >= s->from && item->time <= s->to && fits(s, item->cpu);

	return within ? hand_on(s, item) : 0;
}

static int take_end(struct slicer *s, const struct callstream_item *item)
{
	struct callstream_item end = *item;
	int r = 0;

	for (uint32_t i = 1; i < s->n_threads && r == 0; i++) {
		struct thread *t = &s->threads[i];

		if (t->wanted && t->seen)
			r = pass(s, t, i, s->to);
		if (r == 0 && t->inside)
			r = hide(s, t, i, s->to);
	}
	end.value = s->n_frames;
	return r == 0 ? hand_on(s, &end) : r;
}

/* An item of a thread, or with the number 0 of a CPU. */
static int take_of_thread(struct slicer *s, const struct callstream_item *item)
{
	struct thread *t = NULL;
	int r = 0;

	if (item->thread != 0) {
		t = &s->threads[item->thread];
		if (!t->wanted)
			return 0;
		r = move(s, t, item);
	}
	if (r != 0)
		return r;
	switch (item->kind) {
	case CALLSTREAM_BEGIN: return take_begin(s, t, item);
	case CALLSTREAM_FINISH: return take_finish(s, t, item);
	case CALLSTREAM_ON:
	case CALLSTREAM_OFF: return take_switch(s, t, item);
	case CALLSTREAM_GAP: return take_gap(s, item);
	default: return take_mark(s, item);
	}
}

int slicer_take(void *slicer, const struct callstream_item *item)
{
	struct slicer *s = slicer;

	switch (item->kind) {
	case CALLSTREAM_HEAD: return take_head(s, item);
	case CALLSTREAM_THREAD: return take_thread(s, item);
	case CALLSTREAM_FUNCTION: return take_function(s, item);
	case CALLSTREAM_END: return take_end(s, item);
	default: return take_of_thread(s, item);
	}
}
