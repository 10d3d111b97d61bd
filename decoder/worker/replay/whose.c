/*
 * Decides which thread a stretch belongs to, where the flow asks, at the packet with which the
 * stretch begins. The decision holds to the end of the stretch, as no switch can happen in between.
 *
 * A raw trace has no switches: its one process ran all the time. Where nothing is known of a CPU's
 * switches, no thread's code is walked.
 */
#include "decoder/worker/replay/whose.h"

#include <stdlib.h>
#include <string.h>

#include "proto/base.h"

int whose_add_answer(struct whose *w, const struct whose_answer *answer)
{
	if (ARRAY_RESERVE(w->answers, w->max_answers, w->n_answers + 1) < 0)
		return -ENOMEM;
	w->answers[w->n_answers] = *answer;
	w->answers[w->n_answers++].number = ++w->n_numbers;
	return 0;
}

void whose_done(struct whose *w)
{
	free(w->scan);
	free(w->looks);
	free(w->answers);
	*w = (struct whose){0};
}

void whose_begin(struct whose *w, size_t used, bool forced)
{
	w->n_answers -= used;
	memmove(w->answers, w->answers + used, w->n_answers * sizeof(w->answers[0]));
	w->forced = forced;
	w->replay->late = &w->late;
}

uint64_t whose_ns(const struct whose *w, uint64_t tsc)
{
	uint64_t ns = tsc == UINT64_MAX ? MANIFEST_ABSENT : tscmap_ns(w->clock, tsc);

	if (ns != MANIFEST_ABSENT)
		return ns;
	return w->stop_ns != MANIFEST_ABSENT ? w->stop_ns : SPACE_NOW - 1;
}

int whose_init(struct whose *w, struct replay *r, size_t index, struct flow *flow)
{
	const struct manifest_cpu *cpu = &r->manifest->cpus[index];
	const char *source = r->manifest->source;
	uint64_t tsc = flow_get_stats(flow)->tsc_first;
	struct whose_answer first = {0};

	if (source && strcmp(source, "raw") == 0 && timeline_n_threads(r->timeline) == 1)
		first.thread = timeline_thread(r->timeline, 0);
	else if (r->turns.cpus[index].n == 0)
		first.process = r->process;
	*w = (struct whose){
		.replay = r,
		.clock = &r->clocks[index],
		.index = index,
		.stop_ns = cpu->stop_ns,
		.flow = flow,
		.late = {.flow = flow, .clock = &r->clocks[index]},
		.has_turns = !first.thread && r->turns.cpus[index].n > 0,
	};
	if (w->has_turns && tsc != 0)
		turns_begin(&r->turns, index, tscmap_not_before(w->clock, tsc),
			    tscmap_not_after(w->clock, tsc), &w->state);
	w->begins = w->state.n > 0;
	return whose_add_answer(w, &first);
}

static struct turns_stretch times_of(const struct whose *w, const struct scan_stretch *s)
{
	const struct tscmap *clock = w->clock;
	uint64_t enter_lo = tscmap_not_before(clock, s->enter_lo);

	return (struct turns_stretch){
		.enter_lo = enter_lo,
		.enter_hi = tscmap_not_after(clock, s->enter_hi),
		.leave_lo = s->leave_lo == s->enter_lo ? enter_lo
						       : tscmap_not_before(clock, s->leave_lo),
		.leave_hi = tscmap_not_after(clock, s->leave_hi),
		.enter = s->ip,
		.left = {.ip = s->end == SCAN_END_ASYNC ? s->left : 0},
		.broken = s->broken,
	};
}

/* --- Looking ahead --- */

static struct whose_look *look_in_ring(struct whose *w, size_t i)
{
	return &w->looks[(w->first + i) % TURNS_WINDOW];
}

/* LOOK is of a stretch within which the flow lost its way; the stretch that is asked for is the
 * rest of it. To look ahead from there again would take quadratic time where that happens often. */
static void cut(struct whose *w, struct whose_look *look)
{
	const struct scan_stretch whole = look->seen;
	struct timing timing;

	look->seen = w->now;
	look->seen.until = whole.until;
	look->seen.leave_lo = whole.leave_lo;
	look->seen.leave_hi = whole.leave_hi;
	look->seen.left = whole.left;
	look->seen.end = whole.end;
	flow_readers(w->flow, &look->reader, &timing);
	look->times = times_of(w, &look->seen);
	look->n_trials = 0;
}

/* Whether the first look is of the stretch that is asked for, so that the scan can go on. */
static bool is_ahead(struct whose *w)
{
	return w->n_looks > 0 && look_in_ring(w, 0)->seen.offset == w->now.offset;
}

static bool start_scan(struct whose *w)
{
	if (!w->scan)
		w->scan = calloc(1, sizeof(*w->scan));
	if (!w->looks)
		w->looks = calloc(TURNS_WINDOW, sizeof(*w->looks));
	if (!w->scan || !w->looks) {
		w->error = -ENOMEM;
		return false;
	}
	w->n_looks = 0;
	scan_begin(w->scan, w->flow, &w->now);
	return true;
}

struct whose_look *whose_look_at(struct whose *w, size_t i)
{
	if (!is_ahead(w) && !start_scan(w))
		return NULL;
	while (i >= w->n_looks) {
		struct whose_look *look = look_in_ring(w, w->n_looks);

		if (w->n_looks == TURNS_WINDOW || !scan_next(w->scan, &look->seen, &look->reader))
			return NULL;
		look->n_trials = 0;
		look->times = times_of(w, &look->seen);
		w->n_looks++;
	}
	return look_in_ring(w, i);
}

static const struct turns_stretch *on_stretch(void *userdata, size_t i)
{
	const struct whose_look *look = whose_look_at(userdata, i);

	return look ? &look->times : NULL;
}

/* --- How the last stretch was left --- */

struct whose_time whose_enter_time(const struct whose *w, const struct scan_stretch *stretch,
				   uint32_t first, uint32_t last)
{
	const struct turns_turn *list = w->replay->turns.cpus[w->index].list;
	uint64_t since = list[first].since, until = list[last].until - 1;
	uint64_t lo = stretch->enter_lo > 0 ? whose_ns(w, stretch->enter_lo) : 0;
	uint64_t hi = whose_ns(w, stretch->enter_hi);

	hi = MAX_OF(MIN_OF(hi, until), since);
	return (struct whose_time){MIN_OF(MAX_OF(lo, since), hi), hi};
}

/* The last item of the stretch that was walked; NULL: it was not walked to its end. */
static const struct flow_item *walked_end(const struct whose *w)
{
	const struct flow_item *item = flow_left(w->flow);

	return item && item->offset >= w->now.offset ? item : NULL;
}

/* Where the thread of the stretch that was walked enters again, as its code tells, or else as its
 * packets do. */
static struct turns_left decoded_left(struct whose *w)
{
	const struct flow_item *item = walked_end(w);
	const uint32_t context = w->context < CONTEXTS_NONE ? w->context : 0;
	struct turns_left left = {0};

	if (!item)
		return is_ahead(w) ? look_in_ring(w, 0)->times.left : left;
	if (item->kind == FLOW_SYSCALL)
		return whose_left(w->replay, context, item->from);
	if (item->flags & FLOW_ASYNC_STOP)
		left = (struct turns_left){
			.ip = item->from, .context = context, .inside = item->insns > 0};
	return left;
}

static void note_left(struct whose *w)
{
	const struct turns_left left = decoded_left(w);
	bool told = walked_end(w) || !w->open;

	turns_leave(&w->replay->turns, w->index, &w->state, told ? &left : NULL);
}

void whose_end(struct whose *w)
{
	note_left(w);
	turns_end(&w->replay->turns, w->index, &w->state);
}

/* --- Deciding --- */

static uint64_t since_of(const struct whose *w, const struct turns_answer *answer)
{
	uint64_t before = w->answers[w->n_answers - 1].since;

	if (answer->first == TURNS_NONE)
		return before;
	return MAX_OF(before, w->replay->turns.cpus[w->index].list[answer->first].since);
}

/* The end of TURN: the thread that may have had the CPU had no other CPU before then. */
static uint64_t until_of(const struct whose *w, uint32_t turn)
{
	return w->replay->turns.cpus[w->index].list[turn].until;
}

static uint32_t code_of(struct whose *w, const struct turns_answer *answer)
{
	const struct timeline_thread *thread = answer->thread ? answer->thread : answer->process;
	struct whose_time when;

	w->late.until = 0;
	if (!thread)
		return CONTEXTS_THREAD_UNCERTAIN;
	if (permit_thread(w->replay->permit, thread, MANIFEST_ABSENT) == PERMIT_EXCLUDED)
		return CONTEXTS_EXCLUDED;
	when = whose_enter_time(w, &w->now, answer->first, answer->last);
	if (timeline_space_uncertain(w->replay->timeline, thread->pid, when.hi))
		return CONTEXTS_IMAGE_UNCERTAIN;
	w->late.until = until_of(w, answer->last) - 1;
	return whose_context(w, thread, when);
}

static void take(struct whose *w, const struct turns_answer *answer)
{
	struct whose_answer given = {.offset = w->now.offset,
				     .since = since_of(w, answer),
				     .thread = answer->thread,
				     .process = answer->process};

	if (!answer->thread)
		given.candidates.n = answer->n_threads;
	for (size_t i = 0; i < given.candidates.n && i < REPLAY_NAMED; i++)
		given.candidates.list[i] = answer->threads[i];
	w->forced = w->begins = false;
	if (!answer->same)
		w->state = answer->state;
	w->open = !answer->thread;
	w->context = code_of(w, answer);
	if (whose_add_answer(w, &given) < 0)
		w->error = -ENOMEM;
}

/* Decides the stretch that begins now. False: the flow is to ask again later. */
static bool decide(struct whose *w)
{
	const struct turns_question question = {
		.turns = &w->replay->turns,
		.cpu = w->index,
		.state = &w->state,
		.first = &w->times,
		.stretch = on_stretch,
		.proof = whose_proof,
		.alike = whose_alike,
		.userdata = w,
	};
	struct turns_answer answer;

	turns_decide(&question, &answer);
	if (answer.first != TURNS_NONE)
		w->replay->turns.cpus[w->index].passed = answer.first;
	w->waits = !answer.thread && answer.wait && !w->forced;
	if (w->waits) {
		w->waits_for = MAX_OF(since_of(w, &answer), until_of(w, answer.first) - 1);
		return false;
	}
	take(w, &answer);
	return true;
}

/* Whether packets were lost before the stretch at OFFSET. A gap up to there says nothing if it was
 * only the code that was not known. */
static bool is_broken(struct whose *w, uint64_t offset)
{
	const struct scan_stretch *next;

	if (flow_left(w->flow) || w->begins)
		return false;
	next = w->n_looks > 1 && is_ahead(w) ? &look_in_ring(w, 1)->seen : NULL;
	return !next || next->offset != offset || next->broken;
}

/* A stretch begins. How the stretch ends is not known without looking ahead. */
static void begin(struct whose *w, uint64_t ip, uint64_t tsc_lo, uint64_t tsc_hi)
{
	const uint64_t offset = flow_asked_at(w->flow);
	const struct scan_stretch now = {
		.offset = offset,
		.ip = ip,
		.enter_lo = tsc_lo,
		.enter_hi = tsc_hi,
		.leave_lo = tsc_lo,
		.leave_hi = UINT64_MAX,
		.broken = w->waits ? w->now.broken : is_broken(w, offset),
	};

	w->times = times_of(w, &now);
	if (!w->waits)
		note_left(w);
	w->now = now;
	/* Forget what was looked at before this stretch. */
	while (w->n_looks > 0 && look_in_ring(w, 0)->seen.offset < now.offset) {
		if (look_in_ring(w, 0)->seen.until > now.offset) {
			cut(w, look_in_ring(w, 0));
			break;
		}
		w->first = (w->first + 1) % TURNS_WINDOW;
		w->n_looks--;
	}
}

/* Without turns: the code of the one thread, as it was at that time. */
static uint32_t ask_without_turns(struct whose *w, uint64_t tsc_lo, uint64_t tsc_hi)
{
	const struct whose_answer *answer = &w->answers[0];
	const struct timeline_thread *thread = answer->thread ? answer->thread : answer->process;
	uint64_t lo = tscmap_not_before(w->clock, tsc_lo), time = whose_ns(w, tsc_hi);
	const struct space *space = NULL;
	uint32_t context = 0;

	if (permit_thread(w->replay->permit, thread, MANIFEST_ABSENT) == PERMIT_EXCLUDED)
		return CONTEXTS_EXCLUDED;
	if (thread)
		space = timeline_space(w->replay->timeline, thread->pid, time);
	if (space && replay_context(w->replay, space, time, lo, UINT64_MAX, &context) < 0)
		w->error = -ENOMEM;
	return context;
}

/* With the kernel in the trace mappings change within a stretch: takes the context that certainly
 * held at TSC_LO. */
static void renew(struct whose *w, uint64_t tsc_lo)
{
	const struct whose_answer *now = &w->answers[w->n_answers - 1];
	const struct timeline_thread *thread = now->thread ? now->thread : now->process;
	uint64_t time = tsc_lo != 0 ? tscmap_ns(w->clock, tsc_lo) : MANIFEST_ABSENT;
	const struct space *space;

	if (!thread || time == MANIFEST_ABSENT || w->context >= CONTEXTS_NONE ||
	    time <= w->replay->contexts.list[w->context].time)
		return;
	space = timeline_space(w->replay->timeline, thread->pid, time);
	if (space && replay_context(w->replay, space, time, tscmap_not_before(w->clock, tsc_lo),
				    UINT64_MAX, &w->context) < 0)
		w->error = -ENOMEM;
}

/* Takes the turn that is known for the stretch that begins now. */
static void take_turn(struct whose *w)
{
	const struct turns_turn *turn = &w->replay->turns.cpus[w->index].list[w->turn];
	const struct turns_answer answer = {
		.thread = turn->thread,
		.first = w->turn,
		.last = w->turn,
		.state = {.at = {{.turn = w->turn}}, .n = 1},
	};
	const struct whose_answer *last = &w->answers[w->n_answers - 1];
	bool same = last->thread == turn->thread && flow_asked_return(w->flow);
	size_t n = w->n_answers;

	take(w, &answer);
	if (same) /* the thread stays: no new answer */
		w->n_answers = n;
	w->waits = false;
}

/* Decides user code in a trace that has the kernel's code: the turn is mostly known. False: not
 * yet. */
static bool decide_in_both(struct whose *w, uint64_t tsc_lo, uint64_t tsc_hi)
{
	size_t before = w->n_answers;

	if (whose_knows_turn(w, tsc_lo, tsc_hi)) {
		take_turn(w);
	} else {
		if (!decide(w))
			return false;
		w->turn_known = w->state.n == 1;
		w->turn = w->turn_known ? w->state.at[0].turn : 0;
	}
	if (w->n_answers > before && flow_asked_return(w->flow)) {
		w->answers[w->n_answers - 1].at_batch = true;
		flow_split(w->flow);
	}
	return true;
}

uint64_t whose_ask(struct whose *w, uint64_t ip, uint64_t tsc_lo, uint64_t tsc_hi)
{
	const bool both = w->replay->kernel != NULL, traced = w->replay->manifest->trace_kernel;

	if (!w->has_turns) {
		w->context = ask_without_turns(w, tsc_lo, tsc_hi);
	} else if (both && flow_asked_switch(w->flow)) {
		whose_switched(w, tsc_lo, tsc_hi);
		w->waits = false;
	} else if (both && replay_is_kernel(w->replay, ip)) {
		whose_in_kernel(w, tsc_lo, tsc_hi);
		w->waits = false;
	} else if (flow_asked_again(w->flow) &&
		   (!traced || !flow_asked_behind_gap(w->flow) || scan_is_kernel(ip))) {
		/* The stretch goes on. Kernel code that was traced but is not at hand is a gap: the
		 * thread behind it is another question, unless that is the kernel again. */
		if (traced)
			renew(w, tsc_lo);
	} else {
		begin(w, ip, tsc_lo, tsc_hi);
		if (both ? !decide_in_both(w, tsc_lo, tsc_hi) : !decide(w))
			return FLOW_CONTEXT_LATER;
	}
	return w->context;
}
