/*
 * Whose stretch it is: decided where the flow asks, at the packet with which it begins, and holding
 * up to where it ends, as no switch can happen in between. Used by cpu_replay.c.
 *
 * A raw trace has no switches: its one process ran all the time. Where nothing is known of a CPU's
 * switches, nobody's code is walked.
 */
#include "decoder/worker/replay/whose.h"

#include <stdlib.h>
#include <string.h>

#include "decoder/worker/replay/replay_kernel.h"
#include "decoder/worker/replay/whose_private.h"
#include "proto/base.h"

#define FIRST_ANSWERS 64u
#define SYSCALL_SIZE  2u /* syscall, sysenter, int n */
/* A place between packets is known to a tick, times are rounded to ns on both sides. */
#define SLACK_TICKS 2u
#define SLACK_NS    1u

static const struct timeline_thread *only_thread(const struct replay *r)
{
	const char *source = r->manifest->source;

	if (source == NULL || strcmp(source, "raw") != 0 || timeline_n_threads(r->timeline) != 1)
		return NULL;
	return timeline_thread(r->timeline, 0);
}

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

static uint64_t not_before(const struct whose *w, uint64_t tsc)
{
	uint64_t ns = tscmap_ns(w->clock, tsc - MIN_OF(tsc, (uint64_t)SLACK_TICKS));

	if (tsc == 0 || ns == MANIFEST_ABSENT)
		return 0;
	return ns - MIN_OF(ns, SLACK_NS + w->clock->doubt);
}

static uint64_t not_after(const struct whose *w, uint64_t tsc)
{
	uint64_t ns = tsc > UINT64_MAX - SLACK_TICKS ? MANIFEST_ABSENT
						     : tscmap_ns(w->clock, tsc + SLACK_TICKS);

	return ns > UINT64_MAX - SLACK_NS - w->clock->doubt ? UINT64_MAX
							    : ns + SLACK_NS + w->clock->doubt;
}

/* Its trace is complete from its first PSB on, and up to its stop unless it did not answer that. */
static void find_ends(struct whose *w)
{
	const struct manifest_cpu *cpu = &w->replay->manifest->cpus[w->index];
	uint64_t tsc = flow_get_stats(w->flow)->tsc_first;

	if (w->stop_ns != MANIFEST_ABSENT && !cpu->stop_timeout)
		w->end = w->stop_ns;
	if (tsc != 0)
		turns_begin(&w->replay->turns, w->index, not_before(w, tsc), not_after(w, tsc),
			    &w->state);
	w->begins = w->state.n > 0;
}

int whose_init(struct whose *w, struct replay *r, size_t index, struct flow *flow)
{
	struct whose_answer first = {.thread = only_thread(r)};

	if (first.thread == NULL && r->turns.cpus[index].n == 0)
		first.process = r->process;
	*w = (struct whose){
		.replay = r,
		.clock = &r->clocks[index],
		.index = index,
		.stop_ns = r->manifest->cpus[index].stop_ns,
		.flow = flow,
		.late = {.flow = flow, .clock = &r->clocks[index]},
		.has_turns = first.thread == NULL && r->turns.cpus[index].n > 0,
	};
	if (w->has_turns)
		find_ends(w);
	return whose_add_answer(w, &first);
}

static uint8_t how_left(const struct scan_stretch *s)
{
	if (s->end == SCAN_END_ASYNC)
		return s->left != 0 ? TURNS_HOW_ASYNC : TURNS_HOW_UNKNOWN;
	return s->end == SCAN_END_BRANCH ? TURNS_HOW_SYSCALL : TURNS_HOW_UNKNOWN;
}

static struct turns_stretch times_of(const struct whose *w, const struct scan_stretch *s)
{
	uint64_t enter_lo = not_before(w, s->enter_lo);

	return (struct turns_stretch){
		.enter_lo = enter_lo,
		.enter_hi = not_after(w, s->enter_hi),
		.leave_lo = s->leave_lo == s->enter_lo ? enter_lo : not_before(w, s->leave_lo),
		.leave_hi = not_after(w, s->leave_hi),
		.enter = s->ip,
		.left = {.ip = s->left, .how = how_left(s)},
		.broken = s->broken,
	};
}

static struct whose_look *look_in_ring(struct whose *w, size_t i)
{
	return &w->looks[(w->first + i) % TURNS_WINDOW];
}

/* LOOK is of a stretch within which the flow lost its way; the one that is asked for is the rest of
 * it. To look ahead from there again would take quadratic time where that happens often. */
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

/* Forgets what was looked at before the stretch that is asked for. */
static void drop_looks(struct whose *w)
{
	while (w->n_looks > 0 && look_in_ring(w, 0)->seen.offset < w->now.offset) {
		if (look_in_ring(w, 0)->seen.until > w->now.offset) {
			cut(w, look_in_ring(w, 0));
			break;
		}
		w->first = (w->first + 1) % TURNS_WINDOW;
		w->n_looks--;
	}
}

/* Whether the scan goes on from the stretch that is asked for. */
static bool is_ahead(struct whose *w)
{
	return w->n_looks > 0 && look_in_ring(w, 0)->seen.offset == w->now.offset;
}

static bool start_scan(struct whose *w)
{
	if (w->scan == NULL)
		w->scan = calloc(1, sizeof(*w->scan));
	if (w->looks == NULL)
		w->looks = calloc(TURNS_WINDOW, sizeof(*w->looks));
	if (w->scan == NULL || w->looks == NULL) {
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

	return look != NULL ? &look->times : NULL;
}

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

/* The stretch was walked to its end; NULL: it was not. */
static const struct flow_item *walked_end(const struct whose *w)
{
	const struct flow_item *item = flow_left(w->flow);

	return item != NULL && item->offset >= w->now.offset ? item : NULL;
}

/* How the stretch that was walked ended, as its code tells; else as its packets do. */
static struct turns_left decoded_left(struct whose *w)
{
	const struct flow_item *item = walked_end(w);
	struct turns_left left = {.since = not_before(w, item != NULL ? item->tsc_lo : 0)};

	if (item == NULL)
		return is_ahead(w) ? look_in_ring(w, 0)->times.left : left;
	if (item->kind == FLOW_SYSCALL) {
		left.how = TURNS_HOW_SYSCALL;
		left.context = w->context < CONTEXTS_NONE ? w->context : 0;
		left.ip = item->from + SYSCALL_SIZE;
		left.again = item->from;
		/* mov $0xf,%rax; syscall: rt_sigreturn, in glibc's restorer. */
		left.sigreturn = item->insns == 2 && item->from - item->start == 7;
	} else if (item->flags & FLOW_ASYNC_STOP) {
		left.how = TURNS_HOW_ASYNC;
		left.ip = item->from;
	}
	return left;
}

/* Whether LEFT may have made a thread, as far as is known. */
static bool may_bear(struct whose *w, const struct turns_left *left)
{
	enum turns_call call;

	if (left->how != TURNS_HOW_SYSCALL || left->context == 0)
		return true;
	call = whose_call(w, left);
	return call == TURNS_CALL_FORK || call == TURNS_CALL_UNKNOWN;
}

/* User code is entered again at UNTIL (perf ns) or earlier. */
static void note_left(struct whose *w, uint64_t until)
{
	struct turns_left left = decoded_left(w);
	bool told = walked_end(w) != NULL || !w->open;

	turns_leave(&w->replay->turns, w->index, &w->state, w->now.ip, told ? &left : NULL);
	if (may_bear(w, &left))
		turns_bear(&w->replay->turns, w->index, &w->state, left.since, until);
}

void whose_end(struct whose *w)
{
	note_left(w, UINT64_MAX);
	w->replay->turns.cpus[w->index].passed = TURNS_NONE;
}

static uint64_t since_of(const struct whose *w, const struct turns_answer *answer)
{
	uint64_t before = w->answers[w->n_answers - 1].since;

	if (answer->first == TURNS_NONE)
		return before;
	return MAX_OF(before, w->replay->turns.cpus[w->index].list[answer->first].since);
}

/* Before that no thread that may have had the CPU got another one. */
static uint64_t until_of(const struct whose *w, uint32_t turn)
{
	return w->replay->turns.cpus[w->index].list[turn].until;
}

static uint32_t code_of(struct whose *w, const struct turns_answer *answer)
{
	const struct timeline_thread *thread =
		answer->thread != NULL ? answer->thread : answer->process;
	struct whose_time when;

	w->late.until = 0;
	if (thread == NULL)
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
	const struct whose_answer given = {.offset = w->now.offset,
					   .since = since_of(w, answer),
					   .thread = answer->thread,
					   .process = answer->process};

	w->forced = w->begins = false;
	if (!w->now.broken && !answer->same)
		turns_count(&w->replay->turns, w->index, &w->state, &answer->state);
	if (!answer->same)
		w->state = answer->state;
	w->open = answer->thread == NULL;
	w->context = code_of(w, answer);
	if (whose_add_answer(w, &given) < 0)
		w->error = -ENOMEM;
}

/* Decides the stretch that begins now. False: it is to be asked for again later. */
static bool decide(struct whose *w)
{
	const struct turns_question question = {
		.turns = &w->replay->turns,
		.cpu = w->index,
		.state = &w->state,
		.end = w->end,
		.first = &w->times,
		.stretch = on_stretch,
		.proof = whose_proof,
		.call = whose_call,
		.userdata = w,
	};
	struct turns_answer answer;

	turns_decide(&question, &answer);
	if (answer.first != TURNS_NONE)
		w->replay->turns.cpus[w->index].passed = answer.first;
	w->waits = answer.thread == NULL && answer.wait && !w->forced;
	if (w->waits) {
		w->waits_for = MAX_OF(since_of(w, &answer), until_of(w, answer.first) - 1);
		return false;
	}
	take(w, &answer);
	return true;
}

/* Whether packets were lost before the stretch at OFFSET: not where only nobody's code was walked
 * up to there. */
static bool is_broken(struct whose *w, uint64_t offset)
{
	const struct scan_stretch *next;

	if (flow_left(w->flow) != NULL || w->begins)
		return false;
	next = w->n_looks > 1 && is_ahead(w) ? &look_in_ring(w, 1)->seen : NULL;
	return next == NULL || next->offset != offset || next->broken;
}

/* How it ends is not known without looking ahead. */
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
		note_left(w, w->times.enter_hi);
	w->now = now;
	drop_looks(w);
}

/* Without turns: the one thread's code, as it was at that time. */
static uint32_t ask_without_turns(struct whose *w, uint64_t tsc_hi)
{
	const struct whose_answer *answer = &w->answers[0];
	const struct timeline_thread *thread = answer->thread ? answer->thread : answer->process;
	uint64_t time = whose_ns(w, tsc_hi);
	const struct space *space = NULL;
	uint32_t context = 0;

	if (permit_thread(w->replay->permit, thread, MANIFEST_ABSENT) == PERMIT_EXCLUDED)
		return CONTEXTS_EXCLUDED;
	if (thread != NULL)
		space = timeline_space(w->replay->timeline, thread->pid, time);
	if (space != NULL && contexts_intern(&w->replay->contexts, space, time, &context) < 0)
		w->error = -ENOMEM;
	return context;
}

/* The kernel is in the trace, too, so mappings change within a stretch: what had certainly changed
 * when the time was TSC_LO. */
static void renew(struct whose *w, uint64_t tsc_lo)
{
	const struct whose_answer *now = &w->answers[w->n_answers - 1];
	const struct timeline_thread *thread = now->thread != NULL ? now->thread : now->process;
	uint64_t time = tsc_lo != 0 ? tscmap_ns(w->clock, tsc_lo) : MANIFEST_ABSENT;
	const struct space *space;

	if (thread == NULL || time == MANIFEST_ABSENT || w->context >= CONTEXTS_NONE ||
	    time <= w->replay->contexts.list[w->context].time)
		return;
	space = timeline_space(w->replay->timeline, thread->pid, time);
	if (space != NULL && contexts_intern(&w->replay->contexts, space, time, &w->context) < 0)
		w->error = -ENOMEM;
}

/* Where the kernel is in the trace and its code is not at hand, it is a gap; who was on the CPU
 * behind it is to be asked anew. Of the kernel itself it does not matter. */
static bool is_same_stay(const struct whose *w, uint64_t ip)
{
	if (!flow_asked_again(w->flow))
		return false;
	return !w->replay->manifest->trace_kernel || !flow_asked_behind_gap(w->flow) ||
	       scan_is_kernel(ip);
}

uint64_t whose_not_before(const struct whose *w, uint64_t tsc)
{
	return not_before(w, tsc);
}

uint64_t whose_not_after(const struct whose *w, uint64_t tsc)
{
	return not_after(w, tsc);
}

/* The stretch that begins now lies in the turn that is known. */
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
	if (same) /* nothing begins */
		w->n_answers = n;
	w->waits = false;
}

/* User code, where the kernel's is in the trace: the turn is mostly known. False: not yet. */
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

/* What is asked for needs no deciding. */
static bool is_answered(struct whose *w, uint64_t ip, uint64_t tsc_lo, uint64_t tsc_hi)
{
	if (w->replay->kernel == NULL)
		return false;
	if (flow_asked_switch(w->flow))
		whose_switched(w, tsc_lo, tsc_hi);
	else if (replay_is_kernel(w->replay, ip))
		whose_in_kernel(w, tsc_lo, tsc_hi);
	else
		return false;
	return true;
}

uint64_t whose_ask(struct whose *w, uint64_t ip, uint64_t tsc_lo, uint64_t tsc_hi)
{
	if (!w->has_turns) {
		w->context = ask_without_turns(w, tsc_hi);
	} else if (is_answered(w, ip, tsc_lo, tsc_hi)) {
		w->waits = false;
	} else if (!is_same_stay(w, ip)) {
		begin(w, ip, tsc_lo, tsc_hi);
		if (w->replay->kernel != NULL ? !decide_in_both(w, tsc_lo, tsc_hi) : !decide(w))
			return FLOW_CONTEXT_LATER;
	} else if (w->replay->manifest->trace_kernel) {
		renew(w, tsc_lo);
	}
	return w->context;
}
