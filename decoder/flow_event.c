/*
 * What happens between instructions: tracing goes on and off, asynchronous branches, PSBs, gaps.
 * Part of the walk (flow_private.h).
 */
#include <string.h>

#include "decoder/flow_private.h"
#include "proto/base.h"

/* The branches in a TNT happened since the last packet that showed one; a TIP may have waited for
 * the TNT in front of it to fill (SDM 33.4.2.3 "Deferred TIPs"). The others are written when they
 * happen. */
static bool gathers(uint8_t kind)
{
	return kind == EVENT_TNT || kind == EVENT_TIP;
}

void flow_read_event(struct flow *f)
{
	struct flow_when *w = &f->event_when;
	uint64_t lo;

	event_next(&f->reader, &f->event);
	timing_at(&f->timing, f->event.offset, &lo, &w->hi);
	w->lo = gathers(f->event.kind) ? MIN_OF(f->branch_lo, w->hi) : lo;
	if (f->tnt_n > 0)
		w->lo = MIN_OF(w->lo, f->tnt_when.lo);
	w->offset = f->event.offset;
	f->branch_lo = lo;
	f->have_event = true;
}

static void take_decisions(struct flow *f)
{
	f->tnt_bits = f->event.bits;
	f->tnt_n = f->event.n;
	f->tnt_when = f->event_when;
	f->have_event = false;
}

void flow_load(struct flow *f)
{
	if (f->tnt_n > 0)
		return;
	if (!f->have_event)
		flow_read_event(f);
	if (f->event.kind == EVENT_TNT)
		take_decisions(f);
}

struct flow_item *flow_push(struct flow *f, enum flow_kind kind, uint64_t from, uint64_t to,
			    const struct flow_when *when)
{
	struct flow_item *item = &f->items[f->n_items++];

	f->stats.branches += kind != FLOW_END && kind != FLOW_GAP;
	/* Decisions that are left behind a deferred TIP stand before it. */
	f->offset = MAX_OF(f->offset, when->offset);
	*item = (struct flow_item){
		.from = from,
		.to = to,
		.start = f->run_start,
		.tsc_lo = when->lo,
		.tsc_hi = when->hi,
		.offset = f->offset,
		.insns = f->run_insns,
		.kind = (uint8_t)kind,
		.flags = f->in_tx ? FLOW_IN_TX : 0,
	};
	f->stats.instructions += f->run_insns;
	f->run_start = to;
	f->run_insns = 0;
	return item;
}

void flow_use_event(struct flow *f)
{
	f->past = f->event_when;
	f->have_event = false;
	f->loop_steps = 0;
}

void flow_go(struct flow *f, uint64_t ip)
{
	f->ip = ip;
	f->block = NULL;
	f->link = NULL;
}

void flow_take_mode(struct flow *f, uint8_t mode)
{
	if (mode != f->mode)
		f->full = f->n_items > 0;
	f->mode = mode;
}

/* Faults that leave no doubt about the packets: a TIP behind them tells where execution went. */
static bool packets_are_good(enum fault fault)
{
	switch (fault) {
	case FAULT_OVERFLOW:
	case FAULT_UNMAPPED:
	case FAULT_ANONYMOUS:
	case FAULT_IMAGE_MISSING:
	case FAULT_IMAGE_SHORT:
	case FAULT_BAD_INSN:
	case FAULT_NO_SPACE:
	case FAULT_RET_EMPTY:
	case FAULT_LOOP:
	case FAULT_UNSUPPORTED: return true;
	default: return false;
	}
}

static bool can_resume_at(const struct event *e, enum fault fault)
{
	switch (e->kind) {
	case EVENT_TNT:
	case EVENT_STATUS: return false;
	case EVENT_TIP:
	case EVENT_ASYNC: return packets_are_good(fault) && e->has_to;
	default: return true;
	}
}

/* An item for a gap over [offset, end); tracing counts as off behind it. */
static void push_gap(struct flow *f, struct flow_gap gap)
{
	struct flow_when when = {gap.tsc_lo, gap.tsc_hi, gap.offset};
	struct flow_item *item;

	f->gaps[f->n_gaps] = gap;
	item = flow_push(f, FLOW_GAP, f->enabled ? f->ip : 0, 0, &when);
	item->gap = (uint32_t)f->n_gaps++;
	f->stats.bytes_decoded -= gap.bytes;
	f->enabled = false;
	f->resumed = true;
	f->have_left = false;
	f->loop_steps = 0;
	retstack_clear(&f->returns);
}

/* From FROM on nothing is understood until an event comes that says where execution stands. */
static void resync(struct flow *f, enum fault fault, uint64_t address, struct flow_when from)
{
	f->tnt_n = 0;
	for (;;) {
		if (!f->have_event)
			flow_read_event(f);
		if (can_resume_at(&f->event, fault))
			break;
		f->have_event = false;
	}
	push_gap(f, (struct flow_gap){
			    .fault = fault,
			    .offset = from.offset,
			    .bytes = f->event.offset - MIN_OF(from.offset, f->event.offset),
			    .address = address,
			    .tsc_lo = MIN_OF(from.lo, f->event_when.hi),
			    .tsc_hi = f->event_when.hi,
		    });
}

void flow_fail(struct flow *f, enum fault fault, uint64_t address)
{
	struct flow_when from = f->past;

	if (f->tnt_n > 0)
		from = f->tnt_when;
	else if (f->have_event)
		from = f->event_when;
	from.lo = MIN_OF(from.lo, f->past.lo);
	f->within = f->within || f->enabled;
	flow_go(f, address);
	resync(f, fault, address, from);
}

/* A gap that is the event itself. */
static void event_gap(struct flow *f, enum fault fault)
{
	f->within = false;
	push_gap(f, (struct flow_gap){
			    .fault = fault,
			    .offset = f->event.offset,
			    .bytes = f->event.end - f->event.offset,
			    .address = f->enabled ? f->ip : 0,
			    .tsc_lo = f->event_when.lo,
			    .tsc_hi = f->event_when.hi,
		    });
	f->tnt_n = 0;
}

/* Whose code is it at IP? False: the batch must end before that changes. */
static bool enter(struct flow *f, uint64_t ip)
{
	if (!f->asked) {
		f->asked_context = 0;
		if (f->config.context != NULL)
			f->asked_context = f->config.context(f->config.userdata, ip,
							     f->event_when.lo, f->event_when.hi);
	}
	if (f->asked_context == FLOW_CONTEXT_LATER) {
		f->full = f->later = true;
		return false;
	}
	f->asked = true;
	if (f->n_items > 0 && (f->asked_context != f->context || f->event.mode != f->mode)) {
		f->full = true;
		return false;
	}
	f->asked = false;
	f->context = f->asked_context;
	f->mode = f->run_mode = f->event.mode;
	return true;
}

static void enable_at(struct flow *f, uint64_t ip)
{
	if (!enter(f, ip))
		return;
	f->in_tx = f->event.in_tx;
	f->run_insns = 0;
	flow_push(f, FLOW_ENABLE, 0, ip, &f->event_when);
	flow_go(f, ip);
	flow_use_event(f);
	f->enabled = true;
	f->resumed = f->within = false;
}

/* The event says that execution is at IP; out of nothing only behind a gap. */
static void appear_at(struct flow *f, bool known, uint64_t ip)
{
	if (known && f->resumed)
		enable_at(f, ip);
	else
		flow_fail(f, FAULT_PACKET_UNEXPECTED, ip);
}

static void overflow(struct flow *f)
{
	event_gap(f, FAULT_OVERFLOW);
	if (f->event.has_to) {
		f->event.kind = EVENT_ENABLE;
		return;
	}
	flow_use_event(f);
	/* Erratum SKD010: the FUP or TIP.PGE behind an OVF may be missing. */
	if (!event_off_ahead(&f->reader)) {
		struct flow_when from = f->past;

		from.offset = f->event.end;
		resync(f, FAULT_OVERFLOW, 0, from);
	}
}

static void psb_off(struct flow *f)
{
	retstack_clear(&f->returns);
	if (!f->event.has_from) {
		flow_use_event(f);
		f->resumed = f->within = false;
	} else if (f->resumed) {
		enable_at(f, f->event.from);
	} else {
		/* Tracing is on and nothing said that it was enabled. */
		push_gap(f, (struct flow_gap){.fault = FAULT_PACKET_UNEXPECTED,
					      .offset = f->event.offset,
					      .address = f->event.from,
					      .tsc_lo = f->past.lo,
					      .tsc_hi = MAX_OF(f->past.lo, f->event_when.hi)});
	}
}

void flow_step_off(struct flow *f)
{
	if (f->tnt_n > 0) {
		flow_fail(f, FAULT_PACKET_UNEXPECTED, 0);
		return;
	}
	switch (f->event.kind) {
	case EVENT_ENABLE:
		if (f->event.has_to)
			enable_at(f, f->event.to);
		else
			event_gap(f, FAULT_TIP_NO_IP), flow_use_event(f);
		break;
	case EVENT_TIP:
	case EVENT_ASYNC: appear_at(f, f->event.has_to, f->event.to); break;
	case EVENT_PSB: psb_off(f); break;
	case EVENT_DISABLE:
	case EVENT_ASYNC_OFF:
		if (!f->resumed) {
			flow_fail(f, FAULT_PACKET_UNEXPECTED, 0);
			break;
		}
		flow_use_event(f);
		f->resumed = f->within = false;
		break;
	case EVENT_END:
		if (f->event.fault != FAULT_NONE)
			event_gap(f, f->event.fault);
		f->done = true;
		break;
	case EVENT_STATUS: flow_use_event(f); break;
	default: flow_step_at_once(f); break;
	}
}

bool flow_step_at_once(struct flow *f)
{
	switch (f->event.kind) {
	case EVENT_OVERFLOW: overflow(f); return true;
	case EVENT_BAD:
		event_gap(f, f->event.fault);
		flow_use_event(f);
		return true;
	case EVENT_STOP:
		event_gap(f, FAULT_TRACESTOP);
		flow_use_event(f);
		f->resumed = false;
		return true;
	case EVENT_ENABLE:
		/* On already: something is missing between. */
		flow_fail(f, FAULT_PACKET_UNEXPECTED, f->ip);
		return true;
	case EVENT_PSB:
		if (f->event.has_from)
			return false;
		flow_fail(f, FAULT_PACKET_UNEXPECTED, f->ip);
		return true;
	default: return false;
	}
}

void flow_end(struct flow *f, uint64_t from)
{
	f->ip = from;
	if (f->event.fault != FAULT_NONE)
		event_gap(f, f->event.fault);
	else
		flow_push(f, FLOW_END, from, 0, &f->event_when);
	f->done = true;
}

/* A PSB in mid-trace: execution goes on, returns do not cross it. When the user says that from here
 * on it is other code, tracing ends and begins in the items. */
static void arrive_psb(struct flow *f)
{
	uint64_t ip = f->event.from, context = f->context;

	retstack_clear(&f->returns);
	if (f->config.context != NULL)
		context = f->config.context(f->config.userdata, ip, f->event_when.lo,
					    f->event_when.hi);
	f->in_tx = f->event.in_tx;
	if (context == f->context && f->event.mode == f->mode) {
		flow_use_event(f);
		return;
	}
	f->asked = true;
	f->asked_context = context;
	flow_push(f, FLOW_DISABLE, ip, 0, &f->event_when)->flags |= FLOW_ASYNC_STOP;
	f->enabled = false;
	f->event.kind = EVENT_ENABLE;
	f->event.has_to = true;
	f->event.to = ip;
}

static void arrive_async(struct flow *f)
{
	if (!f->event.has_to) {
		flow_fail(f, FAULT_TIP_NO_IP, f->event.from);
		return;
	}
	flow_push(f, FLOW_ASYNC, f->event.from, f->event.to, &f->event_when);
	f->in_tx = f->event.in_tx;
	flow_take_mode(f, f->event.mode);
	flow_go(f, f->event.to);
	flow_use_event(f);
}

void flow_leave(struct flow *f)
{
	f->left = f->items[f->n_items - 1];
	f->have_left = true;
	flow_use_event(f);
	f->enabled = false;
}

void flow_arrive(struct flow *f)
{
	flow_go(f, f->event.from);
	switch (f->event.kind) {
	case EVENT_ASYNC: arrive_async(f); break;
	case EVENT_ASYNC_OFF:
		flow_push(f, FLOW_DISABLE, f->ip, 0, &f->event_when)->flags |= FLOW_ASYNC_STOP;
		flow_leave(f);
		break;
	case EVENT_PSB: arrive_psb(f); break;
	case EVENT_END: flow_end(f, f->ip); break;
	default: /* EVENT_STATUS */
		f->in_tx = f->event.in_tx;
		flow_take_mode(f, f->event.mode);
		flow_use_event(f);
		break;
	}
}
