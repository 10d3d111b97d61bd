/*
 * Does what happens between instructions: tracing goes on and off, asynchronous branches, PSBs,
 * overflows.
 */
#include <string.h>

#include "decoder/flow/flow_private.h"
#include "decoder/packet/packet.h"
#include "proto/base.h"

/* Whether the trace was recorded within a virtual machine, by its own recorder: a trace of the host
 * begins and ends in the host, so it has PIPs that say so. Without a PIP it is not known. */
static bool is_own(const struct flow *f)
{
	struct packet_cursor c = {.end = f->config.trace + f->pieces.size,
				  .quirks = event_quirks(&f->errata)};
	const uint8_t *psb = sync_find(f->config.trace, c.end);
	bool found = false;
	struct packet p;

	if (f->pieces.cut)
		return false;
	while (psb) {
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
	struct flow_when *w = &f->in.event_when;

	event_next(&f->reader, &f->in.event);
	if (f->in.event.guest && !f->guests_known) {
		f->guests_known = true;
		f->config.guests = f->config.guests || is_own(f);
	}
	timing_at(&f->timing, f->in.event.offset, &w->lo, &w->hi);
	f->in.event_first_hi = timing_first(&f->timing);
	/* A TIP may have waited for the TNT in front of it to fill (SDM 33.4.2.3 "Deferred TIPs").
	 */
	if (f->in.tnt_n > 0)
		w->lo = MIN_OF(w->lo, f->in.tnt_when.lo);
	w->offset = f->in.event.offset;
	f->in.have_event = true;
}

void flow_load(struct flow *f)
{
	struct flow_in *in = &f->in;

	if (in->tnt_n > 0)
		return;
	if (!in->have_event)
		flow_read_event(f);
	if (in->event.kind != EVENT_TNT)
		return;
	in->tnt_bits = in->event.bits;
	in->tnt_n = in->event.n;
	in->tnt_when = in->event_when;
	in->tnt_when.hi = in->event_first_hi;
	in->tnt_hi = in->event_when.hi;
	in->tnt_begun = false;
	f->held.tick = in->event.timed && f->config.ticks;
	in->have_event = false;
}

struct flow_item *flow_push(struct flow *f, enum flow_kind kind, uint64_t from, uint64_t to,
			    const struct flow_when *when)
{
	struct flow_item *item = &f->items[f->out.n_items++];

	f->stats.branches += kind != FLOW_END && kind != FLOW_GAP && kind != FLOW_MARK;
	/* Decisions that are left behind a deferred TIP stand before it. */
	f->at.offset = MAX_OF(f->at.offset, when->offset);
	f->group.n_firm += kind > FLOW_RET || flow_is_kernel(f, from);
	*item = (struct flow_item){
		.from = from,
		.to = to,
		.start = f->at.run_start,
		.tsc_lo = when->lo,
		.tsc_hi = when->hi,
		.offset = f->at.offset,
		.insns = f->at.run_insns,
		.kind = (uint8_t)kind,
		.flags = f->at.in_tx ? FLOW_IN_TX : 0,
	};
	f->stats.instructions += f->at.run_insns;
	if (f->config.kernel_start != 0 && f->at.run_start >= f->config.kernel_start)
		f->stats.kernel_instructions += f->at.run_insns;
	f->at.run_start = to;
	f->at.run_insns = 0;
	return item;
}

void flow_use_event(struct flow *f)
{
	f->in.past = f->in.event_when;
	f->in.have_event = f->in.branched = false;
	f->loop.steps = 0;
	if (f->in.event.kind != EVENT_MARK)
		f->at.guest = f->in.event.guest;
}

void flow_go(struct flow *f, uint64_t ip)
{
	f->at.ip = ip;
	f->at.block = NULL;
	f->at.link = NULL;
}

void flow_take_mode(struct flow *f, uint8_t mode)
{
	if (mode != f->at.mode)
		f->out.full = f->out.n_items > 0;
	f->at.mode = mode;
}

void flow_part(struct flow *f)
{
	if (!f->ask.splits)
		return;
	f->ask.splits = false;
	f->group.parted = true;
	f->out.full |= f->out.n_items > 0;
}

/* Asks which context's code is at IP. False: the batch must end before the context changes. */
static bool enter(struct flow *f, uint64_t ip)
{
	if (!f->ask.asked && f->config.context && !flow_may_ask(f))
		return false;
	if (!f->ask.asked) {
		f->ask.context = 0;
		if (f->config.context)
			f->ask.context = f->config.context(
				f->config.userdata, ip, f->in.event_when.lo, f->in.event_when.hi);
	}
	if (f->ask.context == FLOW_CONTEXT_LATER) {
		f->out.full = f->out.later = true;
		return false;
	}
	f->ask.asked = true;
	if (f->out.n_items > 0 &&
	    (f->ask.context != f->at.context || f->in.event.mode != f->at.mode)) {
		f->out.full = true;
		return false;
	}
	f->ask.asked = false;
	f->at.context = f->ask.context;
	f->at.mode = f->out.run_mode = f->in.event.mode;
	return true;
}

/* Tracing is on at IP, as the event in hand says. False: not yet. */
static bool go_on_at(struct flow *f, uint64_t ip, uint64_t context_ip, uint8_t flags)
{
	if (!enter(f, context_ip))
		return false;
	f->at.in_tx = f->in.event.in_tx;
	f->at.guest = f->in.event.guest;
	f->at.run_insns = 0;
	flow_push(f, FLOW_ENABLE, 0, ip, &f->in.event_when)->flags |= flags;
	flow_go(f, ip);
	f->at.enabled = true;
	f->at.resumed = f->at.within = false;
	return true;
}

static void enable_at(struct flow *f, uint64_t ip, uint8_t flags)
{
	if (go_on_at(f, ip, ip, flags))
		flow_use_event(f);
}

/* With KNOWN, the event says that execution is at IP. Only behind a gap execution can be anywhere.
 */
static void appear_at(struct flow *f, bool known, uint64_t ip)
{
	if (known && f->at.resumed)
		enable_at(f, ip, FLOW_GOES_ON);
	else
		flow_fail(f, FAULT_PACKET_UNEXPECTED, ip);
}

/* Behind a gap an asynchronous branch says where it came from, but not how execution got there. */
static void appear_async(struct flow *f)
{
	const struct event *e = &f->in.event;

	if (!e->has_from || !e->has_to || !f->at.resumed || f->at.guest) {
		appear_at(f, e->has_to, e->to);
		return;
	}
	if (!go_on_at(f, e->from, e->to, FLOW_GOES_ON))
		return;
	flow_push(f, FLOW_ASYNC, e->from, e->to, &f->in.event_when);
	flow_go(f, e->to);
	flow_use_event(f);
	flow_crossed(f);
}

/* Execution is at the event's FROM: decoding can go on there. */
static void appear_here(struct flow *f)
{
	if (go_on_at(f, f->in.event.from, f->in.event.from, FLOW_GOES_ON) &&
	    f->in.event.kind != EVENT_MARK)
		flow_arrive(f);
}

/* An OVF says where execution goes on, or it does not: then errata SKD010 and APL11 may have lost
 * the FUP or the TIP.PGE, or added a TIP.PGD. */
static void take_overflow(struct flow *f)
{
	f->at.within = f->at.guest = false;
	if (!f->in.event.has_to && !event_off_ahead(&f->reader)) {
		flow_lose(f, FAULT_OVERFLOW);
		return;
	}
	flow_event_gap(f, FAULT_OVERFLOW);
	if (f->in.event.has_to)
		f->in.event.kind = EVENT_TIP;
	else
		flow_use_event(f);
}

static void psb_off(struct flow *f)
{
	flow_forget_returns(f, false);
	f->at.missing = FAULT_NONE;
	if (!f->in.event.has_from) {
		flow_use_event(f);
		f->at.resumed = f->at.within = false;
	} else if (f->at.resumed) {
		enable_at(f, f->in.event.from, FLOW_GOES_ON);
	} else {
		/* Tracing is on and nothing said that it was enabled. */
		flow_push_psb_gap(f, FAULT_STATUS);
	}
}

/* Whether the event in hand is about code in a virtual machine that is not to be walked. */
static bool is_guests(const struct flow *f)
{
	if (!f->in.event.guest || f->config.guests)
		return false;
	switch (f->in.event.kind) {
	case EVENT_ENABLE:
	case EVENT_TIP:
	case EVENT_ASYNC:
	case EVENT_STATUS: return true;
	case EVENT_PSB: return f->in.event.has_from;
	default: return false;
	}
}

static void step_event_off(struct flow *f)
{
	switch (f->in.event.kind) {
	case EVENT_ENABLE:
		if (f->in.event.has_to)
			enable_at(f, f->in.event.to, 0);
		else
			flow_event_gap(f, FAULT_TIP_NO_IP), flow_use_event(f);
		break;
	case EVENT_TIP: appear_at(f, f->in.event.has_to, f->in.event.to); break;
	case EVENT_ASYNC: appear_async(f); break;
	case EVENT_PSB: psb_off(f); break;
	case EVENT_DISABLE:
	case EVENT_ASYNC_OFF:
		if (!f->at.resumed) {
			flow_fail(f, FAULT_PACKET_UNEXPECTED, 0);
			break;
		}
		if (f->at.within)
			flow_mark_off(f);
		flow_use_event(f);
		f->at.resumed = f->at.within = false;
		break;
	case EVENT_END:
		if (f->in.event.fault != FAULT_NONE)
			flow_event_gap(f, f->in.event.fault);
		f->done = true;
		break;
	case EVENT_STATUS:
		if (f->at.resumed && f->in.event.has_from)
			appear_here(f);
		else
			flow_use_event(f);
		break;
	case EVENT_MARK:
		if (f->at.resumed && flow_mark_shows(f))
			appear_here(f);
		else
			flow_mark_here(f);
		break;
	default: flow_step_at_once(f); break;
	}
}

static void take_bad(struct flow *f)
{
	f->at.within = false;
	if (f->config.resume_at_psb) {
		flow_lose(f, f->in.event.fault);
	} else {
		flow_event_gap(f, f->in.event.fault);
		flow_use_event(f);
	}
}

void flow_step_read(struct flow *f)
{
	if (f->in.tnt_n > 0) {
		f->in.tnt_n = 0;
		return;
	}
	switch (f->in.event.kind) {
	case EVENT_MARK: flow_mark_here(f); break;
	case EVENT_OVERFLOW:
		flow_event_gap(f, FAULT_OVERFLOW);
		flow_use_event(f);
		break;
	case EVENT_BAD: take_bad(f); break;
	case EVENT_STOP:
		flow_event_gap(f, FAULT_TRACESTOP);
		flow_use_event(f);
		break;
	case EVENT_END:
		if (f->in.event.fault != FAULT_NONE)
			flow_event_gap(f, f->in.event.fault);
		f->done = true;
		break;
	default: flow_use_event(f); break;
	}
}

void flow_step_off(struct flow *f)
{
	if (f->in.tnt_n > 0) {
		flow_fail(f, FAULT_PACKET_UNEXPECTED, 0);
	} else if (is_guests(f)) {
		f->at.guest = true;
		flow_fail(f, FAULT_GUEST, f->in.event.has_to ? f->in.event.to : f->in.event.from);
	} else {
		step_event_off(f);
	}
}

/* Uses an event that belongs to no instruction. What the walk does next, up to the next decision,
 * may have executed before the event: a CPU that is halted writes CBR when it wakes up. */
static void pass_by(struct flow *f)
{
	uint64_t lo = f->in.past.lo;

	if (f->in.event.kind == EVENT_MARK)
		flow_mark_here(f);
	else
		flow_use_event(f);
	f->in.past.lo = MIN_OF(f->in.past.lo, lo);
}

bool flow_step_at_once(struct flow *f)
{
	switch (f->in.event.kind) {
	case EVENT_NONE: pass_by(f); return true;
	case EVENT_OVERFLOW: take_overflow(f); return true;
	case EVENT_BAD: take_bad(f); return true;
	case EVENT_STOP:
		flow_event_gap(f, FAULT_TRACESTOP);
		flow_use_event(f);
		f->at.resumed = f->at.within = false;
		return true;
	case EVENT_ENABLE:
		/* Tracing is on already: packets are missing in between. */
		flow_fail(f, FAULT_PACKET_UNEXPECTED, f->at.ip);
		return true;
	case EVENT_PSB:
		if (f->in.event.has_from)
			return false;
		flow_fail(f, FAULT_STATUS, f->at.ip);
		return true;
	case EVENT_ASYNC:
	case EVENT_ASYNC_OFF:
		if (f->in.event.has_from)
			return false;
		flow_fail(f, FAULT_TIP_NO_IP, f->at.ip);
		return true;
	case EVENT_STATUS:
		if (f->in.event.has_from)
			return false;
		pass_by(f);
		return true;
	case EVENT_MARK:
		if (f->in.event.bind != EVENT_NOW &&
		    (f->in.event.bind != EVENT_COUNT || f->in.event.n > 0))
			return false;
		pass_by(f);
		return true;
	default: return false;
	}
}

void flow_end(struct flow *f, uint64_t from)
{
	f->at.ip = from;
	if (f->in.event.fault != FAULT_NONE)
		flow_event_gap(f, f->in.event.fault);
	else
		flow_push(f, FLOW_END, from, 0, &f->in.event_when);
	f->done = true;
}

/* The packets before were of another mode than the event says, and no branch changed the mode:
 * packets are missing. */
static void clash(struct flow *f)
{
	f->at.within = true;
	flow_push_psb_gap(f, FAULT_STATUS);
}

/* A PSB in mid-trace: execution goes on, but compressed returns do not reach over a PSB. Where the
 * context changes here, tracing ends and begins in the items. */
static void arrive_psb(struct flow *f)
{
	uint64_t ip = f->in.event.from, context = f->at.context;

	if (!f->config.retstack_libipt)
		flow_forget_returns(f, false);
	f->at.doubt = false;
	f->at.missing = FAULT_NONE;
	if (f->config.context)
		context = f->config.context(f->config.userdata, ip, f->in.event_when.lo,
					    f->in.event_when.hi);
	f->at.in_tx = f->in.event.in_tx;
	if (context == f->at.context && f->in.event.mode == f->at.mode) {
		flow_use_event(f);
		flow_part(f);
		return;
	}
	f->ask.splits = false;
	f->ask.asked = true;
	f->ask.context = context;
	flow_push(f, FLOW_DISABLE, ip, 0, &f->in.event_when)->flags |= FLOW_ASYNC_STOP;
	f->at.enabled = false;
	f->at.resumed = true;
	f->in.event.kind = EVENT_TIP;
	f->in.event.has_to = true;
	f->in.event.to = ip;
}

void flow_ask_again(struct flow *f)
{
	uint64_t context;

	/* The tick's mark ends the run, so that what follows can be code of its own. */
	if (!f->config.context || !f->config.marks || !f->at.enabled ||
	    f->in.event.kind == EVENT_ENABLE)
		return;
	context = f->config.context(f->config.userdata, f->at.ip, f->in.past.lo, f->in.past.hi);
	flow_go(f, f->at.ip); /* a trial may have thrown blocks away */
	flow_part(f);
	if (context == f->at.context || context == FLOW_CONTEXT_LATER)
		return;
	f->ask.next = context;
	f->ask.changes = f->out.full = true;
}

static void arrive_async(struct flow *f)
{
	if (!f->in.event.has_to) {
		flow_fail(f, FAULT_TIP_NO_IP, f->in.event.from);
		return;
	}
	if (!flow_may_cross(f, f->in.event.from, f->in.event.to))
		return;
	flow_push(f, FLOW_ASYNC, f->in.event.from, f->in.event.to, &f->in.event_when);
	f->at.in_tx = f->in.event.in_tx;
	flow_take_mode(f, f->in.event.mode);
	flow_go(f, f->in.event.to);
	flow_use_event(f);
	flow_crossed(f);
}

void flow_leave(struct flow *f)
{
	f->ask.left = f->items[f->out.n_items - 1];
	f->ask.have_left = true;
	flow_use_event(f);
	f->at.enabled = false;
}

void flow_arrive(struct flow *f)
{
	flow_go(f, f->in.event.from);
	switch (f->in.event.kind) {
	case EVENT_ASYNC: arrive_async(f); break;
	case EVENT_ASYNC_OFF:
		/* Erratum SKD022: the instruction did execute. */
		if (f->errata.skd022 && flow_is_vmentry(f)) {
			f->at.run_insns++;
			flow_push(f, FLOW_DISABLE, f->at.ip, 0, &f->in.event_when);
		} else {
			flow_push(f, FLOW_DISABLE, f->at.ip, 0, &f->in.event_when)->flags |=
				FLOW_ASYNC_STOP;
		}
		flow_leave(f);
		break;
	case EVENT_PSB:
		if (f->in.event.clash)
			clash(f);
		else
			arrive_psb(f);
		break;
	case EVENT_MARK: flow_mark_here(f); break;
	case EVENT_END: flow_end(f, f->at.ip); break;
	default: /* EVENT_STATUS */
		if (f->in.event.mode != f->at.mode) {
			clash(f);
			break;
		}
		f->at.in_tx = f->in.event.in_tx;
		flow_use_event(f);
		break;
	}
}
