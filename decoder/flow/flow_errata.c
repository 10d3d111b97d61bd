/*
 * Errata that only the code can tell. Part of the walk (flow_private.h).
 */
#include "decoder/flow/flow_private.h"
#include "proto/base.h"

/* Instructions that an abort can be behind its branch. */
#define BDM64_INSNS 1024u

/* The block at IP in the walk's code, which holds blocks of its own: none may end. NULL: no memory.
 */
static const struct graph_block *look(struct flow *f, uint64_t ip, union graph_room *room)
{
	return graph_look(f->graph, flow_kept_context(f, ip), f->mode, ip, room);
}

/* Where execution goes behind B. False: that is not in the code. */
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
	uint64_t at = f->ip;
	union graph_room room;

	for (unsigned int n = 0; n < BDM64_INSNS;) {
		const struct graph_block *b = look(f, at, &room);

		if (b == NULL || graph_index(b, ip) >= 0 ||
		    (b->fault != FAULT_NONE && b->next == ip))
			return true;
		if (b->fault != FAULT_NONE)
			return false;
		n += b->n;
		if (!find_next(b, &at))
			return false;
	}
	return false;
}

static bool is_abort(const struct flow *f)
{
	const struct event *e = &f->event;
	const struct flow_mark *m = event_mark(&f->reader, e);

	return e->kind == EVENT_MARK && e->has_from && m->kind == FLOW_MARK_TSX &&
	       m->value == FLOW_TSX_ABORT;
}

void flow_mend_bdm64(struct flow *f)
{
	struct flow_item *last = f->n_items > 0 ? &f->items[f->n_items - 1] : NULL;
	uint64_t from = f->event.from;

	if (!is_abort(f) || !f->branched || f->loop_steps != 0 || leads_to(f, from))
		return;
	if (f->run_insns == 0 && last != NULL && last->to == f->ip) {
		last->to = f->run_start = from;
		if (last->kind == FLOW_STEPS) {
			last->from = from;
			flow_mend_steps(f, last->walk, from);
		}
	} else {
		flow_push(f, FLOW_COND, f->decided, from, &f->past);
	}
	flow_go(f, from);
}

bool flow_is_nowhere(struct flow *f, uint64_t ip)
{
	union graph_room room;
	const struct graph_block *b = look(f, ip, &room);

	return b != NULL && b->n == 0;
}

bool flow_is_vmentry(struct flow *f)
{
	union graph_room room;
	const struct graph_block *b = look(f, f->ip, &room);

	return b != NULL && b->n == 1 && b->class == INSN_VMENTRY;
}
