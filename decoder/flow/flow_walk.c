/*
 * Steps over code block by block, each branch decided by the code itself, a TNT bit or a TIP (SDM
 * volume 3, edition 083, 33.4.2.1 to 33.4.2.4), and corrects errata that only the code can tell.
 */
#include "decoder/flow/flow_private.h"
#include "proto/base.h"

/* Most instructions between an abort and the branch before it. */
#define BDM64_INSNS 1024u

/* --- Errata that only the code can tell --- */

/* The block at IP in the walk's code. No block's life ends, as the walk holds some. NULL: no
 * memory.
 */
static const struct graph_block *look(struct flow *f, uint64_t ip, union graph_room *room)
{
	return graph_look(f->graph, flow_context_at(f, ip), f->at.mode, ip, room);
}

/* Where execution goes behind B. False: the code does not say. */
static bool find_next(const struct graph_block *b, uint64_t *ret)
{
	switch (b->class) {
	case INSN_JUMP:
	case INSN_CALL: *ret = b->target; return true;
	case INSN_COND:
	case INSN_JUMP_IND:
	case INSN_CALL_IND:
	case INSN_RET:
	case INSN_FAR:
	case INSN_SYSCALL:
	case INSN_VMENTRY: return false;
	default: *ret = b->next; return true;
	}
}

/* Whether straight code and direct branches lead from the walk's place to IP. */
static bool leads_to(struct flow *f, uint64_t ip)
{
	uint64_t at = f->at.ip;
	union graph_room room;

	for (unsigned int n = 0; n < BDM64_INSNS;) {
		const struct graph_block *b = look(f, at, &room);

		if (!b || graph_index(b, ip) >= 0 || (b->fault != FAULT_NONE && b->next == ip))
			return true;
		if (b->fault != FAULT_NONE)
			return false;
		n += b->n;
		if (!find_next(b, &at))
			return false;
	}
	return false;
}

void flow_mend_bdm64(struct flow *f)
{
	const struct event *e = &f->in.event;
	const struct flow_mark *m = event_mark(&f->reader, e);
	bool abort = e->kind == EVENT_MARK && e->has_from && m->kind == FLOW_MARK_TSX &&
		     m->value == FLOW_TSX_ABORT;
	struct flow_item *last = f->out.n_items > 0 ? &f->items[f->out.n_items - 1] : NULL;
	uint64_t from = f->in.event.from;

	if (!abort || !f->in.branched || f->loop.steps != 0 || leads_to(f, from))
		return;
	if (f->at.run_insns == 0 && last && last->to == f->at.ip) {
		last->to = f->at.run_start = from;
		if (last->kind == FLOW_STEPS) {
			last->from = from;
			flow_mend_steps(f, last->walk, from);
		}
	} else {
		flow_push(f, FLOW_COND, f->in.decided, from, &f->in.past);
	}
	flow_go(f, from);
}

bool flow_is_vmentry(struct flow *f)
{
	union graph_room room;
	const struct graph_block *b = look(f, f->at.ip, &room);

	return b && b->n == 1 && b->class == INSN_VMENTRY;
}

/* --- Blocks and branches --- */

void flow_ran(struct flow *f, const struct graph_block *b, uint32_t n)
{
	f->at.run_insns += n;
	if (b->changing != CODE_SAME)
		f->stats.changing[b->changing] += n;
}

/* The block at the walk's place; NULL: no memory, or the batch is full before the block. */
static struct graph_block *current_block(struct flow *f)
{
	uint64_t context;

	if (f->at.block)
		return f->at.block;
	if (!flow_code_context(f, &context))
		return NULL;
	f->at.block = graph_get(f->graph, context, f->at.mode, f->at.ip);
	/* A block with a fault may be another one at the next visit. */
	if (f->at.link && f->at.block && f->at.block->fault == FAULT_NONE &&
	    graph_generation(f->graph) == f->at.link_generation)
		*f->at.link = f->at.block;
	f->at.link = NULL;
	return f->at.block;
}

/* Goes to IP. *LINK remembers the block there, if the walk came this way before. */
static void go_linked(struct flow *f, struct graph_block **link, uint64_t ip)
{
	f->at.ip = ip;
	/* A block of the kernel belongs to all contexts; a block of user code that it once led to
	 * does not. */
	if (*link && (*link)->ip == ip && !graph_changes(*link) &&
	    ((*link)->context == f->at.context || flow_is_kernel(f, ip))) {
		f->at.block = *link;
		return;
	}
	f->at.block = NULL;
	f->at.link = link;
	f->at.link_generation = graph_generation(f->graph);
}

/* More blocks than any code has between two branches that a trace shows: the most that a packet
 * costs. */
#define STEPS_MAX (1u << 17)

/* True: the walk came to its place a second time without using a packet, so it goes in a circle
 * (only the address decides where it goes from there), or it used no packet for too long. */
static bool loops(struct flow *f)
{
	if (f->loop.steps == 0) {
		f->loop.limit = 8;
		f->loop.mark = f->at.ip;
	} else if (f->loop.mark == f->at.ip) {
		return true;
	} else if (f->loop.steps == f->loop.limit) {
		f->loop.limit *= 2;
		f->loop.mark = f->at.ip;
	}
	return f->loop.steps++ == STEPS_MAX;
}

struct flow_when flow_between(const struct flow *f)
{
	struct flow_when w = f->in.past;

	w.hi = f->in.event_when.hi;
	if (f->in.tnt_n > 0)
		w.hi = f->in.tnt_begun ? f->in.tnt_hi : f->in.tnt_when.hi;
	w.lo = MIN_OF(w.lo, w.hi);
	return w;
}

/* The packet at hand does not fit the branch at the end of B. */
static void mismatch(struct flow *f, const struct graph_block *b)
{
	enum fault fault = FAULT_PACKET_UNEXPECTED;

	if (flow_mark_at(f, b))
		return;
	if (f->in.tnt_n > 0 || f->in.event.kind == EVENT_TNT)
		fault = FAULT_TNT_UNEXPECTED;
	else if (f->in.event.kind == EVENT_TIP)
		fault = FAULT_TIP_UNEXPECTED;
	else if (f->in.event.has_from)
		fault = FAULT_EVENT_UNREACHABLE;
	flow_ran(f, b, b->n - 1u);
	flow_fail(f, fault, b->last);
}

/* Tracing ends with the branch at the end of B. */
static void leave(struct flow *f, const struct graph_block *b)
{
	flow_ran(f, b, b->n);
	flow_push(f, b->class == INSN_SYSCALL ? FLOW_SYSCALL : FLOW_DISABLE, b->last, 0,
		  &f->in.event_when);
	flow_leave(f);
}

/* The trace ends at the branch at the end of B, and does not say where the branch went. */
static void end_at(struct flow *f, const struct graph_block *b)
{
	flow_ran(f, b, b->n);
	flow_end(f, b->last);
}

static struct flow_item *branch(struct flow *f, const struct graph_block *b, enum flow_kind kind,
				uint64_t to, const struct flow_when *when)
{
	flow_ran(f, b, b->n);
	return flow_push(f, kind, b->last, to, when);
}

static void fall_through(struct flow *f, struct graph_block *b)
{
	flow_ran(f, b, b->n);
	go_linked(f, &b->fall, b->next);
}

/* Uses one decision, which must be in hand. */
static bool take_bit(struct flow *f)
{
	f->in.tnt_n--;
	if (f->in.tnt_begun)
		f->in.tnt_when.hi = f->in.tnt_hi;
	f->in.tnt_begun = true;
	f->in.past = f->in.tnt_when;
	f->loop.steps = 0;
	f->held.tick_due |= f->held.tick;
	f->held.tick = false;
	return (f->in.tnt_bits >> f->in.tnt_n & 1) != 0;
}

static void walk_cond(struct flow *f, struct graph_block *b)
{
	const struct event *e = &f->in.event;

	/* Instead of a decision, a branch that leaves an address filter has a TIP.PGD, with an IP
	 * or without. */
	if (f->in.tnt_n == 0) {
		if (e->kind == EVENT_END)
			end_at(f, b);
		else if (e->kind == EVENT_DISABLE &&
			 (!e->has_to || e->to == b->target || e->to == b->next))
			leave(f, b);
		else
			mismatch(f, b);
		return;
	}
	f->in.decided = b->last;
	f->in.branched = true;
	if (!take_bit(f)) {
		fall_through(f, b);
		return;
	}
	branch(f, b, FLOW_COND, b->target, &f->in.tnt_when);
	go_linked(f, &b->taken, b->target);
}

/* Whether the TIP.PGD in hand belongs to the direct branch at the end of B. */
static bool leaves_directly(struct flow *f, const struct graph_block *b)
{
	const struct graph_block *to;
	union graph_room room;

	if (f->in.tnt_n > 0 || f->in.event.kind != EVENT_DISABLE)
		return false;
	if (f->in.event.has_to)
		return f->in.event.to == b->target;
	if (!f->errata.skl014)
		return false;
	/* Erratum SKL014: a branch to where there is no code can only have left. */
	to = look(f, b->target, &room);
	return to && to->n == 0;
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

/* Has the TIP for the branch at the end of B in hand. The TIP may stand behind a TNT with decisions
 * that come after the branch (SDM 33.4.2.3 "Deferred TIPs"). A TIP.PGD ends tracing with the branch
 * even without an IP: real traces have that at indirect calls. False: there is no TIP, and the step
 * is done. */
static bool take_target(struct flow *f, const struct graph_block *b)
{
	const struct event *e = &f->in.event;

	if (!f->in.have_event)
		flow_read_event(f);
	if (e->kind == EVENT_TIP && e->has_to)
		return true;
	if (f->in.tnt_n == 0 && e->kind == EVENT_END) {
		end_at(f, b);
	} else if (f->in.tnt_n == 0 && e->kind == EVENT_DISABLE) {
		leave(f, b);
	} else if (e->kind == EVENT_TIP) {
		flow_ran(f, b, b->n);
		flow_fail(f, FAULT_TIP_NO_IP, b->last);
	} else {
		mismatch(f, b);
	}
	return false;
}

static void walk_indirect(struct flow *f, struct graph_block *b, enum flow_kind kind)
{
	uint64_t to = f->in.event.to;

	branch(f, b, kind, to, &f->in.event_when);
	flow_take_mode(f, f->in.event.mode);
	f->held.tick_due |= f->in.event.timed && f->config.ticks;
	f->in.decided = b->last;
	flow_use_event(f);
	f->in.branched = true;
	if (kind == FLOW_FAR)
		flow_go(f, to);
	else
		go_linked(f, &b->taken, to);
}

static void walk_compressed(struct flow *f, struct graph_block *b)
{
	uint64_t to;

	if ((f->in.tnt_bits >> (f->in.tnt_n - 1) & 1) == 0) {
		flow_ran(f, b, b->n);
		flow_fail(f, FAULT_RET_NOT_TAKEN, b->last);
		return;
	}
	if (!flow_pop_return(f, &to)) {
		flow_ran(f, b, b->n);
		flow_fail(f, FAULT_RET_EMPTY, b->last);
		return;
	}
	take_bit(f);
	f->in.decided = b->last;
	f->in.branched = true;
	f->stats.returns++;
	f->stats.compressed_returns++;
	branch(f, b, FLOW_RET, to, &f->in.tnt_when)->flags |= FLOW_COMPRESSED;
	go_linked(f, &b->taken, to);
}

/* A return with a decision in hand is compressed. For a return with a TIP the hardware popped its
 * stack too, but the target was another one. */
static void walk_ret(struct flow *f, struct graph_block *b)
{
	if (f->in.tnt_n > 0) {
		walk_compressed(f, b);
	} else if (take_target(f, b)) {
		flow_pass_return(f);
		f->stats.returns++;
		walk_indirect(f, b, FLOW_RET);
	}
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
	case INSN_CALL_IND:
		if (!take_target(f, b))
			break;
		retstack_push(&f->returns, b->next);
		walk_indirect(f, b, FLOW_CALL_IND);
		break;
	case INSN_RET: walk_ret(f, b); break;
	case INSN_FAR:
	case INSN_VMENTRY:
	case INSN_SYSCALL:
		if (!take_target(f, b) || !flow_may_cross(f, b->last, f->in.event.to))
			break;
		walk_indirect(f, b, FLOW_FAR);
		flow_crossed(f);
		break;
	case INSN_CR3:
		if (f->in.tnt_n == 0 && f->in.event.kind == EVENT_DISABLE && !f->in.event.has_to)
			leave(f, b);
		else
			fall_through(f, b);
		break;
	default:
		if (b->fault == FAULT_NONE) {
			fall_through(f, b);
			break;
		}
		/* The code behind B cannot be read. Behind the last packet it is not known that
		 * execution came there. */
		flow_ran(f, b, b->n);
		if (f->in.tnt_n == 0 && f->in.event.kind == EVENT_END)
			flow_end(f, b->next);
		else
			flow_fail(f, b->fault, b->next);
		break;
	}
}

/* --- Steps --- */

/* No decisions are left and the event may happen before B's end. True: it did. */
static bool step_event(struct flow *f, const struct graph_block *b)
{
	int before;

	if (flow_mark_in(f, b))
		return true;
	if (!f->in.event.has_from)
		return false;
	before = b->fault != FAULT_NONE && f->in.event.from == b->next
			 ? b->n
			 : graph_index(b, f->in.event.from);
	if (before < 0)
		return false;
	flow_ran(f, b, (uint32_t)before);
	flow_arrive(f);
	return true;
}

/* The walk goes in a circle and no packet says for how long. */
static void fail_loop(struct flow *f)
{
	if (f->in.tnt_n == 0 && f->in.event.kind == EVENT_MARK)
		flow_mark_here(f);
	else if (f->in.tnt_n == 0 && f->in.event.kind == EVENT_END)
		flow_end(f, f->at.ip); /* the program may loop for ever */
	else
		flow_fail(f, FAULT_LOOP, f->at.ip);
}

/* Marks and ticks that belong to the branch that was just done. */
static void finish_block(struct flow *f)
{
	if (f->held.n > 0 && !f->held.holding && !f->sync.on)
		flow_release(f);
	if (f->held.tick_due && !f->sync.on) {
		flow_mark_tick(f);
		flow_ask_again(f);
	}
}

/* Does the event in hand if it needs no code. True: that was the step. */
static bool step_without_code(struct flow *f)
{
	if (f->at.guest && !f->config.guests) {
		flow_fail(f, FAULT_GUEST, f->at.ip);
		return true;
	}
	if (f->in.tnt_n > 0)
		return false;
	if (flow_step_at_once(f))
		return true;
	if (f->config.cut && f->in.event.kind == EVENT_END) {
		flow_end(f, f->at.ip);
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
	if (!b)
		return f->out.full ? 0 : -ENOMEM;
	f->held.holding = false;
	f->at.doubt |= code_is_doubted(b->changing);
	if (f->in.tnt_n == 0 && step_event(f, b)) {
		if (!f->at.enabled)
			finish_block(f);
		return 0;
	}
	if (b->class == INSN_RET && flow_decide_return(f))
		return 0;
	if (loops(f)) {
		fail_loop(f);
		return 0;
	}
	walk_block(f, b);
	finish_block(f);
	flow_look_for_switch(f);
	return 0;
}
