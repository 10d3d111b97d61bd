/*
 * Turns packets that do not branch into marks, which may wait for a FUP, TIP or EXSTOP.
 *
 * SDM volume 3 (edition 083), 33.4.2, at the packet's name; for CFE and EVD 33.5 "Tracing
 * Post-Processor ... Event Trace".
 */
#include "decoder/packet/event_read.h"
#include "proto/base.h"
#include "proto/perf/ptpacket.h"

/* One packet adds at most so many events to the queue. */
#define RESERVE 4u

static struct flow_mark mark_of(const struct event_reader *r, uint8_t kind, uint64_t value)
{
	return (struct flow_mark){
		.kind = kind, .value = value, .offset = (uint64_t)(r->at - r->trace)};
}

static bool has_room(const struct event_reader *r)
{
	return r->queue_head + r->queue_n + RESERVE < EVENT_QUEUE;
}

static struct event *push_mark(struct event_reader *r, const struct flow_mark *m,
			       enum event_bind bind)
{
	struct event *e = event_push(r, EVENT_MARK);

	if (!e)
		return NULL;
	r->marks[e->mark] = *m;
	e->bind = (uint8_t)bind;
	return e;
}

static void push_now(struct event_reader *r, uint8_t kind, uint64_t value, uint8_t flags)
{
	struct flow_mark m = mark_of(r, kind, value);

	m.flags = flags;
	push_mark(r, &m, EVENT_NOW);
}

static void push_at(struct event_reader *r, const struct flow_mark *m, enum event_bind bind,
		    bool has_from, uint64_t from)
{
	struct event *e = push_mark(r, m, has_from ? bind : EVENT_NOW);

	if (!e || !has_from)
		return;
	e->has_from = true;
	e->from = from;
	r->marks[e->mark].ip = from;
	r->marks[e->mark].flags |= FLOW_MARK_HAS_IP;
}

void event_forget(struct event_reader *r)
{
	r->n_waits = 0;
	r->mode_waits = false;
	r->evd_flags = 0;
}

/* Whether W makes no mark, as a MODE.TSX that changes nothing. */
static bool is_silent(const struct event_wait *w)
{
	return w->rule == RULE_NOTHING || w->mark.kind == FLOW_MARK_N_;
}

void event_settle(struct event_reader *r)
{
	for (unsigned int i = 0; i < r->n_waits; i++) {
		if (!is_silent(&r->waits[i]))
			push_mark(r, &r->waits[i].mark, EVENT_NOW);
	}
	r->n_waits = 0;
}

/* Settles W at a FUP. Returns whether the FUP is W's. */
static bool settle_one(struct event_reader *r, const struct event_wait *w, bool has_from,
		       uint64_t from, bool *ret_abort)
{
	bool abort = w->mark.kind == FLOW_MARK_TSX && w->mark.value == FLOW_TSX_ABORT;
	enum event_bind bind = w->rule == RULE_BEHIND ? EVENT_BEHIND : EVENT_BEFORE;

	if (w->rule == RULE_PWRE || w->rule == RULE_MWAIT) {
		push_mark(r, &w->mark, EVENT_NOW);
		return false;
	}
	if (!is_silent(w))
		push_at(r, &w->mark, bind, has_from, from);
	if (w->rule == RULE_TSX && abort)
		*ret_abort = true;
	if (w->rule == RULE_TSX && !abort) {
		/* A transaction begins or ends at FROM without a branch. */
		struct event *e = event_push(r, EVENT_STATUS);

		if (e) {
			e->has_from = has_from;
			e->from = from;
		}
	}
	return w->rule != RULE_CFE && !abort;
}

bool event_settle_fup(struct event_reader *r, bool has_from, uint64_t from, bool *ret_abort)
{
	bool owned = false;

	for (unsigned int i = 0; i < r->n_waits; i++)
		owned |= settle_one(r, &r->waits[i], has_from, from, ret_abort);
	r->n_waits = 0;
	return owned;
}

void event_settle_branch(struct event_reader *r, bool off)
{
	for (unsigned int i = 0; i < r->n_waits; i++) {
		struct event_wait *w = &r->waits[i];

		if (off)
			w->mark.flags |= FLOW_MARK_OF_BRANCH;
		if (!is_silent(w))
			push_mark(r, &w->mark, EVENT_NOW);
	}
	r->n_waits = 0;
}

static void push_mode(struct event_reader *r, uint8_t kind, uint64_t value, const struct event *at)
{
	struct flow_mark m = mark_of(r, kind, value);

	if (at && at->has_from) {
		m.ip = at->from;
		m.flags = FLOW_MARK_HAS_IP;
	}
	push_mark(r, &m, EVENT_NOW);
}

void event_take_mode(struct event_reader *r, const struct event *at)
{
	if (!r->mode_waits)
		return;
	r->mode_waits = false;
	if (!r->mode_known || r->mode != r->next_mode)
		push_mode(r, FLOW_MARK_MODE, r->next_mode, at);
	if (!r->iflag_known || r->iflag != r->next_iflag)
		push_mode(r, FLOW_MARK_IFLAG, r->next_iflag, at);
	r->mode = r->next_mode;
	r->iflag = r->next_iflag;
	r->mode_known = r->iflag_known = true;
}

static void wait_for(struct event_reader *r, enum event_rule rule, const struct flow_mark *m)
{
	if (r->n_waits == EVENT_WAITS)
		event_settle(r);
	r->waits[r->n_waits++] = (struct event_wait){(uint8_t)rule, *m};
}

static void note_mode(struct event_reader *r, const struct packet *p)
{
	r->next_mode = event_mode_of(p);
	r->next_iflag = event_iflag_of(p);
	r->mode_waits = true;
}

/* A MODE.TSX binds to the FUP behind it while tracing is on. While tracing is off, no FUP follows.
 */
static void note_tsx(struct event_reader *r, const struct packet *p)
{
	bool in_tx = (p->u.mode.bits & 1) != 0, abort = (p->u.mode.bits & 2) != 0;
	struct flow_mark m = mark_of(r, FLOW_MARK_TSX, FLOW_TSX_BEGIN);

	event_settle(r);
	if (abort)
		m.value = FLOW_TSX_ABORT;
	else if (in_tx == r->in_tx)
		m.kind = FLOW_MARK_N_;
	else if (!in_tx)
		m.value = FLOW_TSX_COMMIT;
	r->in_tx = in_tx;
	wait_for(r, RULE_TSX, &m);
}

static void note_paging(struct event_reader *r, const struct packet *p, enum event_bind bind,
			uint8_t flags)
{
	struct flow_mark m = mark_of(r, FLOW_MARK_PAGING, p->u.pip.cr3);

	m.flags = flags | (p->u.pip.nr != 0 ? FLOW_MARK_NON_ROOT : 0);
	r->guest = p->u.pip.nr != 0;
	r->cr3 = p->u.pip.cr3;
	r->cr3_known = true;
	push_mark(r, &m, bind);
}

static void note_vmcs(struct event_reader *r, const struct packet *p, enum event_bind bind,
		      uint8_t flags)
{
	struct flow_mark m = mark_of(r, FLOW_MARK_VMCS, p->u.vmcs.value);

	m.flags = flags;
	r->vmcs = p->u.vmcs.value;
	r->vmcs_known = true;
	push_mark(r, &m, bind);
}

static void note_cbr(struct event_reader *r, const struct packet *p, uint8_t flags)
{
	/* If EXSTOP came before the PWRE, the PWRE waits for nothing. */
	if (r->n_waits > 0 && r->waits[0].rule == RULE_PWRE)
		event_settle(r);
	r->cbr = p->u.cbr.ratio;
	r->cbr_known = true;
	push_now(r, FLOW_MARK_CBR, r->cbr, flags);
}

static void note_ptw(struct event_reader *r, const struct packet *p)
{
	struct flow_mark m = mark_of(r, FLOW_MARK_PTWRITE, p->u.ptw.payload);

	m.size = p->u.ptw.bytes;
	event_settle(r);
	if (p->u.ptw.ip != 0)
		wait_for(r, RULE_BEHIND, &m);
	else
		push_mark(r, &m, EVENT_PTWRITE);
}

/* EXSTOP says where execution stopped. Its packet follows those of MWAIT and PWRE that led to the
 * stop; its mark stands between theirs. */
static void note_exstop(struct event_reader *r, const struct packet *p)
{
	struct flow_mark m = mark_of(r, FLOW_MARK_EXSTOP, 0);
	struct event_wait old[EVENT_WAITS];
	unsigned int i, n = r->n_waits;

	for (i = 0; i < n; i++)
		old[i] = r->waits[i];
	r->n_waits = 0;
	for (i = 0; i < n; i++) {
		if (old[i].rule != RULE_PWRE)
			wait_for(r, old[i].rule == RULE_MWAIT ? RULE_BEFORE : old[i].rule,
				 &old[i].mark);
	}
	wait_for(r, RULE_BEFORE, &m);
	for (i = 0; i < n; i++) {
		if (old[i].rule == RULE_PWRE)
			wait_for(r, RULE_PWRE, &old[i].mark);
	}
	if (p->u.exstop.ip == 0)
		event_settle(r);
}

enum { EVD_CR2 = 0, EVD_VMXQ = 1, EVD_VMXR = 2 };
enum {
	CFE_INTR = 1,
	CFE_IRET = 2,
	CFE_VMENTRY = 7,
	CFE_VMEXIT = 8,
	CFE_VMEXIT_INTR = 9,
	CFE_UIRET = 13
};

/* CR2 belongs to a page fault, the others to a VM exit, so CR2 never comes with another. Unknown
 * types are ignored. */
static bool note_evd(struct event_reader *r, const struct packet *p)
{
	static const uint8_t flags[] = {FLOW_MARK_CR2, FLOW_MARK_VMXQ, FLOW_MARK_VMXR};
	uint8_t type = p->u.evd.type;

	if (type > EVD_VMXR)
		return true;
	if (r->evd_flags != 0 && (type == EVD_CR2 || (r->evd_flags & FLOW_MARK_CR2) != 0))
		return false;
	r->evd[type] = p->u.evd.value;
	r->evd_flags |= flags[type];
	return true;
}

/* Some events are instructions that executed. For the others the FUP names the instruction that did
 * not execute. */
static enum event_rule cfe_rule(const struct packet *p)
{
	uint8_t type = p->u.cfe.type;

	if (p->u.cfe.ip == 0)
		return RULE_CFE;
	if (type == CFE_IRET || type == CFE_UIRET || type == CFE_VMENTRY)
		return RULE_BEHIND;
	return RULE_BEFORE;
}

static bool note_cfe(struct event_reader *r, const struct packet *p)
{
	struct flow_mark m = mark_of(r, FLOW_MARK_CFE, p->u.cfe.vector);
	uint8_t type = p->u.cfe.type;
	bool is_exit = type == CFE_VMEXIT || type == CFE_VMEXIT_INTR;

	/* The EVDs that wait must belong to an event of this type. */
	if (r->evd_flags != 0 &&
	    !((r->evd_flags & FLOW_MARK_CR2) != 0 ? type == CFE_INTR : is_exit))
		return false;
	event_settle(r);
	m.type = type;
	m.flags = r->evd_flags;
	for (unsigned int i = 0; i < ARRAY_SIZE(m.evd); i++)
		m.evd[i] = r->evd[i];
	r->evd_flags = 0;
	if (type == CFE_VMENTRY)
		r->guest = true;
	else if (is_exit)
		r->guest = false;
	wait_for(r, cfe_rule(p), &m);
	return true;
}

static void note_trig(struct event_reader *r, const struct packet *p)
{
	struct flow_mark m = mark_of(r, FLOW_MARK_TRIG, p->u.trig.trbv);
	struct event *e;

	m.type = p->u.trig.mult;
	m.size = p->u.trig.has_icnt;
	m.evd[0] = p->u.trig.icnt;
	event_settle(r);
	if (p->u.trig.ip != 0) {
		wait_for(r, RULE_BEFORE, &m);
		return;
	}
	e = push_mark(r, &m, m.size != 0 ? EVENT_COUNT : EVENT_NOW);
	if (e)
		e->n = p->u.trig.icnt;
}

static void note_bip(struct event_reader *r, const struct packet *p)
{
	struct flow_mark m = mark_of(r, FLOW_MARK_PEBS, p->u.bip.payload);

	m.type = r->bbp_type;
	m.id = p->u.bip.id;
	m.size = p->u.bip.bytes;
	event_settle(r);
	push_mark(r, &m, EVENT_NOW);
}

bool event_note(struct event_reader *r, const struct packet *p)
{
	struct flow_mark m;

	switch (p->type) {
	case PACKET_MODE_EXEC: note_mode(r, p); break;
	case PACKET_MODE_TSX: note_tsx(r, p); break;
	case PACKET_PIP: note_paging(r, p, EVENT_CR3, 0); break;
	case PACKET_VMCS: note_vmcs(r, p, EVENT_VMCS, 0); break;
	case PACKET_CBR: note_cbr(r, p, 0); break;
	case PACKET_MNT: push_now(r, FLOW_MARK_MNT, p->u.mnt.value, 0); break;
	case PACKET_PTW: note_ptw(r, p); break;
	case PACKET_MWAIT:
		m = mark_of(r, FLOW_MARK_MWAIT, p->u.mwait.value);
		event_settle(r);
		wait_for(r, RULE_MWAIT, &m);
		break;
	case PACKET_PWRE:
		m = mark_of(r, FLOW_MARK_PWRE, p->u.pwre.value);
		wait_for(r, RULE_PWRE, &m);
		break;
	case PACKET_PWRX:
		event_settle(r);
		push_now(r, FLOW_MARK_PWRX, p->u.pwrx.value, 0);
		break;
	case PACKET_EXSTOP: note_exstop(r, p); break;
	case PACKET_EVD: return note_evd(r, p);
	case PACKET_CFE: return note_cfe(r, p);
	case PACKET_TRIG: note_trig(r, p); break;
	case PACKET_BBP: r->bbp_type = p->u.bbp.type; break;
	case PACKET_BIP: note_bip(r, p); break;
	case PACKET_BEP:
		event_settle(r);
		m = (struct flow_mark){.kind = FLOW_MARK_N_};
		if (p->u.bep.ip != 0)
			wait_for(r, RULE_NOTHING, &m);
		break;
	default: break; /* timing; a PSBEND without a PSB */
	}
	return true;
}

bool event_note_within(struct event_reader *r, const struct packet *p)
{
	if (!has_room(r))
		return event_is_timing(p->type);
	switch (p->type) {
	case PACKET_MODE_EXEC: note_mode(r, p); return true;
	case PACKET_PIP: note_paging(r, p, EVENT_NOW, 0); return true;
	case PACKET_VMCS: note_vmcs(r, p, EVENT_NOW, 0); return true;
	case PACKET_CBR: note_cbr(r, p, 0); return true;
	case PACKET_MNT: push_now(r, FLOW_MARK_MNT, p->u.mnt.value, 0); return true;
	case PACKET_EVD: return note_evd(r, p);
	default: return event_is_timing(p->type);
	}
}

bool event_note_psb(struct event_reader *r, const struct packet *p)
{
	if (!has_room(r))
		return event_is_timing(p->type);
	switch (p->type) {
	case PACKET_PIP:
		if (r->cr3_known && r->cr3 == p->u.pip.cr3 && r->guest == (p->u.pip.nr != 0))
			return true;
		note_paging(r, p, EVENT_NOW, FLOW_MARK_STATUS);
		return true;
	case PACKET_VMCS:
		if (!r->vmcs_known || r->vmcs != p->u.vmcs.value)
			note_vmcs(r, p, EVENT_NOW, FLOW_MARK_STATUS);
		return true;
	case PACKET_CBR:
		if (!r->cbr_known || r->cbr != p->u.cbr.ratio)
			note_cbr(r, p, FLOW_MARK_STATUS);
		return true;
	case PACKET_MNT: push_now(r, FLOW_MARK_MNT, p->u.mnt.value, 0); return true;
	default: return event_is_timing(p->type);
	}
}
