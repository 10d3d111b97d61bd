/*
 * Call stacks out of branches alone, without code and names.
 *
 * Every search costs no more than the pushes before it: the frames that a search passes over are
 * popped, and there are few signal frames.
 */
#include "decoder/worker/count/calls.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base.h"

/* Length of syscall, sysenter and int n. */
#define SYSCALL_SIZE 2u
/* glibc's restorer: mov $0xf,%rax; syscall (sysdeps/unix/sysv/linux/x86_64/libc_sigaction.c). */
#define RESTORER_MOV 7u

void calls_init(struct calls *c)
{
	*c = (struct calls){.transaction = UINT64_MAX};
}

void calls_done(struct calls *c)
{
	free(c->frames);
	*c = (struct calls){0};
}

size_t calls_depth(const struct calls *c)
{
	return (size_t)(c->end - c->begin);
}

const struct calls_frame *calls_at(const struct calls *c, size_t i)
{
	assert(i < calls_depth(c));
	return calls_slot(c, c->end - 1 - i);
}

struct calls_frame calls_pop(struct calls *c)
{
	assert(c->end > c->begin);
	c->end--;
	if (c->n_signals > 0 && c->signals[c->n_signals - 1] == c->end)
		c->n_signals--;
	return *calls_slot(c, c->end);
}

int calls_push(struct calls *c, const struct calls_frame *frame, struct calls_frame *ret_dropped)
{
	int r = 0;

	if (calls_depth(c) == CALLS_MAX_DEPTH) {
		*ret_dropped = *calls_slot(c, c->begin);
		if (c->n_signals > 0 && c->signals[0] == c->begin) {
			c->n_signals--;
			memmove(c->signals, c->signals + 1, c->n_signals * sizeof(c->signals[0]));
		}
		c->begin++;
		r = CALLS_DROPPED;
	} else if (ARRAY_RESERVE(c->frames, c->capacity, calls_depth(c) + 1) < 0) {
		/* The array may move as a whole: as long as it grows, no frame was dropped, and a
		 * frame's position is its index. */
		return -ENOMEM;
	}
	if (frame->signal) {
		assert(c->n_signals < CALLS_MAX_SIGNALS);
		c->signals[c->n_signals++] = c->end;
	}
	*calls_slot(c, c->end++) = *frame;
	return r;
}

/* A return to TO. */
static void decide_return(struct calls *c, uint64_t to, struct calls_change *change)
{
	size_t depth = calls_depth(c);
	struct calls_frame *handler;

	for (size_t i = 0; i < depth; i++) {
		if (!calls_returns_to(calls_at(c, i), to))
			continue;
		change->pops = i + 1;
		return;
	}
	/* A handler returns once to the restorer, which was not called. */
	handler = c->n_signals > 0 ? calls_slot(c, c->signals[c->n_signals - 1]) : NULL;
	change->lost = !handler || handler->returned;
	if (change->lost) {
		change->pops = depth;
		return;
	}
	handler->returned = true;
	change->pops = (size_t)(c->end - 1 - c->signals[c->n_signals - 1]);
}

static bool is_kernel(const struct calls *c, uint64_t ip)
{
	return c->kernel_start != 0 && ip >= c->kernel_start;
}

/* How many frames end because execution is back at TO, where a signal had interrupted it. */
static size_t decide_resume(const struct calls *c, uint64_t to)
{
	for (size_t i = c->n_signals; i-- > 0;) {
		const struct calls_frame *f = calls_slot(c, c->signals[i]);

		if (f->from == to || f->from + (uint64_t)f->again == to)
			return (size_t)(c->end - c->signals[i]);
	}
	return 0;
}

static void push_signal(const struct calls *c, struct calls_change *change, uint64_t from,
			uint64_t again)
{
	/* CALLS_MAX_SIGNALS handlers have not come back: the frames below them are not credible. */
	if (c->n_signals == CALLS_MAX_SIGNALS) {
		change->pops = calls_depth(c);
		change->lost = true;
	}
	change->pushes = true;
	/* The two are the same, or at both ends of a system call. */
	change->frame =
		(struct calls_frame){.from = from, .again = (int8_t)(again - from), .signal = true};
}

static void decide_enable(struct calls *c, uint64_t to, struct calls_change *change)
{
	bool known = c->stopped && c->resume != 0;

	c->stopped = false;
	if (!known || to == c->resume || to == c->again)
		return;
	change->pops = decide_resume(c, to);
	if (change->pops > 0)
		return;
	change->lost = c->sigreturn;
	if (c->sigreturn)
		change->pops = calls_depth(c);
	else
		push_signal(c, change, c->resume, c->again);
}

static void stop(struct calls *c, uint64_t resume, uint64_t again)
{
	c->stopped = true;
	c->resume = resume;
	c->again = again;
	c->sigreturn = false;
}

static void stop_for_syscall(struct calls *c, const struct flow_item *item)
{
	stop(c, item->from + SYSCALL_SIZE, item->from);
	c->sigreturn = item->insns == 2 && item->start == c->last_return &&
		       item->from - item->start == RESTORER_MOV;
}

/* User code calls the kernel, or is interrupted: the frames from here on end when user code goes
 * on. */
static void enter_kernel(struct calls *c, const struct flow_item *item, struct calls_change *change)
{
	if (item->kind == FLOW_ASYNC)
		stop(c, item->from, item->from);
	else
		stop_for_syscall(c, item);
	push_signal(c, change, item->from, c->resume);
	change->frame.entry = true;
}

/* User code goes on, or the handler of a signal begins: the kernel's frames end, or all frames if
 * no entry into the kernel is known. */
static void leave_kernel(struct calls *c, uint64_t to, struct calls_change *change)
{
	size_t kernel = calls_depth(c);
	bool known = false;

	for (size_t i = c->n_signals; i-- > 0 && !known;) {
		known = calls_slot(c, c->signals[i])->entry;
		if (known)
			kernel = (size_t)(c->end - c->signals[i]);
	}
	decide_enable(c, to, change);
	change->pops = MAX_OF(change->pops, kernel);
	change->lost = change->lost || !known;
}

static void cross(struct calls *c, const struct flow_item *item, struct calls_change *change)
{
	bool from = is_kernel(c, item->from), to = is_kernel(c, item->to);

	if (!from && to) {
		enter_kernel(c, item, change);
	} else if (from && !to) {
		leave_kernel(c, item->to, change);
	} else {
		change->pops = decide_resume(c, item->to);
		/* An interrupt of the kernel may go on elsewhere than where it came from (INT3 of
		 * kernel code that is being patched). */
		if (from && change->pops == 0 && c->n_signals > 0) {
			uint64_t last = c->signals[c->n_signals - 1];

			if (!calls_slot(c, last)->entry)
				change->pops = (size_t)(c->end - last);
		}
	}
}

void calls_mark(struct calls *c, const struct flow_mark *mark)
{
	if (mark->kind != FLOW_MARK_TSX || (mark->flags & FLOW_MARK_STATUS) != 0)
		return;
	c->aborts = mark->value == FLOW_TSX_ABORT;
	if (!c->aborts)
		c->transaction = mark->value == FLOW_TSX_BEGIN ? c->end : UINT64_MAX;
}

struct calls_change calls_decide(struct calls *c, const struct flow_item *item)
{
	struct calls_change change = {0};

	switch (item->kind) {
	case FLOW_CALL:
	case FLOW_CALL_IND:
		change.pushes = change.call = !(item->flags & FLOW_ZERO_LENGTH);
		change.frame.from = item->from;
		break;
	case FLOW_RET: decide_return(c, item->to, &change); break;
	case FLOW_FAR: cross(c, item, &change); break;
	case FLOW_ASYNC:
		if (c->aborts) {
			/* Registers and memory, and with them the stack, are again as they were
			 * when the transaction began. */
			if (c->end > c->transaction)
				change.pops = (size_t)(c->end - MAX_OF(c->transaction, c->begin));
			c->transaction = UINT64_MAX;
		} else if (is_kernel(c, item->to) && !is_kernel(c, item->from)) {
			enter_kernel(c, item, &change);
		} else {
			push_signal(c, &change, item->from, item->from);
		}
		break;
	case FLOW_ENABLE: decide_enable(c, item->to, &change); break;
	case FLOW_SYSCALL: stop_for_syscall(c, item); break;
	case FLOW_DISABLE:
		if (item->flags & FLOW_ASYNC_STOP)
			stop(c, item->from, item->from);
		else
			stop(c, 0, 0);
		break;
	case FLOW_GAP:
		change.pops = calls_depth(c);
		change.lost = true;
		stop(c, 0, 0);
		c->transaction = UINT64_MAX;
		break;
	default: break;
	}
	c->aborts = false;
	c->last_return = item->kind == FLOW_RET ? item->to : 0;
	return change;
}
