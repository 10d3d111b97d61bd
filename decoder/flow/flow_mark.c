/*
 * Places marks between the instructions that they belong to. No mark changes where the walk goes:
 * if the walk does not come to a mark's place, the mark stands where the walk needs another packet.
 */
#include "decoder/flow/flow_private.h"
#include "proto/base.h"

static void push(struct flow *f, const struct flow_mark *mark, const struct flow_when *when)
{
	struct flow_mark *m = &f->marks[f->out.n_marks];
	uint64_t ip = f->at.enabled ? f->at.ip : 0;
	struct flow_item *item;

	if (!f->config.marks)
		return;
	*m = *mark;
	m->tsc_lo = when->lo;
	m->tsc_hi = when->hi;
	item = flow_push(f, FLOW_MARK, ip, ip, when);
	item->mark = (uint32_t)f->out.n_marks++;
}

void flow_mark_here(struct flow *f)
{
	push(f, event_mark(&f->reader, &f->in.event), &f->in.event_when);
	flow_use_event(f);
}

bool flow_mark_shows(const struct flow *f)
{
	const struct flow_mark *m = event_mark(&f->reader, &f->in.event);

	if (!f->in.event.has_from)
		return false;
	return f->at.within || (m->kind == FLOW_MARK_TSX && m->value != FLOW_TSX_ABORT);
}

void flow_mark_off(struct flow *f)
{
	const struct flow_mark off = {.kind = FLOW_MARK_OFF, .offset = f->in.event.offset};

	push(f, &off, &f->in.event_when);
}

void flow_mark_tick(struct flow *f)
{
	const struct flow_mark tick = {.kind = FLOW_MARK_TICK, .offset = f->in.past.offset};

	f->held.tick_due = false;
	push(f, &tick, &f->in.past);
}

/* The mark in hand stands behind the branch at the walk's place. */
static void hold(struct flow *f)
{
	struct flow_mark *m;

	if (f->held.n == FLOW_HELD) {
		flow_mark_here(f);
		return;
	}
	m = &f->held.list[f->held.n++];
	*m = *event_mark(&f->reader, &f->in.event);
	m->tsc_lo = f->in.event_when.lo;
	m->tsc_hi = f->in.event_when.hi;
	f->held.holding = true;
	flow_use_event(f);
}

void flow_release(struct flow *f)
{
	for (unsigned int i = 0; i < f->held.n; i++) {
		struct flow_mark *m = &f->held.list[i];
		const struct flow_when when = {m->tsc_lo, m->tsc_hi, m->offset};

		if (!f->at.enabled)
			m->flags |= FLOW_MARK_OF_BRANCH;
		push(f, m, &when);
	}
	f->held.n = 0;
}

/* Whether the mark in hand is bound to an instruction of the kind that ends B. */
static bool is_of_branch(const struct flow *f, const struct graph_block *b)
{
	bool far = b->class == INSN_FAR || b->class == INSN_VMENTRY || b->class == INSN_SYSCALL;
	uint8_t kind = event_mark(&f->reader, &f->in.event)->kind;
	enum insn_class class;

	switch (f->in.event.bind) {
	case EVENT_CR3: class = INSN_CR3; break;
	case EVENT_VMCS: class = INSN_VMPTRLD; break;
	case EVENT_PTWRITE: class = INSN_PTWRITE; break;
	default: return false;
	}
	/* An instruction has at most one mark of each kind. */
	for (unsigned int i = 0; i < f->held.n; i++)
		if (f->held.list[i].kind == kind)
			return false;
	return b->class == class || (far && class != INSN_PTWRITE);
}

static void hold_at(struct flow *f, const struct graph_block *b)
{
	hold(f);
	if (f->held.holding && f->held.list[f->held.n - 1].kind == FLOW_MARK_PTWRITE) {
		f->held.list[f->held.n - 1].ip = b->last;
		f->held.list[f->held.n - 1].flags |= FLOW_MARK_HAS_IP;
	}
}

/* Goes on behind the first N instructions of B and places the mark there. */
static void place_behind(struct flow *f, const struct graph_block *b, uint32_t n)
{
	uint64_t ip = b->ip;

	for (uint32_t i = 0; i < n; i++)
		ip += b->sizes[i];
	flow_ran(f, b, n);
	flow_go(f, ip);
	flow_mark_here(f);
}

static bool is_straight(const struct graph_block *b)
{
	return b->class == INSN_OTHER || b->class == INSN_PTWRITE || b->class == INSN_CR3 ||
	       b->class == INSN_VMPTRLD;
}

bool flow_mark_in(struct flow *f, const struct graph_block *b)
{
	struct event *e = &f->in.event;
	int before;

	if (e->kind != EVENT_MARK)
		return false;
	switch (e->bind) {
	case EVENT_BEHIND:
		before = graph_index(b, e->from);
		if (before < 0)
			return false;
		if (before + 1 < b->n || is_straight(b))
			place_behind(f, b, (uint32_t)before + 1);
		else
			hold_at(f, b);
		return true;
	case EVENT_COUNT:
		if (e->n < b->n || (e->n == b->n && is_straight(b))) {
			place_behind(f, b, e->n);
			return true;
		}
		e->n -= b->n;
		return false;
	default:
		if (!is_of_branch(f, b))
			return false;
		hold_at(f, b);
		return true;
	}
}

bool flow_mark_at(struct flow *f, const struct graph_block *b)
{
	if (f->in.event.kind != EVENT_MARK)
		return false;
	/* Marks of a deferred TIP stand between the TIP and its decisions. */
	if (f->in.tnt_n > 0 || is_of_branch(f, b))
		hold_at(f, b);
	else
		flow_mark_here(f);
	return true;
}
