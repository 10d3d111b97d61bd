/*
 * What happens between instructions: tracing goes on and off, asynchronous branches, PSBs,
 * overflows. Part of the walk (flow_private.h).
 */
#include <string.h>

#include "decoder/flow/flow_private.h"
#include "decoder/packet/packet.h"
#include "proto/base.h"

/* Whether the trace was recorded within a virtual machine, by its own recorder: one of the host
 * begins and ends in the host, so it has PIPs that say so. Without a PIP nobody can tell. */
static bool is_own(const struct flow *f)
{
	struct packet_cursor c = {.end = f->config.trace + f->config.size,
				  .quirks = event_quirks(&f->errata)};
	const uint8_t *psb = sync_find(f->config.trace, c.end);
	bool found = false;
	struct packet p;

	if (f->config.cut)
		return false;
	while (psb != NULL) {
		c.pos = psb;
		c.bip_bytes = 0;
		while (packet_next(&c, &p) == 0) {
			if (p.type == PACKET_PIP && p.u.pip.nr == 0)
				return false;
			found |= p.type == PACKET_PIP;
		}
		psb = c.pos < c.end ? sync_find(c.pos + 1, c.end) : NULL;
	}
	return found;
}

void flow_read_event(struct flow *f)
{
	struct flow_when *w = &f->event_when;

	event_next(&f->reader, &f->event);
	if (f->event.guest && !f->guests_known) {
		f->guests_known = true;
		f->config.guests = f->config.guests || is_own(f);
	}
	timing_at(&f->timing, f->event.offset, &w->lo, &w->hi);
	f->event_first_hi = timing_first(&f->timing);
	/* A TIP may have waited for the TNT in front of it to fill (SDM 33.4.2.3 "Deferred TIPs").
	 */
	if (f->tnt_n > 0)
		w->lo = MIN_OF(w->lo, f->tnt_when.lo);
	w->offset = f->event.offset;
	f->have_event = true;
}

static void take_decisions(struct flow *f)
{
	f->tnt_bits = f->event.bits;
	f->tnt_n = f->event.n;
	f->tnt_when = f->event_when;
	f->tnt_when.hi = f->event_first_hi;
	f->tnt_hi = f->event_when.hi;
	f->tnt_begun = false;
	f->tick = f->event.timed && f->config.ticks;
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

	f->stats.branches += kind != FLOW_END && kind != FLOW_GAP && kind != FLOW_MARK;
	/* Decisions that are left behind a deferred TIP stand before it. */
	f->offset = MAX_OF(f->offset, when->offset);
	f->n_firm += kind > FLOW_RET || flow_is_kernel(f, from);
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
	if (f->config.kernel_start != 0 && f->run_start >= f->config.kernel_start)
		f->stats.kernel_instructions += f->run_insns;
	f->run_start = to;
	f->run_insns = 0;
	return item;
}

void flow_use_event(struct flow *f)
{
	f->past = f->event_when;
	f->have_event = f->branched = false;
	f->loop_steps = 0;
	if (f->event.kind != EVENT_MARK)
		f->guest = f->event.guest;
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

void flow_part(struct flow *f)
{
	if (!f->splits)
		return;
	f->splits = false;
	f->parted = true;
	f->full |= f->n_items > 0;
}

/* Whose code is it at IP? False: the batch must end before that changes. */
static bool enter(struct flow *f, uint64_t ip)
{
	if (!f->asked && f->config.context != NULL && !flow_may_ask(f))
		return false;
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

/* Tracing is on at IP, where event in hand says so or goes on from. False: not yet. */
static bool go_on_at(struct flow *f, uint64_t ip, uint64_t context_ip, uint8_t flags)
{
	if (!enter(f, context_ip))
		return false;
	f->in_tx = f->event.in_tx;
	f->guest = f->event.guest;
	f->run_insns = 0;
	flow_push(f, FLOW_ENABLE, 0, ip, &f->event_when)->flags |= flags;
	flow_go(f, ip);
	f->enabled = true;
	f->resumed = f->within = false;
	return true;
}

static void enable_at(struct flow *f, uint64_t ip, uint8_t flags)
{
	if (go_on_at(f, ip, ip, flags))
		flow_use_event(f);
}

/* The event says that execution is at IP; out of nothing only behind a gap. */
static void appear_at(struct flow *f, bool known, uint64_t ip)
{
	if (known && f->resumed)
		enable_at(f, ip, FLOW_GOES_ON);
	else
		flow_fail(f, FAULT_PACKET_UNEXPECTED, ip);
}

/* Behind a gap an asynchronous branch says where it came from, but not how the trace got there. */
static void appear_async(struct flow *f)
{
	const struct event *e = &f->event;

	if (!e->has_from || !e->has_to || !f->resumed || f->guest) {
		appear_at(f, e->has_to, e->to);
		return;
	}
	if (!go_on_at(f, e->from, e->to, FLOW_GOES_ON))
		return;
	flow_push(f, FLOW_ASYNC, e->from, e->to, &f->event_when);
	flow_go(f, e->to);
	flow_use_event(f);
	flow_crossed(f);
}

/* The event stands at a place where execution came to: decoding can go on there. */
static void appear_here(struct flow *f)
{
	if (go_on_at(f, f->event.from, f->event.from, FLOW_GOES_ON) && f->event.kind != EVENT_MARK)
		flow_arrive(f);
}

/* Where an OVF says that execution goes on, or nothing: then errata SKD010 and APL11 may have cost
 * the FUP or the TIP.PGE, or added a TIP.PGD. */
static void take_overflow(struct flow *f)
{
	f->within = f->guest = false;
	if (!f->event.has_to && !event_off_ahead(&f->reader)) {
		flow_lose(f, FAULT_OVERFLOW);
		return;
	}
	flow_event_gap(f, FAULT_OVERFLOW);
	if (f->event.has_to)
		f->event.kind = EVENT_TIP;
	else
		flow_use_event(f);
}

static void psb_off(struct flow *f)
{
	retstack_clear(&f->returns);
	f->missing = FAULT_NONE;
	if (!f->event.has_from) {
		flow_use_event(f);
		f->resumed = f->within = false;
	} else if (f->resumed) {
		enable_at(f, f->event.from, FLOW_GOES_ON);
	} else {
		/* Tracing is on and nothing said that it was enabled. */
		flow_push_psb_gap(f, FAULT_STATUS);
	}
}

static void disable_off(struct flow *f)
{
	if (!f->resumed) {
		flow_fail(f, FAULT_PACKET_UNEXPECTED, 0);
		return;
	}
	if (f->within)
		flow_place_off(f);
	flow_use_event(f);
	f->resumed = f->within = false;
}

static void status_off(struct flow *f)
{
	if (f->resumed && f->event.has_from)
		appear_here(f);
	else
		flow_use_event(f);
}

static void mark_off(struct flow *f)
{
	if (f->resumed && flow_mark_shows(f))
		appear_here(f);
	else
		flow_place(f);
}

/* Code of a virtual machine is nobody's that we know. */
static bool is_guests(const struct flow *f)
{
	if (!f->event.guest || f->config.guests)
		return false;
	switch (f->event.kind) {
	case EVENT_ENABLE:
	case EVENT_TIP:
	case EVENT_ASYNC:
	case EVENT_STATUS: return true;
	case EVENT_PSB: return f->event.has_from;
	default: return false;
	}
}

static void step_event_off(struct flow *f)
{
	switch (f->event.kind) {
	case EVENT_ENABLE:
		if (f->event.has_to)
			enable_at(f, f->event.to, 0);
		else
			flow_event_gap(f, FAULT_TIP_NO_IP), flow_use_event(f);
		break;
	case EVENT_TIP: appear_at(f, f->event.has_to, f->event.to); break;
	case EVENT_ASYNC: appear_async(f); break;
	case EVENT_PSB: psb_off(f); break;
	case EVENT_DISABLE:
	case EVENT_ASYNC_OFF: disable_off(f); break;
	case EVENT_END:
		if (f->event.fault != FAULT_NONE)
			flow_event_gap(f, f->event.fault);
		f->done = true;
		break;
	case EVENT_STATUS: status_off(f); break;
	case EVENT_MARK: mark_off(f); break;
	default: flow_step_at_once(f); break;
	}
}

void flow_step_off(struct flow *f)
{
	if (f->tnt_n > 0) {
		flow_fail(f, FAULT_PACKET_UNEXPECTED, 0);
	} else if (is_guests(f)) {
		f->guest = true;
		flow_fail(f, FAULT_GUEST, f->event.has_to ? f->event.to : f->event.from);
	} else {
		step_event_off(f);
	}
}

static void take_bad(struct flow *f)
{
	f->within = false;
	if (f->config.resume_at_psb) {
		flow_lose(f, f->event.fault);
	} else {
		flow_event_gap(f, f->event.fault);
		flow_use_event(f);
	}
}

bool flow_step_at_once(struct flow *f)
{
	switch (f->event.kind) {
	case EVENT_NONE: flow_use_event(f); return true;
	case EVENT_OVERFLOW: take_overflow(f); return true;
	case EVENT_BAD: take_bad(f); return true;
	case EVENT_STOP:
		flow_event_gap(f, FAULT_TRACESTOP);
		flow_use_event(f);
		f->resumed = f->within = false;
		return true;
	case EVENT_ENABLE:
		/* On already: something is missing between. */
		flow_fail(f, FAULT_PACKET_UNEXPECTED, f->ip);
		return true;
	case EVENT_PSB:
		if (f->event.has_from)
			return false;
		flow_fail(f, FAULT_STATUS, f->ip);
		return true;
	case EVENT_ASYNC:
	case EVENT_ASYNC_OFF:
		if (f->event.has_from)
			return false;
		flow_fail(f, FAULT_TIP_NO_IP, f->ip);
		return true;
	case EVENT_STATUS:
		if (f->event.has_from)
			return false;
		flow_use_event(f);
		return true;
	case EVENT_MARK:
		if (f->event.bind != EVENT_NOW && (f->event.bind != EVENT_COUNT || f->event.n > 0))
			return false;
		flow_place(f);
		return true;
	default: return false;
	}
}

void flow_end(struct flow *f, uint64_t from)
{
	f->ip = from;
	if (f->event.fault != FAULT_NONE)
		flow_event_gap(f, f->event.fault);
	else
		flow_push(f, FLOW_END, from, 0, &f->event_when);
	f->done = true;
}

/* The packets before were of another mode than the event says, and no branch changed it: something
 * is missing. */
static void clash(struct flow *f)
{
	f->within = true;
	flow_push_psb_gap(f, FAULT_STATUS);
}

/* A PSB in mid-trace: execution goes on, returns do not cross it. When the user says that from here
 * on it is other code, tracing ends and begins in the items. */
static void arrive_psb(struct flow *f)
{
	uint64_t ip = f->event.from, context = f->context;

	if (!f->config.retstack_libipt)
		retstack_clear(&f->returns);
	f->doubt = false;
	f->missing = FAULT_NONE;
	if (f->config.context != NULL)
		context = f->config.context(f->config.userdata, ip, f->event_when.lo,
					    f->event_when.hi);
	f->in_tx = f->event.in_tx;
	if (context == f->context && f->event.mode == f->mode) {
		flow_use_event(f);
		flow_part(f);
		return;
	}
	f->splits = false;
	f->asked = true;
	f->asked_context = context;
	flow_push(f, FLOW_DISABLE, ip, 0, &f->event_when)->flags |= FLOW_ASYNC_STOP;
	f->enabled = false;
	f->resumed = true;
	f->event.kind = EVENT_TIP;
	f->event.has_to = true;
	f->event.to = ip;
}

void flow_ask_again(struct flow *f)
{
	uint64_t context;

	/* The tick's mark ends the run, so that what follows can be code of its own. */
	if (f->config.context == NULL || !f->config.marks || !f->enabled ||
	    f->event.kind == EVENT_ENABLE)
		return;
	context = f->config.context(f->config.userdata, f->ip, f->past.lo, f->past.hi);
	flow_go(f, f->ip); /* a trial may have thrown blocks away */
	flow_part(f);
	if (context == f->context || context == FLOW_CONTEXT_LATER)
		return;
	f->next_context = context;
	f->changes = f->full = true;
}

static void arrive_async(struct flow *f)
{
	if (!f->event.has_to) {
		flow_fail(f, FAULT_TIP_NO_IP, f->event.from);
		return;
	}
	if (!flow_may_cross(f, f->event.from, f->event.to))
		return;
	flow_push(f, FLOW_ASYNC, f->event.from, f->event.to, &f->event_when);
	f->in_tx = f->event.in_tx;
	flow_take_mode(f, f->event.mode);
	flow_go(f, f->event.to);
	flow_use_event(f);
	flow_crossed(f);
}

void flow_leave(struct flow *f)
{
	f->left = f->items[f->n_items - 1];
	f->have_left = true;
	flow_use_event(f);
	f->enabled = false;
}

static void arrive_off(struct flow *f)
{
	/* Erratum SKD022: the instruction did execute. */
	if (f->errata.skd022 && flow_is_vmentry(f)) {
		f->run_insns++;
		flow_push(f, FLOW_DISABLE, f->ip, 0, &f->event_when);
	} else {
		flow_push(f, FLOW_DISABLE, f->ip, 0, &f->event_when)->flags |= FLOW_ASYNC_STOP;
	}
	flow_leave(f);
}

void flow_arrive(struct flow *f)
{
	flow_go(f, f->event.from);
	switch (f->event.kind) {
	case EVENT_ASYNC: arrive_async(f); break;
	case EVENT_ASYNC_OFF: arrive_off(f); break;
	case EVENT_PSB:
		if (f->event.clash)
			clash(f);
		else
			arrive_psb(f);
		break;
	case EVENT_MARK: flow_place(f); break;
	case EVENT_END: flow_end(f, f->ip); break;
	default: /* EVENT_STATUS */
		if (f->event.mode != f->mode) {
			clash(f);
			break;
		}
		f->in_tx = f->event.in_tx;
		flow_use_event(f);
		break;
	}
}
