/*
 * Makes a gap of what is not understood: from the packet that does not fit the code to the packet
 * that says where execution is.
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

bool flow_is_contradiction(enum fault fault)
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

/* Whether the user wants nothing before the next PSB. */
static bool waits_for_psb(const struct flow *f, enum fault fault)
{
	if (f->config.resume_at_tip)
		return fault == FAULT_STATUS;
	return f->config.resume_at_psb && fault != FAULT_OVERFLOW && fault != FAULT_GUEST;
}

static bool can_resume_at(struct flow *f, enum fault fault)
{
	const struct event *e = &f->in.event;
	bool good = f->config.resume_at_tip || packets_are_good(fault);

	if (waits_for_psb(f, fault))
		return e->kind == EVENT_PSB || e->kind == EVENT_END;
	/* While a virtual machine runs its packets say nothing about code that is known. */
	if (e->guest && !f->config.guests)
		return e->kind == EVENT_END || e->kind == EVENT_OVERFLOW ||
		       e->kind == EVENT_DISABLE || e->kind == EVENT_ASYNC_OFF;
	switch (e->kind) {
	case EVENT_NONE:
	case EVENT_TNT: return false;
	case EVENT_STATUS: return good && e->has_from;
	case EVENT_MARK: return good && flow_mark_shows(f);
	case EVENT_TIP:
		if (!good || !e->has_to)
			return false;
		/* Some of the decisions that were thrown away may belong behind a late TIP. */
		return !e->late || !f->sync.lost_bits || f->config.resume_at_tip ||
		       event_prompt_ahead(&f->reader);
	case EVENT_ASYNC: return good && e->has_to;
	default: return true;
	}
}

/* Whether the context at the PSB in hand is the one before it. */
static bool is_same_context(struct flow *f)
{
	const struct event *e = &f->in.event;
	uint64_t context = f->at.context;

	if (f->config.context)
		context = f->config.context(f->config.userdata, e->from, f->in.event_when.lo,
					    f->in.event_when.hi);
	f->ask.asked = context != FLOW_CONTEXT_LATER;
	f->ask.context = context;
	return context == f->at.context;
}

/* Whether the event in hand, with which decoding could go on, leads to more code that is missing
 * for the same reason: a stay in such code is one gap, however many branches it has. A trial need
 * not know how long the stay is, and libipt's tools do not join such gaps. */
static bool stays(struct flow *f)
{
	const struct event *e = &f->in.event;
	const struct graph_block *b;
	uint64_t ip = e->from;

	if (!lacks_code(f->sync.gap.fault) || f->trial || f->config.resume_at_psb ||
	    f->config.resume_at_tip || !f->at.enabled || e->guest != f->at.guest)
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
	if ((ip ^ f->sync.gap.address) >> 63)
		return false;
	b = graph_get(f->graph, flow_context_at(f, ip), e->mode, ip);
	return b && b->n == 0 && b->fault == f->sync.gap.fault;
}

void flow_push_gap(struct flow *f, const struct flow_gap *gap)
{
	/* Bytes of the gap before count once. */
	uint64_t end = gap->offset + gap->bytes;
	uint64_t from = MIN_OF(MAX_OF(gap->offset, f->sync.end), end);
	struct flow_when when = {gap->tsc_lo, gap->tsc_hi, from};
	struct flow_item *item;

	flow_release(f);
	f->sync.end = MAX_OF(f->sync.end, end);
	f->gaps[f->out.n_gaps] = *gap;
	f->gaps[f->out.n_gaps].offset = from;
	f->gaps[f->out.n_gaps].bytes = end - from;
	item = flow_push(f, FLOW_GAP, f->at.enabled ? f->at.ip : 0, 0, &when);
	item->gap = (uint32_t)f->out.n_gaps++;
	f->stats.bytes_decoded -= end - from;
	f->at.enabled = f->sync.on = false;
	f->at.resumed = true;
	f->ask.have_left = false;
	f->loop.steps = 0;
	f->at.doubt = false;
	f->at.missing = FAULT_NONE;
	if (lacks_code(gap->fault) || gap->fault == FAULT_CODE_CHANGED)
		f->at.missing = (uint8_t)gap->fault;
	f->held.tick = f->held.tick_due = false;
	if (!f->config.retstack_libipt || gap->fault != FAULT_OVERFLOW)
		flow_forget_returns(f, true);
}

/* The offset of the last packet that was read for the event in hand. */
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

/* From FROM on nothing is understood until an event says where execution is. OWN: one of the
 * decisions in hand is the decision of the return that failed, so it is not lost. */
static void begin_sync(struct flow *f, enum fault fault, uint64_t address, struct flow_when from,
		       bool own)
{
	f->sync.gap = (struct flow_gap){
		.fault = fault,
		.offset = from.offset,
		.address = address,
		.read = f->in.have_event ? read_so_far(&f->in.event) : from.offset,
		.tsc_lo = from.lo,
	};
	f->sync.lost_bits = f->in.tnt_n > own;
	f->in.tnt_n = 0;
	/* The walk does not come to the branch that marks were held for. */
	flow_release(f);
	f->sync.on = true;
}

void flow_step_sync(struct flow *f)
{
	f->sync.lost_bits |= f->in.tnt_n > 0;
	f->in.tnt_n = 0;
	if (!f->in.have_event)
		return;
	if (can_resume_at(f, f->sync.gap.fault) && stays(f)) {
		f->sync.gap.stays++;
		f->ask.asked = false;
		if (f->in.event.kind == EVENT_MARK)
			flow_mark_here(f);
		else
			f->in.have_event = false;
	} else if (can_resume_at(f, f->sync.gap.fault)) {
		f->sync.gap.bytes =
			f->in.event.offset - MIN_OF(f->sync.gap.offset, f->in.event.offset);
		f->sync.gap.tsc_lo = MIN_OF(f->sync.gap.tsc_lo, f->in.event_when.hi);
		f->sync.gap.tsc_hi = f->in.event_when.hi;
		flow_push_gap(f, &f->sync.gap);
	} else if (f->in.event.kind == EVENT_MARK && !waits_for_psb(f, f->sync.gap.fault)) {
		flow_mark_here(f);
	} else {
		f->in.have_event = false;
	}
}

void flow_fail(struct flow *f, enum fault fault, uint64_t address)
{
	struct flow_when from = f->in.past;
	bool own = fault == FAULT_RET_EMPTY;

	/* The return is from a call in the code that is missing. */
	if (own && f->at.missing != FAULT_NONE)
		fault = f->at.missing;
	if (f->at.doubt && flow_is_contradiction(fault))
		fault = FAULT_CODE_CHANGED;
	if (f->in.tnt_n > 0)
		from = f->in.tnt_when;
	else if (f->in.have_event)
		from = f->in.event_when;
	from.lo = MIN_OF(from.lo, f->in.past.lo);
	f->at.within = (f->at.within || f->at.enabled) && fault != FAULT_GUEST;
	flow_go(f, address);
	/* A decoder has read ahead for the next decision, when there is none in hand. */
	if (!f->in.have_event)
		flow_read_event(f);
	begin_sync(f, fault, address, from, own);
}

void flow_lose(struct flow *f, enum fault fault)
{
	struct flow_when from = f->in.event_when;

	begin_sync(f, fault, f->at.enabled ? f->at.ip : 0, from, false);
	f->in.have_event = false; /* the gap begins with this event */
}

void flow_event_gap(struct flow *f, enum fault fault)
{
	struct flow_gap gap = {
		.fault = fault,
		.offset = f->in.event.offset,
		.bytes = f->in.event.end - f->in.event.offset,
		.address = f->at.enabled ? f->at.ip : 0,
		.read = read_so_far(&f->in.event),
		.tsc_lo = f->in.event_when.lo,
		.tsc_hi = f->in.event_when.hi,
	};
	uint64_t lo;

	/* Doubt goes on over many packets. */
	if (fault == FAULT_TIME_BACKWARDS)
		timing_at(&f->timing, f->in.event.end, &lo, &gap.tsc_hi);
	flow_push_gap(f, &gap);
	f->in.tnt_n = 0;
}

void flow_push_psb_gap(struct flow *f, enum fault fault)
{
	const struct flow_gap gap = {.fault = fault,
				     .offset = f->in.event.offset,
				     .address = f->in.event.from,
				     .read = read_so_far(&f->in.event),
				     .tsc_lo = f->in.past.lo,
				     .tsc_hi = MAX_OF(f->in.past.lo, f->in.event_when.hi)};

	if (waits_for_psb(f, fault))
		flow_lose(f, fault);
	else
		flow_push_gap(f, &gap);
}
