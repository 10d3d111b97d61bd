/*
 * Frames: a line for each instance of a function that the tally sees beginning or ending.
 *
 * The stack of open frames is the tally's, without what runs no function and with the kernel where
 * it is not traced. It is kept here only for what the end of a frame says.
 */
#include "decoder/worker/calltree/calltree_private.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "decoder/packet/fault.h"

/* Fewer instructions have no rate: each time is a few cycles off. */
#define RATE_INSTRUCTIONS 100000u

/* --- The table of threads --- */

static uint32_t *find_slot(const struct calltree *c, const struct timeline_thread *thread)
{
	size_t mask = c->n_slots - 1;
	size_t i = (size_t)(((uint64_t)(uintptr_t)thread >> 4) * 0x9e3779b97f4a7c15ull >> 32);

	for (i &= mask; c->slots[i] != 0; i = (i + 1) & mask)
		if (c->threads[c->slots[i] - 1].thread == thread)
			break;
	return &c->slots[i];
}

static int grow(struct calltree *c)
{
	size_t n = c->n_slots ? 2 * c->n_slots : 64;
	uint32_t *slots = calloc(n, sizeof(*slots));

	if (!slots)
		return -ENOMEM;
	free(c->slots);
	c->slots = slots;
	c->n_slots = n;
	for (size_t i = 0; i < c->n_threads; i++)
		*find_slot(c, c->threads[i].thread) = (uint32_t)i + 1;
	return 0;
}

int calltree_find(struct calltree *c, const struct timeline_thread *thread, uint32_t *ret)
{
	uint32_t *slot;

	if (2 * c->n_threads >= c->n_slots && grow(c) < 0)
		return -ENOMEM;
	slot = find_slot(c, thread);
	if (*slot == 0) {
		if (ARRAY_RESERVE(c->threads, c->capacity, c->n_threads + 1) < 0)
			return -ENOMEM;
		c->threads[c->n_threads++] =
			(struct calltree_thread){.thread = thread, .edge = CALLTREE_NONE};
		*slot = (uint32_t)c->n_threads;
	}
	*ret = *slot - 1;
	return 0;
}

/* --- Frames --- */

static uint64_t depth(const struct calltree_thread *t)
{
	return t->end - t->begin;
}

static struct calltree_frame *frame_at(const struct calltree_thread *t, uint64_t position)
{
	return &t->frames[position & (t->capacity - 1)];
}

/* Gives what was executed since the last time to the innermost frame. */
static void book(struct calltree_thread *t, uint64_t insns)
{
	if (depth(t) > 0)
		frame_at(t, t->end - 1)->insns += insns - t->insns;
	t->insns = insns;
}

static struct callstream_item line_at(struct calltree *c, struct calltree_thread *t,
				      enum callstream_kind kind, const struct stream_when *when)
{
	struct callstream_item item = {
		.kind = kind,
		.thread = calltree_define_thread(c, t),
		.time = MAX_OF(when->lo, t->time),
		.cpu = t->cpu,
	};

	item.width = when->hi > item.time ? when->hi - item.time : 0;
	t->time = item.time;
	return item;
}

static void put_begin(struct calltree *c, struct calltree_thread *t, uint32_t function,
		      enum callstream_begin how, const struct stream_when *when)
{
	struct callstream_item item = line_at(c, t, CALLSTREAM_BEGIN, when);

	item.function = function;
	item.begin = how;
	c->frames++;
	calltree_put(c, &item);
}

/* The functions that are inlined around the call of FRAME. */
static int begin_inlined(struct calltree *c, struct calltree_thread *t,
			 struct calltree_frame *frame, const struct stream_when *when)
{
	uint32_t first = 0;
	unsigned n;
	int r = calltree_inlined(c, t->last_context, t->last_from, &first, &n);

	for (unsigned i = 0; i < n && r == 0; i++)
		put_begin(c, t, first + i, CALLSTREAM_INLINED, when);
	frame->inlined = (uint8_t)n;
	t->inlined += n;
	return r;
}

static int begin_frame(struct calltree *c, struct calltree_thread *t, uint32_t function,
		       enum callstream_begin how, const struct stream_when *when)
{
	struct calltree_frame frame = {.hidden = depth(t) + t->dropped + t->inlined >=
						 CALLTREE_MAX_DEPTH};
	int r = 0;

	/* As long as the array grows it has dropped nothing (calls_push()). */
	if (ARRAY_RESERVE(t->frames, t->capacity, depth(t) + 1) < 0)
		return -ENOMEM;
	if (!frame.hidden && (how == CALLSTREAM_CALL || how == CALLSTREAM_SYSCALL))
		r = begin_inlined(c, t, &frame, when);
	*frame_at(t, t->end++) = frame;
	c->cut += frame.hidden;
	if (!frame.hidden)
		put_begin(c, t, function, how, when);
	return r;
}

static void end_frame(struct calltree *c, struct calltree_thread *t, enum callstream_end how,
		      const struct stream_when *when)
{
	struct callstream_item item;
	const struct calltree_frame *frame;

	assert(depth(t) > 0);
	frame = frame_at(t, --t->end);
	if (frame->hidden)
		return;
	item = line_at(c, t, CALLSTREAM_FINISH, when);
	item.end = how;
	item.insns = frame->insns;
	calltree_put(c, &item);
	/* Nothing says when they end: together with the call that they were known by. An exception
	 * that unwinds the call may be caught in them. */
	if (how == CALLSTREAM_RETURN || how == CALLSTREAM_UNWOUND)
		item.end = CALLSTREAM_LEFT;
	item.insns = 0;
	for (unsigned i = 0; i < frame->inlined; i++)
		calltree_put(c, &item);
	t->inlined -= frame->inlined;
}

/* The kernel, if it is not traced, is left. */
static void end_kernel(struct calltree *c, struct calltree_thread *t, enum callstream_end how,
		       const struct stream_when *when)
{
	if (t->kernel)
		end_frame(c, t, how, when);
	t->kernel = false;
}

/* The frames of which only the number is known. */
static void end_dropped(struct calltree *c, struct calltree_thread *t, enum callstream_end how,
			const struct stream_when *when)
{
	for (; t->dropped > 0; t->dropped--) {
		struct callstream_item item = line_at(c, t, CALLSTREAM_FINISH, when);

		item.end = how;
		calltree_put(c, &item);
	}
}

/* --- What the tally tells --- */

static const enum callstream_end ENDS[] = {
	[TALLY_RETURNED] = CALLSTREAM_RETURN, [TALLY_LEFT] = CALLSTREAM_LEFT,
	[TALLY_UNWOUND] = CALLSTREAM_UNWOUND, [TALLY_SWAPPED] = CALLSTREAM_SWAPPED,
	[TALLY_LOST] = CALLSTREAM_LOST,
};

static struct calltree_thread *thread_of(struct calltree *c)
{
	return &c->threads[c->thread];
}

/* When the thread's last branch happened; before the first one: when the item at hand does. */
static const struct stream_when *when_of(const struct calltree *c, const struct calltree_thread *t)
{
	return t->last.lo != 0 ? &t->last : &c->now;
}

/* What entered the function on top of a signal's frame. */
static enum callstream_begin signal_of(const struct calltree_thread *t, const struct calls *calls)
{
	const struct calls_frame *frame = calls_at(calls, 0);

	if (t->last_kind == FLOW_ASYNC && calls->kernel_start != 0 &&
	    t->last_to >= calls->kernel_start)
		return CALLSTREAM_INTERRUPT;
	return frame->entry ? CALLSTREAM_SYSCALL : CALLSTREAM_SIGNAL;
}

static int on_begin(void *userdata, struct tally_counters *counters, enum tally_begin how)
{
	struct calltree *c = userdata;
	struct calltree_thread *t = thread_of(c);
	const struct stream_when *when = when_of(c, t);
	enum callstream_begin begin = CALLSTREAM_FOUND;
	uint32_t function;
	int r = calltree_define_function(c, counters->function, &function);

	if (r < 0)
		return r;
	if (how == TALLY_CALLED)
		begin = CALLSTREAM_CALL;
	else if (how == TALLY_JUMPED)
		begin = CALLSTREAM_JUMP;
	else if (how == TALLY_SIGNALLED)
		begin = signal_of(t, &counters->calls);
	end_kernel(c, t, CALLSTREAM_RETURN, when);
	book(t, counters->insns);
	return begin_frame(c, t, function, begin, when);
}

static int on_end(void *userdata, struct tally_counters *counters, enum tally_end how)
{
	struct calltree *c = userdata;
	struct calltree_thread *t = thread_of(c);
	const struct stream_when *when = when_of(c, t);

	end_kernel(c, t, ENDS[how], when);
	book(t, counters->insns);
	end_frame(c, t, ENDS[how], when);
	return 0;
}

static int on_drop(void *userdata, struct tally_counters *counters)
{
	struct calltree_thread *t = thread_of(userdata);
	const struct calltree_frame *outermost;

	(void)counters;
	/* The ring never grows again: positions stay. */
	if (t->begin == 0 && ARRAY_RESERVE(t->frames, t->capacity, 2 * CALLS_MAX_DEPTH) < 0)
		return -ENOMEM;
	outermost = frame_at(t, t->begin);
	t->dropped += outermost->hidden ? 0 : 1u + outermost->inlined;
	t->inlined -= outermost->inlined;
	t->begin++;
	return 0;
}

static void put_mark(struct calltree *c, const struct replay_stretch *s,
		     const struct flow_item *item)
{
	const struct flow_mark *mark = &s->marks[item->mark - s->first_mark];
	struct stream_when when = stream_time_when(&c->time, s->cpu, mark->tsc_lo, mark->tsc_hi);
	struct calltree_thread *t = s->thread && item->to != 0 ? thread_of(c) : NULL;
	uint32_t cpu = calltree_cpu(c, s->cpu);

	if (mark->kind == FLOW_MARK_PTWRITE)
		calltree_put_mark(c, t, cpu, when.lo, mark->value, "ptwrite");
	if (mark->kind == FLOW_MARK_CBR && mark->value != 0 && mark->value <= UINT8_MAX &&
	    mark->value != c->ratios[s->cpu]) {
		uint64_t mhz = marks_mhz(c->replay, mark->value);

		c->ratios[s->cpu] = (uint32_t)mark->value;
		calltree_put_mark(c, NULL, cpu, when.lo, mhz == MANIFEST_ABSENT ? mark->value : mhz,
				  mhz == MANIFEST_ABSENT ? "ratio" : "frequency");
	}
}

/* Something happens behind the thread's gap. */
static void end_gap(struct calltree *c, struct calltree_thread *t, uint64_t until)
{
	if (t->gap.open && (!t->gap.told || until > t->gap.time))
		calltree_put_gap(c, t, t->cpu, &t->gap, until);
	t->gap.open = false;
}

/* When the thread leaves user code next at the earliest, behind ITEM of S. 0: S does not show it.
 */
static uint64_t next_leaving(const struct calltree *c, const struct replay_stretch *s,
			     const struct flow_item *item)
{
	for (const struct flow_item *i = item + 1; i < s->items + s->n_items; i++)
		if (i->kind == FLOW_SYSCALL || i->kind == FLOW_DISABLE || i->kind == FLOW_ASYNC ||
		    i->kind == FLOW_FAR || i->kind == FLOW_GAP || i->kind == FLOW_ENABLE)
			return stream_time_when(&c->time, s->cpu, i->tsc_lo, i->tsc_hi).lo;
	return 0;
}

static int on_before(void *userdata, struct tally_counters *counters,
		     const struct replay_stretch *s, const struct flow_item *item)
{
	struct calltree *c = userdata;
	struct calltree_thread *t = thread_of(c);

	(void)counters;
	if (item->kind == FLOW_MARK) {
		put_mark(c, s, item);
		return 0;
	}
	/* Many branches share a time. */
	if (c->now_cpu != s->cpu || c->now_lo != item->tsc_lo || c->now_hi != item->tsc_hi)
		c->now = stream_time_when(&c->time, s->cpu, item->tsc_lo, item->tsc_hi);
	c->now_cpu = s->cpu;
	c->now_lo = item->tsc_lo;
	c->now_hi = item->tsc_hi;
	calltree_edges_until(c, t, c->now.lo);
	/* An item of its own, in no walk. */
	if (item->kind == FLOW_ENABLE && t->edge != CALLTREE_NONE)
		calltree_edges_back(c, t, c->now.hi, next_leaving(c, s, item));
	if (t->dropped > 0 && depth(t) == 0)
		end_dropped(c, t, CALLSTREAM_SWAPPED, when_of(c, t));
	if (t->gap.open && item->kind != FLOW_GAP)
		end_gap(c, t, c->now.lo);
	t->cpu = calltree_cpu(c, s->cpu);
	return 0;
}

/* Between the time of ITEM and what it does to the stack. */
static int on_item(void *userdata, struct tally_counters *counters, const struct replay_stretch *s,
		   const struct flow_item *item)
{
	struct calltree *c = userdata;
	struct calltree_thread *t = thread_of(c);
	bool async = item->kind == FLOW_DISABLE && (item->flags & FLOW_ASYNC_STOP);

	t->last = c->now;
	t->last_kind = item->kind;
	t->last_from = item->from;
	t->last_to = item->to;
	t->last_context = s->context;
	if (item->kind == FLOW_ENABLE)
		end_kernel(c, t, CALLSTREAM_RETURN, &t->last);
	if (item->kind == FLOW_SYSCALL || async) {
		end_kernel(c, t, CALLSTREAM_RETURN, &t->last);
		book(t, counters->insns);
		t->kernel = true;
		return begin_frame(c, t, 0, async ? CALLSTREAM_INTERRUPT : CALLSTREAM_SYSCALL,
				   &t->last);
	}
	if (item->kind == FLOW_GAP) {
		enum fault fault = s->gaps[item->gap - s->first_gap].fault;

		end_kernel(c, t, CALLSTREAM_LOST, &t->last);
		/* Before the first PSB is no gap. */
		if (fault != FAULT_HEAD && !t->gap.open)
			t->gap = (struct calltree_gap){true, false, fault, t->last.lo, t->last.lo};
	}
	return 0;
}

/* --- Stretches --- */

/* A gap of nobody on CPU number INDEX ends. */
static void settle_cpu(struct calltree *c, size_t index, uint64_t until)
{
	struct calltree_gap *g = &c->cpus[index];

	if (g->open)
		calltree_put_gap(c, NULL, calltree_cpu(c, index), g, MAX_OF(until, g->until));
	g->open = false;
}

static void open_cpu(struct calltree *c, size_t index, enum fault fault, uint64_t time)
{
	struct calltree_gap *g = &c->cpus[index];

	if (!g->open || g->fault != fault) {
		settle_cpu(c, index, time);
		*g = (struct calltree_gap){true, false, fault, time, time};
	}
	g->until = MAX_OF(g->until, time);
}

/* When ITEM of S happened; a walk: when it ended. */
static struct stream_when when_of_item(const struct calltree *c, const struct replay_stretch *s,
				       const struct flow_item *item)
{
	const struct flow_walk *w;
	const struct flow_time *last;

	if (item->kind != FLOW_STEPS)
		return stream_time_when(&c->time, s->cpu, item->tsc_lo, item->tsc_hi);
	w = &s->batch->walks[item->walk];
	if (w->n_times == 0)
		return stream_time_when(&c->time, s->cpu, w->before, UINT64_MAX);
	last = &s->batch->times[w->first_time + w->n_times - 1];
	return stream_time_when(&c->time, s->cpu, last->lo, last->hi);
}

/* Code of which nobody can say, or may be told, whose it is. */
static int skip(struct calltree *c, const struct replay_stretch *s, enum fault fault)
{
	for (size_t i = 0; i < s->n_items; i++) {
		const struct flow_item *item = &s->items[i];
		struct stream_when when;

		if (item->kind == FLOW_MARK && fault == FAULT_THREAD_UNCERTAIN)
			put_mark(c, s, item);
		if (item->kind == FLOW_MARK)
			continue;
		when = when_of_item(c, s, item);
		if (item->kind != FLOW_GAP)
			open_cpu(c, s->cpu, fault, when.lo);
		else if (s->gaps[item->gap - s->first_gap].fault != FAULT_HEAD)
			open_cpu(c, s->cpu, s->gaps[item->gap - s->first_gap].fault, when.lo);
	}
	return steps_count_stretch(&c->skipped, s);
}

/* The edges of all threads up to the begin of the turn of S: what comes later is of no earlier
 * turn. */
static void write_edges(struct calltree *c, const struct replay_stretch *s)
{
	struct stream_when when = when_of_item(c, s, &s->items[0]);
	uint32_t cpu = s->cpu < c->replay->turns.n_cpus ? (uint32_t)s->cpu : CALLTREE_NONE;
	const struct turns_cpu *turns = cpu == CALLTREE_NONE ? NULL : &c->replay->turns.cpus[cpu];
	struct calltree_thread *t = thread_of(c);

	if (turns && turns->n > 0 && when.lo != 0) {
		size_t turn = turns_at(turns, when.lo - (uint64_t)c->time.offset);

		calltree_edges_all(
			c, MIN_OF(stream_time_ns(&c->time, turns->list[turn].since), when.lo));
	}
	calltree_edges_until(c, t, when.lo);
	calltree_edges_on(c, t);
}

/* Instructions for a cycle of the thread since the last such line, a hundredfold. CBR tells the
 * speed of the core in units of the bus clock (SDM volume 3, 33.4.2.10), of which the TSC has
 * max_nonturbo_ratio. Without CYCs, times are too coarse for cycles. */
static void put_rate(struct calltree *c, const struct replay_stretch *s,
		     const struct tally_counters *counters)
{
	const struct manifest *m = c->replay->manifest;
	struct calltree_thread *t = thread_of(c);
	const uint64_t insns = counters->insns - t->rate.insns,
		       ticks = counters->ticks - t->rate.ticks;
	const uint32_t ratio = c->ratios[s->cpu];
	const bool same = ratio == t->rate.ratio;

	if (m->pt_config == MANIFEST_ABSENT || !(m->pt_config & PT_CONFIG_CYC) ||
	    m->max_nonturbo_ratio == 0 || ratio == 0)
		return;
	if (same && (insns < RATE_INSTRUCTIONS || ticks == 0))
		return;
	if (same)
		calltree_put_mark(c, t, calltree_cpu(c, s->cpu), c->now.lo,
				  (uint64_t)((double)insns * 100 * m->max_nonturbo_ratio /
					     ((double)ticks * ratio)),
				  "ipc");
	t->rate = (struct calltree_rate){counters->insns, counters->ticks, ratio};
}

int calltree_stretch(struct calltree *c, const struct replay_stretch *s)
{
	struct tally_counters *counters = NULL;
	int r;

	if (!s->thread || s->n_items == 0)
		return skip(c, s, FAULT_THREAD_UNCERTAIN);
	r = tally_find(c->tally, s->thread, &counters);
	/* Too many threads. */
	if (r == 0 && counters->thread != s->thread)
		return skip(c, s, FAULT_THREAD_UNCERTAIN);
	if (r == 0)
		r = calltree_find(c, s->thread, &c->thread);
	if (r < 0)
		return r;
	if (!s->goes_on) {
		settle_cpu(c, s->cpu, 0);
		/* Lost frames end before the thread is on a CPU again. */
		r = tally_unseen(c->tally, counters, s);
		if (r < 0)
			return r;
		write_edges(c, s);
	}
	c->now = when_of_item(c, s, &s->items[0]);
	c->now_cpu = SIZE_MAX;
	r = tally_stretch(c->tally, s);
	if (r == 0)
		put_rate(c, s, counters);
	return r == 0 ? c->lines->error : r;
}

int calltree_left_out(struct calltree *c, const struct replay_stretch *s)
{
	return skip(c, s, FAULT_EXCLUDED);
}

/* --- The end --- */

static void end_thread(struct calltree *c, struct calltree_thread *t)
{
	uint64_t end = t->thread->end == SPACE_NOW ? c->time.last
						   : stream_time_ns(&c->time, t->thread->end);
	struct stream_when when;

	when.lo = when.hi = MIN_OF(MAX_OF(end, t->time), MAX_OF(c->time.last, t->time));
	end_gap(c, t, when.lo);
	while (depth(t) > 0)
		end_frame(c, t, CALLSTREAM_OPEN, &when);
	end_dropped(c, t, CALLSTREAM_OPEN, &when);
}

/* What the recording lacks without a place in a trace. */
static void put_recording(struct calltree *c, const struct gaps *gaps, size_t first)
{
	for (size_t i = first; i < gaps->n; i++) {
		const struct gap *g = &gaps->list[i];
		uint64_t time = stream_time_ns(&c->time, g->time_ns),
			 until = stream_time_ns(&c->time, g->until_ns);

		if (time == 0)
			continue;
		calltree_put_gap(c, NULL, g->cpu == GAPS_NO_CPU ? 0 : g->cpu,
				 &(struct calltree_gap){true, false, g->kind, time, until}, until);
	}
}

int calltree_end(struct calltree *c, const struct gaps *gaps, size_t first)
{
	uint64_t trigger = c->time.trigger;

	for (size_t i = 0; i < c->replay->manifest->n_cpus; i++)
		settle_cpu(c, i, 0);
	calltree_edges_all(c, UINT64_MAX);
	for (size_t i = 0; i < c->n_threads; i++) {
		struct calltree_thread *t = &c->threads[i];
		struct tally_counters *counters;
		int r = tally_find(c->tally, t->thread, &counters);

		if (r < 0)
			return r;
		if (counters->thread == t->thread)
			book(t, counters->insns);
		end_thread(c, t);
	}
	put_recording(c, gaps, first);
	if (trigger != 0)
		calltree_put_mark(c, NULL, 0, trigger, 0, "trigger");
	calltree_put(c, &(struct callstream_item){
				.kind = CALLSTREAM_END, .value = c->frames, .cut = c->cut});
	return lines_flush(c->lines);
}

/* --- Making --- */

int calltree_new(const struct decode_options *options, const struct replay *replay,
		 struct tally *tally, struct lines *lines, struct calltree **ret)
{
	CLEANUP(calltree_freep) struct calltree *c = calloc(1, sizeof(*c));
	size_t n = replay->manifest->n_cpus;

	if (!c)
		return -ENOMEM;
	c->options = options;
	c->replay = replay;
	c->tally = tally;
	c->lines = lines;
	c->watch = (struct tally_watch){on_before, on_item, on_begin, on_end, on_drop, c};
	c->line = malloc(CALLSTREAM_MAX_LINE);
	c->cpus = calloc(n + 1, sizeof(*c->cpus));
	c->ratios = calloc(n + 1, sizeof(*c->ratios));
	if (!c->line || !c->cpus || !c->ratios)
		return -ENOMEM;
	c->time = stream_time_of(replay);
	if (calltree_edges_load(c) < 0)
		return -ENOMEM;
	calltree_head(c);
	tally->watch = &c->watch;
	*ret = TAKE_PTR(c);
	return 0;
}

void calltree_freep(struct calltree **c)
{
	if (!*c)
		return;
	for (size_t i = 0; i < (*c)->n_threads; i++)
		free((*c)->threads[i].frames);
	if ((*c)->tally->watch == &(*c)->watch)
		(*c)->tally->watch = NULL;
	steps_count_done(&(*c)->skipped);
	free((*c)->threads);
	free((*c)->slots);
	free((*c)->edges);
	free((*c)->functions);
	free((*c)->sites);
	free((*c)->cpus);
	free((*c)->ratios);
	free((*c)->line);
	free(*c);
	*c = NULL;
}
