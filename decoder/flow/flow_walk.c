/*
 * The walk over code: block after block, each branch decided by the code itself, a TNT bit or a
 * TIP. Part of the walk (flow_private.h). SDM volume 3 (edition 083), 33.4.2.1 to 33.4.2.4.
 */
#include "decoder/flow/flow_private.h"
#include "proto/base.h"

/* The block at f->ip; NULL: no memory, or the batch is full before it. */
static struct graph_block *current_block(struct flow *f)
{
	uint64_t context;

	if (f->block != NULL)
		return f->block;
	if (!flow_code_context(f, &context))
		return NULL;
	f->block = graph_get(f->graph, context, f->mode, f->ip);
	if (f->link != NULL && graph_generation(f->graph) == f->link_generation)
		*f->link = f->block;
	f->link = NULL;
	return f->block;
}

/* Goes to IP, which *LINK remembers the block of when it was there before. */
static void go_linked(struct flow *f, struct graph_block **link, uint64_t ip)
{
	f->ip = ip;
	/* A block of the kernel's is every context's, and one that it once led to is not. */
	if (*link != NULL && (*link)->ip == ip && !graph_changes(*link) &&
	    ((*link)->context == f->context || flow_is_kernel(f, ip))) {
		f->block = *link;
		return;
	}
	f->block = NULL;
	f->link = link;
	f->link_generation = graph_generation(f->graph);
}

/* More blocks than any code has between two branches that a trace shows; what a packet can cost. */
#define STEPS_MAX (1u << 17)

/* True: the walk came to f->ip a second time without using a packet, or will come to nothing else
 * for too long. Nothing but the address decides where it goes from there. */
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
	return f->loop_steps++ == STEPS_MAX;
}

struct flow_when flow_between(const struct flow *f)
{
	struct flow_when w = f->past;

	w.hi = f->event_when.hi;
	if (f->tnt_n > 0)
		w.hi = f->tnt_begun ? f->tnt_hi : f->tnt_when.hi;
	w.lo = MIN_OF(w.lo, w.hi);
	return w;
}

/* The packet at hand does not fit the branch at the end of B. */
static void mismatch(struct flow *f, const struct graph_block *b)
{
	enum fault fault = FAULT_PACKET_UNEXPECTED;

	if (flow_mark_at(f, b))
		return;
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
	if (f->tnt_begun)
		f->tnt_when.hi = f->tnt_hi;
	f->tnt_begun = true;
	f->past = f->tnt_when;
	f->loop_steps = 0;
	f->tick_due |= f->tick;
	f->tick = false;
	return (f->tnt_bits >> f->tnt_n & 1) != 0;
}

/* A conditional branch without a decision. One that leaves an address filter has a TIP.PGD in its
 * place, with an IP or without. */
static void undecided(struct flow *f, const struct graph_block *b)
{
	const struct event *e = &f->event;

	if (e->kind == EVENT_END)
		end_at(f, b);
	else if (e->kind == EVENT_DISABLE && (!e->has_to || e->to == b->target || e->to == b->next))
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
	f->decided = b->last;
	f->branched = true;
	if (!take_bit(f)) {
		fall_through(f, b);
		return;
	}
	branch(f, b, FLOW_COND, b->target, &f->tnt_when);
	go_linked(f, &b->taken, b->target);
}

/* True: the TIP.PGD in hand is of the direct branch at the end of B. */
static bool leaves_directly(struct flow *f, const struct graph_block *b)
{
	if (f->tnt_n > 0 || f->event.kind != EVENT_DISABLE)
		return false;
	if (f->event.has_to)
		return f->event.to == b->target;
	return f->errata.skl014 && flow_is_nowhere(f, b->target);
}

static void walk_direct(struct flow *f, struct graph_block *b)
{
	bool call = b->class == INSN_CALL, empty = call && b->target == b->next;
	struct flow_when when = flow_between(f);

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
	f->tick_due |= f->event.timed && f->config.ticks;
	f->decided = b->last;
	flow_use_event(f);
	f->branched = true;
	if (kind == FLOW_FAR)
		flow_go(f, to);
	else
		go_linked(f, &b->taken, to);
}

static void walk_far(struct flow *f, struct graph_block *b)
{
	if (!flow_may_cross(f, b->last, f->event.to))
		return;
	walk_indirect(f, b, FLOW_FAR);
	flow_crossed(f);
}

static void walk_compressed(struct flow *f, struct graph_block *b)
{
	uint64_t to;

	if ((f->tnt_bits >> (f->tnt_n - 1) & 1) == 0) {
		f->run_insns += b->n;
		flow_fail(f, FAULT_RET_NOT_TAKEN, b->last);
		return;
	}
	if (!flow_pop_return(f, &to)) {
		f->run_insns += b->n;
		flow_fail(f, FAULT_RET_EMPTY, b->last);
		return;
	}
	take_bit(f);
	f->decided = b->last;
	f->branched = true;
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
		if (!f->config.retstack_libipt)
			flow_pop_return(f, &to);
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
	case INSN_VMENTRY:
	case INSN_SYSCALL:
		if (take_target(f, b))
			walk_far(f, b);
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

	if (flow_mark_in(f, b))
		return true;
	if (!f->event.has_from)
		return false;
	before = event_index(f, b);
	if (before < 0)
		return false;
	f->run_insns += (uint32_t)before;
	flow_arrive(f);
	return true;
}

/* The walk goes in a circle and no packet says for how long. */
static void fail_loop(struct flow *f)
{
	if (f->tnt_n == 0 && f->event.kind == EVENT_MARK)
		flow_place(f);
	else if (f->tnt_n == 0 && f->event.kind == EVENT_END)
		flow_end(f, f->ip); /* it may well loop for ever */
	else
		flow_fail(f, FAULT_LOOP, f->ip);
}

/* What belongs to the branch that was just done. */
static void finish_block(struct flow *f)
{
	if (f->n_held > 0 && !f->holding && !f->syncing)
		flow_release(f);
	if (f->tick_due && !f->syncing) {
		flow_place_tick(f);
		flow_ask_again(f);
	}
}

/* True: the event in hand, and no block, was the step. */
static bool step_without_code(struct flow *f)
{
	if (f->guest && !f->config.guests) {
		flow_fail(f, FAULT_GUEST, f->ip);
		return true;
	}
	if (f->tnt_n > 0)
		return false;
	if (flow_step_at_once(f))
		return true;
	if (f->config.cut && f->event.kind == EVENT_END) {
		flow_end(f, f->ip);
		return true;
	}
	if (f->errata.bdm64)
		flow_mend_bdm64(f);
	return false;
}

int flow_step_on(struct flow *f)
{
	struct graph_block *b;

	if (step_without_code(f))
		return 0;
	b = current_block(f);
	if (b == NULL)
		return f->full ? 0 : -ENOMEM;
	f->holding = false;
	f->doubt |= b->changing;
	if (f->tnt_n == 0 && step_event(f, b)) {
		if (!f->enabled)
			finish_block(f);
		return 0;
	}
	if (loops(f)) {
		fail_loop(f);
		return 0;
	}
	walk_block(f, b);
	finish_block(f);
	flow_look_for_switch(f);
	return 0;
}
