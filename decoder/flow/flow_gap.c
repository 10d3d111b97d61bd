/*
 * What is not understood becomes a gap: from the packet that does not fit to the one that says
 * where execution is. Called by the walk where code and packets part. Part of the walk
 * (flow_private.h).
 */
#include "decoder/flow/flow_private.h"
#include "proto/base.h"

/* Faults that leave no doubt about the packets: a TIP behind them tells where execution went. */
static bool packets_are_good(enum fault fault)
{
	switch (fault) {
	case FAULT_OVERFLOW:
	case FAULT_UNMAPPED:
	case FAULT_ANONYMOUS:
	case FAULT_IMAGE_MISSING:
	case FAULT_IMAGE_SHORT:
	case FAULT_IMAGE_MISMATCH:
	case FAULT_IMAGE_GONE:
	case FAULT_KERNEL_TEXT:
	case FAULT_CODE_CHANGED:
	case FAULT_BAD_INSN:
	case FAULT_NO_SPACE:
	case FAULT_RET_EMPTY:
	case FAULT_LOOP:
	case FAULT_GUEST:
	case FAULT_UNSUPPORTED: return true;
	default: return false;
	}
}

/* Faults for want of code that is mapped, or should be. */
static bool lacks_code(enum fault fault)
{
	switch (fault) {
	case FAULT_UNMAPPED:
	case FAULT_ANONYMOUS:
	case FAULT_IMAGE_MISSING:
	case FAULT_IMAGE_SHORT:
	case FAULT_IMAGE_MISMATCH:
	case FAULT_IMAGE_GONE: return true;
	default: return false;
	}
}

/* Faults by which packets and code contradict each other. */
static bool is_contradiction(enum fault fault)
{
	switch (fault) {
	case FAULT_BAD_INSN:
	case FAULT_TNT_UNEXPECTED:
	case FAULT_TIP_UNEXPECTED:
	case FAULT_RET_EMPTY:
	case FAULT_RET_NOT_TAKEN:
	case FAULT_EVENT_UNREACHABLE:
	case FAULT_PACKET_UNEXPECTED:
	case FAULT_LOOP: return true;
	default: return false;
	}
}

/* While a virtual machine runs its packets say nothing of code that is known. */
static bool can_resume_in_guest(const struct event *e)
{
	return e->kind == EVENT_END || e->kind == EVENT_OVERFLOW || e->kind == EVENT_DISABLE ||
	       e->kind == EVENT_ASYNC_OFF;
}

/* The user wants nothing before the next PSB. */
static bool waits_for_psb(const struct flow *f, enum fault fault)
{
	if (f->config.resume_at_tip)
		return fault == FAULT_STATUS;
	return f->config.resume_at_psb && fault != FAULT_OVERFLOW && fault != FAULT_GUEST;
}

/* Of the decisions that were thrown away some may belong behind the TIP in hand. */
static bool lacks_decisions(struct flow *f)
{
	return f->event.late && f->lost_bits && !f->config.resume_at_tip &&
	       !event_prompt_ahead(&f->reader);
}

static bool can_resume_at(struct flow *f, enum fault fault)
{
	const struct event *e = &f->event;
	bool good = f->config.resume_at_tip || packets_are_good(fault);

	if (waits_for_psb(f, fault))
		return e->kind == EVENT_PSB || e->kind == EVENT_END;
	if (e->guest && !f->config.guests)
		return can_resume_in_guest(e);
	switch (e->kind) {
	case EVENT_NONE:
	case EVENT_TNT: return false;
	case EVENT_STATUS: return good && e->has_from;
	case EVENT_MARK: return good && flow_mark_shows(f);
	case EVENT_TIP: return good && e->has_to && !lacks_decisions(f);
	case EVENT_ASYNC: return good && e->has_to;
	default: return true;
	}
}

/* Code and context at a PSB are what they were before it. */
static bool is_same_context(struct flow *f)
{
	const struct event *e = &f->event;
	uint64_t context = f->context;

	if (f->config.context != NULL)
		context = f->config.context(f->config.userdata, e->from, f->event_when.lo,
					    f->event_when.hi);
	f->asked = context != FLOW_CONTEXT_LATER;
	f->asked_context = context;
	return context == f->context;
}

/* Whether the event in hand, with which decoding could go on, leads to more code that is missing
 * for the same reason: a stay in such code is one gap, however many branches it makes. A trial need
 * not know how long it is, and libipt's tools do not join them. */
static bool stays(struct flow *f)
{
	const struct event *e = &f->event;
	const struct graph_block *b;
	uint64_t ip = e->from;

	if (!lacks_code(f->gap.fault) || f->trial || f->config.resume_at_psb ||
	    f->config.resume_at_tip || !f->enabled || e->guest != f->guest)
		return false;
	switch (e->kind) {
	case EVENT_TIP:
	case EVENT_ASYNC: ip = e->to; break;
	case EVENT_MARK:
	case EVENT_STATUS: break;
	case EVENT_PSB:
		if (!e->has_from || e->clash || !is_same_context(f))
			return false;
		break;
	default: return false;
	}
	/* Between kernel and user code another process may have got the CPU. */
	if ((ip ^ f->gap.address) >> 63)
		return false;
	b = graph_get(f->graph, flow_kept_context(f, ip), e->mode, ip);
	return b != NULL && b->n == 0 && b->fault == f->gap.fault;
}

static void push_gap(struct flow *f, const struct flow_gap *gap)
{
	/* What the gap before has counts once. */
	uint64_t end = gap->offset + gap->bytes;
	uint64_t from = MIN_OF(MAX_OF(gap->offset, f->gap_end), end);
	struct flow_when when = {gap->tsc_lo, gap->tsc_hi, from};
	struct flow_item *item;

	flow_release(f);
	f->gap_end = MAX_OF(f->gap_end, end);
	f->gaps[f->n_gaps] = *gap;
	f->gaps[f->n_gaps].offset = from;
	f->gaps[f->n_gaps].bytes = end - from;
	item = flow_push(f, FLOW_GAP, f->enabled ? f->ip : 0, 0, &when);
	item->gap = (uint32_t)f->n_gaps++;
	f->stats.bytes_decoded -= end - from;
	f->enabled = f->syncing = false;
	f->resumed = true;
	f->have_left = false;
	f->loop_steps = 0;
	f->doubt = false;
	f->missing = FAULT_NONE;
	if (lacks_code(gap->fault) || gap->fault == FAULT_CODE_CHANGED)
		f->missing = (uint8_t)gap->fault;
	f->tick = f->tick_due = false;
	if (!f->config.retstack_libipt || gap->fault != FAULT_OVERFLOW)
		retstack_clear(&f->returns);
}

/* Where a reader stands that has the event in hand. */
static uint64_t read_so_far(const struct event *e)
{
	switch (e->kind) {
	case EVENT_DISABLE:
	case EVENT_ASYNC_OFF: return e->end;
	case EVENT_OVERFLOW: return e->offset;
	case EVENT_PSB: return e->clash ? e->bits : e->last;
	default: return e->last;
	}
}

/* From FROM on nothing is understood until an event comes that says where execution stands. OWN:
 * one decision is a return's own, which stands where it should. */
static void begin_sync(struct flow *f, enum fault fault, uint64_t address, struct flow_when from,
		       bool own)
{
	f->gap = (struct flow_gap){
		.fault = fault,
		.offset = from.offset,
		.address = address,
		.read = f->have_event ? read_so_far(&f->event) : from.offset,
		.tsc_lo = from.lo,
	};
	f->lost_bits = f->tnt_n > own;
	f->tnt_n = 0;
	/* Marks of a branch that is not come to. */
	flow_release(f);
	f->syncing = true;
}

void flow_step_sync(struct flow *f)
{
	f->lost_bits |= f->tnt_n > 0;
	f->tnt_n = 0;
	if (!f->have_event)
		return;
	if (can_resume_at(f, f->gap.fault) && stays(f)) {
		f->gap.stays++;
		f->asked = false;
		if (f->event.kind == EVENT_MARK)
			flow_place(f);
		else
			f->have_event = false;
	} else if (can_resume_at(f, f->gap.fault)) {
		f->gap.bytes = f->event.offset - MIN_OF(f->gap.offset, f->event.offset);
		f->gap.tsc_lo = MIN_OF(f->gap.tsc_lo, f->event_when.hi);
		f->gap.tsc_hi = f->event_when.hi;
		push_gap(f, &f->gap);
	} else if (f->event.kind == EVENT_MARK && !waits_for_psb(f, f->gap.fault)) {
		flow_place(f);
	} else {
		f->have_event = false;
	}
}

void flow_fail(struct flow *f, enum fault fault, uint64_t address)
{
	struct flow_when from = f->past;
	bool own = fault == FAULT_RET_EMPTY;

	/* It returns to a call in the code that is missing. */
	if (own && f->missing != FAULT_NONE)
		fault = f->missing;
	if (f->doubt && is_contradiction(fault))
		fault = FAULT_CODE_CHANGED;
	if (f->tnt_n > 0)
		from = f->tnt_when;
	else if (f->have_event)
		from = f->event_when;
	from.lo = MIN_OF(from.lo, f->past.lo);
	f->within = (f->within || f->enabled) && fault != FAULT_GUEST;
	flow_go(f, address);
	/* What a tracer reads ahead for the next decision, when there is none in hand. */
	if (!f->have_event)
		flow_read_event(f);
	begin_sync(f, fault, address, from, own);
}

void flow_lose(struct flow *f, enum fault fault)
{
	struct flow_when from = f->event_when;

	begin_sync(f, fault, f->enabled ? f->ip : 0, from, false);
	f->have_event = false; /* it is what the gap begins with */
}

void flow_event_gap(struct flow *f, enum fault fault)
{
	const struct flow_gap gap = {
		.fault = fault,
		.offset = f->event.offset,
		.bytes = f->event.end - f->event.offset,
		.address = f->enabled ? f->ip : 0,
		.read = read_so_far(&f->event),
		.tsc_lo = f->event_when.lo,
		.tsc_hi = f->event_when.hi,
	};

	push_gap(f, &gap);
	f->tnt_n = 0;
}

void flow_push_psb_gap(struct flow *f, enum fault fault)
{
	const struct flow_gap gap = {.fault = fault,
				     .offset = f->event.offset,
				     .address = f->event.from,
				     .read = read_so_far(&f->event),
				     .tsc_lo = f->past.lo,
				     .tsc_hi = MAX_OF(f->past.lo, f->event_when.hi)};

	if (waits_for_psb(f, fault))
		flow_lose(f, fault);
	else
		push_gap(f, &gap);
}
