/*
 * The walk over code: block after block, each branch decided by the code itself, a TNT bit or a
 * TIP. Part of the walk (flow_private.h). SDM volume 3 (edition 083), 33.4.2.1 to 33.4.2.4.
 */
#include "decoder/flow_private.h"
#include "proto/base.h"

/* The block at f->ip; NULL: no memory. */
static struct graph_block *current_block(struct flow *f)
{
	if (f->block != NULL)
		return f->block;
	f->block = graph_get(f->graph, f->context, f->mode, f->ip);
	if (f->link != NULL && graph_generation(f->graph) == f->link_generation)
		*f->link = f->block;
	f->link = NULL;
	return f->block;
}

/* Goes to IP, which *LINK remembers the block of when it was there before. */
static void go_linked(struct flow *f, struct graph_block **link, uint64_t ip)
{
	f->ip = ip;
	if (*link != NULL && (*link)->ip == ip) {
		f->block = *link;
		return;
	}
	f->block = NULL;
	f->link = link;
	f->link_generation = graph_generation(f->graph);
}

/* True: the walk came to f->ip a second time without using a packet. Nothing but the address
 * decides where it goes from there, so it would for ever. */
static bool loops(struct flow *f)
{
	if (f->loop_steps == 0) {
		f->loop_limit = 8;
		f->loop_mark = f->ip;
	} else if (f->loop_mark == f->ip) {
		return true;
	} else if (f->loop_steps == f->loop_limit) {
		f->loop_limit *= 2;
		f->loop_mark = f->ip;
	}
	f->loop_steps++;
	return false;
}

/* For a branch that needs no packet: after the last one that was used, before the next. */
static struct flow_when between(const struct flow *f)
{
	struct flow_when w = f->past;

	w.hi = f->tnt_n > 0 ? f->tnt_when.hi : f->event_when.hi;
	w.lo = MIN_OF(w.lo, w.hi);
	return w;
}

/* The packet at hand does not fit the branch at the end of B. */
static void mismatch(struct flow *f, const struct graph_block *b)
{
	enum fault fault = FAULT_PACKET_UNEXPECTED;

	if (f->tnt_n > 0 || f->event.kind == EVENT_TNT)
		fault = FAULT_TNT_UNEXPECTED;
	else if (f->event.kind == EVENT_TIP)
		fault = FAULT_TIP_UNEXPECTED;
	else if (f->event.has_from)
		fault = FAULT_EVENT_UNREACHABLE;
	f->run_insns += b->n - 1u;
	flow_fail(f, fault, b->last);
}

/* Tracing ends with the branch at the end of B. */
static void leave(struct flow *f, const struct graph_block *b)
{
	f->run_insns += b->n;
	flow_push(f, b->class == INSN_SYSCALL ? FLOW_SYSCALL : FLOW_DISABLE, b->last, 0,
		  &f->event_when);
	flow_leave(f);
}

/* The trace ends and does not say where the branch at the end of B went; that it was come to it
 * does. */
static void end_at(struct flow *f, const struct graph_block *b)
{
	f->run_insns += b->n;
	flow_end(f, b->last);
}

static struct flow_item *branch(struct flow *f, const struct graph_block *b, enum flow_kind kind,
				uint64_t to, const struct flow_when *when)
{
	f->run_insns += b->n;
	return flow_push(f, kind, b->last, to, when);
}

static void fall_through(struct flow *f, struct graph_block *b)
{
	f->run_insns += b->n;
	go_linked(f, &b->fall, b->next);
}

/* One decision; only when there is one. */
static bool take_bit(struct flow *f)
{
	f->tnt_n--;
	f->past = f->tnt_when;
	f->loop_steps = 0;
	return (f->tnt_bits >> f->tnt_n & 1) != 0;
}

/* A conditional branch without a decision. */
static void undecided(struct flow *f, const struct graph_block *b)
{
	const struct event *e = &f->event;

	if (e->kind == EVENT_END)
		end_at(f, b);
	else if (e->kind == EVENT_DISABLE && e->has_to && (e->to == b->target || e->to == b->next))
		leave(f, b);
	else
		mismatch(f, b);
}

static void walk_cond(struct flow *f, struct graph_block *b)
{
	if (f->tnt_n == 0) {
		undecided(f, b);
		return;
	}
	if (!take_bit(f)) {
		fall_through(f, b);
		return;
	}
	branch(f, b, FLOW_COND, b->target, &f->tnt_when);
	go_linked(f, &b->taken, b->target);
}

/* True: the TIP.PGD in hand is of the direct branch at the end of B. */
static bool leaves_directly(const struct flow *f, const struct graph_block *b)
{
	return f->tnt_n == 0 && f->event.kind == EVENT_DISABLE && f->event.has_to &&
	       f->event.to == b->target;
}

static void walk_direct(struct flow *f, struct graph_block *b)
{
	bool call = b->class == INSN_CALL, empty = call && b->target == b->next;
	struct flow_when when = between(f);

	if (leaves_directly(f, b)) {
		leave(f, b);
		return;
	}
	/* A call to the next instruction reads the IP and is never returned from (SDM 33.4.2.2). */
	if (call && !empty)
		retstack_push(&f->returns, b->next);
	branch(f, b, call ? FLOW_CALL : FLOW_JUMP, b->target, &when)->flags |=
		empty ? FLOW_ZERO_LENGTH : 0;
	go_linked(f, &b->taken, b->target);
}

/* The TIP for the branch at the end of B, which may stand behind a TNT with decisions that come
 * after it (SDM 33.4.2.3 "Deferred TIPs"). A TIP.PGD ends tracing with the branch even without an
 * IP: real traces have that at indirect calls. False: there is no TIP, and that was dealt with. */
static bool take_target(struct flow *f, const struct graph_block *b)
{
	const struct event *e = &f->event;

	if (!f->have_event)
		flow_read_event(f);
	if (e->kind == EVENT_TIP && e->has_to)
		return true;
	if (f->tnt_n == 0 && e->kind == EVENT_END) {
		end_at(f, b);
	} else if (f->tnt_n == 0 && e->kind == EVENT_DISABLE) {
		leave(f, b);
	} else if (e->kind == EVENT_TIP) {
		f->run_insns += b->n;
		flow_fail(f, FAULT_TIP_NO_IP, b->last);
	} else {
		mismatch(f, b);
	}
	return false;
}

static void walk_indirect(struct flow *f, struct graph_block *b, enum flow_kind kind)
{
	uint64_t to = f->event.to;

	branch(f, b, kind, to, &f->event_when);
	flow_take_mode(f, f->event.mode);
	flow_use_event(f);
	if (kind == FLOW_FAR)
		flow_go(f, to);
	else
		go_linked(f, &b->taken, to);
}

static void walk_compressed(struct flow *f, struct graph_block *b)
{
	uint64_t to;

	if ((f->tnt_bits >> (f->tnt_n - 1) & 1) == 0) {
		f->run_insns += b->n;
		flow_fail(f, FAULT_RET_NOT_TAKEN, b->last);
		return;
	}
	if (!retstack_pop(&f->returns, &to)) {
		f->run_insns += b->n;
		flow_fail(f, FAULT_RET_EMPTY, b->last);
		return;
	}
	take_bit(f);
	f->stats.returns++;
	f->stats.compressed_returns++;
	branch(f, b, FLOW_RET, to, &f->tnt_when)->flags |= FLOW_COMPRESSED;
	go_linked(f, &b->taken, to);
}

/* A return with a decision in hand is compressed. One with a TIP was popped by the hardware too,
 * its target was another. */
static void walk_ret(struct flow *f, struct graph_block *b)
{
	uint64_t to;

	if (f->tnt_n > 0) {
		walk_compressed(f, b);
	} else if (take_target(f, b)) {
		retstack_pop(&f->returns, &to);
		f->stats.returns++;
		walk_indirect(f, b, FLOW_RET);
	}
}

static void walk_call_indirect(struct flow *f, struct graph_block *b)
{
	if (!take_target(f, b))
		return;
	retstack_push(&f->returns, b->next);
	walk_indirect(f, b, FLOW_CALL_IND);
}

/* The code behind B cannot be read. */
static void walk_fault(struct flow *f, const struct graph_block *b)
{
	f->run_insns += b->n;
	/* Behind the last packet nobody knows that execution came here. */
	if (f->tnt_n == 0 && f->event.kind == EVENT_END)
		flow_end(f, b->next);
	else
		flow_fail(f, b->fault, b->next);
}

static void walk_block(struct flow *f, struct graph_block *b)
{
	switch (b->class) {
	case INSN_COND: walk_cond(f, b); break;
	case INSN_JUMP:
	case INSN_CALL: walk_direct(f, b); break;
	case INSN_JUMP_IND:
		if (take_target(f, b))
			walk_indirect(f, b, FLOW_JUMP_IND);
		break;
	case INSN_CALL_IND: walk_call_indirect(f, b); break;
	case INSN_RET: walk_ret(f, b); break;
	case INSN_FAR:
	case INSN_SYSCALL:
		if (take_target(f, b))
			walk_indirect(f, b, FLOW_FAR);
		break;
	case INSN_CR3:
		if (f->tnt_n == 0 && f->event.kind == EVENT_DISABLE && !f->event.has_to)
			leave(f, b);
		else
			fall_through(f, b);
		break;
	default:
		if (b->fault != FAULT_NONE)
			walk_fault(f, b);
		else
			fall_through(f, b);
		break;
	}
}

/* How many instructions of B come before the event's place; -1: it is not in B. */
static int event_index(const struct flow *f, const struct graph_block *b)
{
	if (b->fault != FAULT_NONE && f->event.from == b->next)
		return b->n;
	return graph_index(b, f->event.from);
}

/* No decisions are left and the event may happen before B's end. True: it did. */
static bool step_event(struct flow *f, const struct graph_block *b)
{
	int before;

	if (!f->event.has_from)
		return false;
	before = event_index(f, b);
	if (before < 0)
		return false;
	f->run_insns += (uint32_t)before;
	flow_arrive(f);
	return true;
}

int flow_step_on(struct flow *f)
{
	struct graph_block *b;

	if (f->tnt_n == 0 && flow_step_at_once(f))
		return 0;
	if (f->tnt_n == 0 && f->config.cut && f->event.kind == EVENT_END) {
		flow_end(f, f->ip);
		return 0;
	}
	b = current_block(f);
	if (b == NULL)
		return -ENOMEM;
	if (f->tnt_n == 0 && step_event(f, b))
		return 0;
	if (loops(f)) {
		/* At the end of the trace it may well loop for ever. */
		if (f->tnt_n == 0 && f->event.kind == EVENT_END)
			flow_end(f, f->ip);
		else
			flow_fail(f, FAULT_LOOP, f->ip);
		return 0;
	}
	walk_block(f, b);
	return 0;
}
