/*
 * Instances of functions: where each begins and ends, out of the thread's calls, returns and jumps.
 *
 * The running instance stands in the thread's counters, and those around it in the frames of its
 * stack (calls.h). Jumps between functions are frames, too. tally_quick.c does the same for the
 * most frequent cases.
 */
#include "decoder/worker/count/tally_private.h"

/* Among so many callers a function is looked for into which execution jumps. */
#define MAX_AGAIN 256u

/* The instance of FUNCTION that began at BEGIN has no end. */
static void leave_open(struct tally *t, uint32_t function, const struct calls_begin *begin)
{
	t->functions.list[function].unended += begin->tsc != 0;
}

/* Nobody knows when the instance of FUNCTION ended that began at *BEGIN. */
static void forget(struct tally *t, uint32_t function, struct calls_begin *begin)
{
	leave_open(t, function, begin);
	begin->tsc = 0;
}

int tally_took(struct tally *t, const struct tally_counters *counters, uint32_t function,
	       struct calls_begin begin)
{
	uint64_t took = counters->last_tsc - begin.tsc, on = counters->ticks - begin.ticks;

	const struct durations_call call = {
		.ticks = took,
		.off = took - MIN_OF(on, took),
		.waited = tally_waited_since(&counters->waits, begin.tsc),
		.tsc = begin.tsc,
		.thread = counters->thread,
		/* The function has just been deactivated. */
		.nested = t->functions.list[function].active > 0,
	};

	return durations_add(&t->functions.durations, &t->functions.list[function].durations,
			     &call);
}

static int forget_running(struct tally *t, struct tally_counters *counters, enum tally_end how)
{
	int r = tally_tell_end(t, counters, how);

	if (counters->function == TALLY_NO_FUNCTION)
		return r;
	tally_deactivate(t, counters, counters->function);
	forget(t, counters->function, &counters->begin);
	counters->function = TALLY_NO_FUNCTION;
	return r;
}

int tally_tell_first(const struct tally *t, struct tally_counters *counters, bool called)
{
	const struct calls *calls = &counters->calls;
	bool signal = calls_depth(calls) > 0 && calls_at(calls, 0)->signal;

	return tally_tell_begin(t, counters,
				called	 ? TALLY_CALLED
				: signal ? TALLY_SIGNALLED
					 : TALLY_FOUND);
}

/* Why instances are popped. */
enum cause {
	BY_RETURN, /* the running one returned behind the innermost call, or behind another one */
	BY_RESUME, /* the outermost of them was entered by a signal, or is the kernel's, and ended
		    */
	BY_JUMP,   /* execution jumped back */
	BY_ABORT,  /* of a transaction */
};

/* Whether all of the N innermost instances but the outermost of them were jumped to. */
static bool only_jumps(const struct calls *calls, size_t n)
{
	for (size_t i = 0; i + 1 < n; i++)
		if (calls_at(calls, i)->from != CALLS_JUMP)
			return false;
	return true;
}

/* How instance number I of N that are popped ended, 0 being the innermost. JUMPS: only_jumps(). */
static enum tally_end how_ended(enum cause cause, size_t i, size_t n, bool jumps)
{
	if (cause == BY_RESUME && i + 1 == n)
		return TALLY_RETURNED;
	if (cause == BY_ABORT || !jumps)
		return TALLY_UNWOUND;
	return cause == BY_RETURN && i == 0 ? TALLY_RETURNED : TALLY_LEFT;
}

/* Ends the running instance and N - 1 instances around it; the one around those runs. */
static int pop(struct tally *t, struct tally_counters *counters, size_t n, enum cause cause)
{
	bool jumps = !t->watch || only_jumps(&counters->calls, n);
	int r = 0;

	/* A jump back to what called others ends all of them. */
	if (cause == BY_JUMP && n > 0 && calls_at(&counters->calls, n - 1)->from != CALLS_JUMP)
		jumps = false;
	counters->called = counters->called && n == 0;
	for (size_t i = 0; i < n && r == 0; i++) {
		struct calls_frame frame = calls_pop(&counters->calls);

		r = tally_tell_end(t, counters, how_ended(cause, i, n, jumps));
		if (r == 0)
			r = tally_leave(t, counters);
		counters->function = frame.function;
		counters->begin = frame.begin;
		if (frame.from == CALLS_JUMP && i + 1 < n && frame.function != TALLY_NO_FUNCTION)
			tally_count_left(&t->functions.list[frame.function], &frame.begin);
	}
	return r;
}

int tally_forget(struct tally *t, struct tally_counters *counters, enum tally_end how)
{
	/* What jumped to an instance that returned ended with it. */
	bool left = how == TALLY_SWAPPED && counters->function == TALLY_NO_FUNCTION;
	int r = 0;

	while (calls_depth(&counters->calls) > 0 && r == 0) {
		struct calls_frame frame = calls_pop(&counters->calls);

		r = forget_running(t, counters, left ? TALLY_LEFT : how);
		left = left && frame.from == CALLS_JUMP;
		counters->function = frame.function;
		counters->begin = frame.begin;
	}
	if (r == 0)
		r = forget_running(t, counters, left ? TALLY_LEFT : how);
	counters->begin = (struct calls_begin){0};
	counters->called = false;
	return r;
}

/* The running instance goes on behind FRAME, in which another one begins. */
static int push(struct tally *t, struct tally_counters *counters, struct calls_frame *frame)
{
	struct calls_frame dropped;
	int r;

	frame->function = counters->function;
	frame->begin = counters->begin;
	r = calls_push(&counters->calls, frame, &dropped);
	if (r < 0)
		return r;
	if (r == CALLS_DROPPED && dropped.function != TALLY_NO_FUNCTION) {
		tally_deactivate(t, counters, dropped.function);
		forget(t, dropped.function, &dropped.begin);
		r = t->watch ? t->watch->drop(t->watch->userdata, counters) : 0;
	}
	counters->function = TALLY_NO_FUNCTION;
	counters->begin = (struct calls_begin){0};
	return r < 0 ? r : 0;
}

/* Whether FUNCTION jumped to the instance around frame number I. */
static bool jumped_from(const struct calls *calls, size_t i, uint32_t function)
{
	return i + 1 < calls_depth(calls) && calls_at(calls, i + 1)->from == CALLS_JUMP &&
	       calls_at(calls, i + 1)->function == function;
}

/* How many instances end if RUNNING jumps back into FUNCTION. 0: it is not to be found.
 * *RET_JUMPS: how many jumps led from the function that was called last to the running one. ENTRY:
 * only these jumps count, since a function may be entered again and again. An instance that another
 * instance of RUNNING jumped to is not meant: a recursive function goes on in a part that lies
 * apart. */
static size_t find_again(const struct calls *calls, uint32_t running, uint32_t function, bool entry,
			 size_t *ret_jumps)
{
	size_t depth = MIN_OF(calls_depth(calls), (size_t)MAX_AGAIN), jumps = 0;

	while (jumps < depth && calls_at(calls, jumps)->from == CALLS_JUMP)
		if (calls_at(calls, jumps++)->function == function)
			return jumps;
	*ret_jumps = jumps;
	for (size_t i = jumps; i < depth && !entry; i++)
		if (calls_at(calls, i)->function == function)
			return jumped_from(calls, i, running) ? 0 : i + 1;
	return 0;
}

int tally_jump(struct tally *t, struct tally_counters *counters, uint32_t function, bool entry)
{
	size_t jumps = 0,
	       pops = find_again(&counters->calls, counters->function, function, entry, &jumps);
	int r = 0;

	if (pops > 0) {
		r = pop(t, counters, pops, BY_JUMP);
		if (r < 0 || !entry)
			return r;
		r = tally_tell_end(t, counters, TALLY_LEFT);
		tally_count_left(&t->functions.list[counters->function], &counters->begin);
		if (r == 0)
			r = tally_leave(t, counters);
	} else if (jumps < TALLY_MAX_JUMPS) {
		r = push(t, counters, &(struct calls_frame){.from = CALLS_JUMP});
	} else {
		r = forget_running(t, counters, TALLY_LEFT);
	}
	if (r < 0)
		return r;
	tally_begin(t, counters, function, entry);
	return tally_tell_begin(t, counters, TALLY_JUMPED);
}

static enum cause cause_of(const struct flow_item *item, const struct calls_change *change)
{
	if (item->kind == FLOW_RET)
		return BY_RETURN;
	/* Only an abort ends frames and begins none. */
	return item->kind == FLOW_ASYNC && !change->pushes ? BY_ABORT : BY_RESUME;
}

/* For the watch: how instances ended of which nobody knows where, and whether, they did. */
static enum tally_end how_lost(const struct flow_item *item)
{
	if (item->kind == FLOW_GAP)
		return TALLY_LOST;
	/* The kernel's frames, where nobody saw the kernel being entered. */
	return item->kind == FLOW_FAR ? TALLY_RETURNED : TALLY_SWAPPED;
}

int tally_calls(struct tally *t, struct tally_counters *counters, const struct flow_item *item)
{
	struct calls_change change = calls_decide(&counters->calls, item);
	int r = 0;

	if (change.lost && item->kind == FLOW_RET && counters->function != TALLY_NO_FUNCTION) {
		r = tally_tell_end(t, counters, TALLY_RETURNED);
		if (r == 0)
			r = tally_leave(t, counters);
		counters->function = TALLY_NO_FUNCTION;
	}
	if (r == 0 && change.lost)
		r = tally_forget(t, counters, how_lost(item));
	else if (r == 0)
		r = pop(t, counters, change.pops, cause_of(item, &change));
	if (r < 0 || !change.pushes)
		return r;
	r = push(t, counters, &change.frame);
	counters->called = change.call;
	return r;
}

void tally_forget_open(struct tally *t, struct tally_counters *counters)
{
	size_t depth = calls_depth(&counters->calls);

	for (size_t i = 0; i < depth; i++) {
		struct calls_frame *frame =
			calls_slot(&counters->calls, counters->calls.end - 1 - i);

		if (frame->function != TALLY_NO_FUNCTION)
			leave_open(t, frame->function, &frame->begin);
	}
	if (counters->function != TALLY_NO_FUNCTION)
		leave_open(t, counters->function, &counters->begin);
}
