/*
 * The event reader: knows which packets belong together, nothing about code.
 * SDM volume 3 (edition 083), 33.4.2 "Packet Definitions" (which packet binds to which);
 * where processors differ from it, errata.c.
 */
#include "decoder/event.h"

#include "decoder/sync.h"
#include "proto/base.h"
#include "proto/ptpacket.h"

void event_reader_init(struct event_reader *r, const uint8_t *trace, size_t size, size_t start,
		       size_t stop, struct errata errata)
{
	*r = (struct event_reader){
		.c = {.pos = trace + start, .end = trace + size},
		.trace = trace,
		.stop = trace + stop,
		.errata = errata,
	};
}

static uint64_t offset_of(const struct event_reader *r)
{
	return (uint64_t)(r->c.pos - r->trace);
}

/* CS.L and CS.D as the processor sees them. */
static uint8_t mode_of(const struct packet *p)
{
	if ((p->u.mode.bits & PT_MODE_EXEC_CSL) != 0)
		return INSN_MODE_64;
	return (p->u.mode.bits & PT_MODE_EXEC_CSD) != 0 ? INSN_MODE_32 : INSN_MODE_16;
}

static void forget_pending(struct event_reader *r)
{
	r->mode_waits = r->tx_waits = r->tx_abort = r->fup_taken = false;
}

static void note_packet(struct event_reader *r, const struct packet *p)
{
	r->counts.packets++;
	switch (p->type) {
	case PACKET_CBR: r->counts.cbr++; break;
	case PACKET_PSB: r->counts.psbs++; break;
	case PACKET_OVF: r->counts.overflows++; break;
	case PACKET_TSC:
		if (r->counts.tsc_first == 0)
			r->counts.tsc_first = p->u.tsc.value;
		r->counts.tsc_last = p->u.tsc.value;
		break;
	default: break;
	}
}

static int read_packet(struct event_reader *r, struct packet *ret)
{
	int result = packet_next(&r->c, ret);

	if (result == 0)
		note_packet(r, ret);
	return result;
}

/* Takes back the packet that was just read and began at POS. */
static void unread(struct event_reader *r, const uint8_t *pos, const struct packet *p)
{
	r->c.pos = pos;
	r->counts.packets--;
	r->counts.psbs -= p->type == PACKET_PSB;
	r->counts.overflows -= p->type == PACKET_OVF;
}

/* Packets that may stand between two packets that belong together. */
static bool is_aside(uint8_t type)
{
	switch (type) {
	case PACKET_PAD:
	case PACKET_TSC:
	case PACKET_TMA:
	case PACKET_MTC:
	case PACKET_CYC:
	case PACKET_CBR:
	case PACKET_MNT:
	case PACKET_PIP:
	case PACKET_VMCS: return true;
	default: return false;
	}
}

static void finish(const struct event_reader *r, struct event *e)
{
	e->end = offset_of(r);
	e->mode = r->mode;
	e->in_tx = r->in_tx;
}

static void end_event(struct event_reader *r, struct event *e)
{
	e->kind = EVENT_END;
	finish(r, e);
}

/* Bytes that are no packet: goes to the next PSB. A packet that is cut off ends the trace. */
static void bad_event(struct event_reader *r, int result, struct event *e)
{
	const uint8_t *psb = sync_find(r->c.pos + (result == PACKET_BAD ? 1 : 0), r->c.end);

	forget_pending(r);
	r->c.bip_bytes = 0;
	if (psb == NULL && result == PACKET_SHORT) {
		e->kind = EVENT_END;
		e->fault = FAULT_TRUNCATED;
	} else {
		e->kind = EVENT_BAD;
		e->fault = FAULT_BAD_PACKET;
		r->counts.unknown++;
	}
	r->c.pos = psb != NULL ? psb : r->c.end;
	finish(r, e);
}

/* A packet that cannot stand there; it was put back to be read next. */
static void misplaced_event(struct event_reader *r, struct event *e)
{
	forget_pending(r);
	e->kind = EVENT_BAD;
	e->fault = FAULT_PACKET_UNEXPECTED;
	finish(r, e);
}

static void take_mode(struct event_reader *r)
{
	if (r->mode_waits)
		r->mode = r->next_mode;
	r->mode_waits = false;
}

static void ip_event(struct event_reader *r, const struct packet *p, enum event_kind kind,
		     struct event *e)
{
	e->kind = (uint8_t)kind;
	e->has_to = packet_ip(p, &r->last_ip, &e->to) != 0;
	take_mode(r);
	finish(r, e);
}

/* Erratum psb_fup_before_enable: nothing but status up to a TIP.PGE. */
static bool enable_ahead(const struct event_reader *r)
{
	struct packet_cursor c = r->c;
	struct packet p;

	while (packet_next(&c, &p) == 0) {
		if (p.type == PACKET_TIP_PGE)
			return true;
		if (!is_aside(p.type) && p.type != PACKET_PSBEND && p.type != PACKET_MODE_EXEC &&
		    p.type != PACKET_MODE_TSX)
			return false;
	}
	return false;
}

static void psb_fup(struct event_reader *r, const struct packet *p, struct event *e)
{
	if (r->errata.psb_fup_before_enable && enable_ahead(r))
		return;
	e->has_from = packet_ip(p, &r->last_ip, &e->from) != 0;
}

/* One packet of a PSB+; true: the PSB+ goes on. */
static bool psb_packet(struct event_reader *r, const struct packet *p, struct event *e)
{
	switch (p->type) {
	case PACKET_FUP: psb_fup(r, p, e); return true;
	case PACKET_MODE_EXEC: r->mode = mode_of(p); return true;
	case PACKET_MODE_TSX: r->in_tx = (p->u.mode.bits & 1) != 0; return true;
	default: return is_aside(p->type);
	}
}

/* P ended the PSB+. An OVF does so like PSBEND, and is then an event of its own. */
static void finish_psb(struct event_reader *r, const uint8_t *pos, const struct packet *p,
		       struct event *e)
{
	if (p->type != PACKET_PSBEND)
		unread(r, pos, p);
	if (p->type == PACKET_PSBEND || p->type == PACKET_OVF)
		finish(r, e);
	else
		misplaced_event(r, e);
}

static void psb_event(struct event_reader *r, struct event *e)
{
	struct packet p;

	e->kind = EVENT_PSB;
	r->last_ip = 0;
	forget_pending(r);
	for (;;) {
		const uint8_t *pos = r->c.pos;
		int result = read_packet(r, &p);

		if (result != 0) {
			if (pos >= r->c.end)
				end_event(r, e);
			else
				bad_event(r, result, e);
			return;
		}
		if (psb_packet(r, &p, e))
			continue;
		finish_psb(r, pos, &p, e);
		return;
	}
}

bool event_off_ahead(const struct event_reader *r)
{
	struct packet_cursor c = r->c;
	bool in_psb = false;
	struct packet p;

	while (packet_next(&c, &p) == 0) {
		switch (p.type) {
		case PACKET_TIP_PGE:
		case PACKET_TRACESTOP:
		case PACKET_OVF: return true;
		case PACKET_TNT:
		case PACKET_TIP:
		case PACKET_TIP_PGD:
		case PACKET_FUP: return false;
		case PACKET_PSB: in_psb = true; break;
		case PACKET_PSBEND:
			if (in_psb)
				return true;
			break;
		default: break;
		}
	}
	return true;
}

/* OVF: a FUP behind nothing but timing says where tracing goes on (SDM 33.4.2.16); else it is off.
 */
static bool find_overflow_fup(const struct event_reader *r, const uint8_t **ret_pos)
{
	struct packet_cursor c = r->c;
	const uint8_t *pos = c.pos;
	struct packet p;

	while (packet_next(&c, &p) == 0) {
		if (p.type == PACKET_FUP) {
			*ret_pos = pos;
			return true;
		}
		if (!is_aside(p.type))
			return false;
		pos = c.pos;
	}
	return false;
}

static void overflow_event(struct event_reader *r, struct event *e)
{
	const uint8_t *fup;
	struct packet p;

	e->kind = EVENT_OVERFLOW;
	r->last_ip = 0;
	forget_pending(r);
	if (find_overflow_fup(r, &fup)) {
		while (r->c.pos <= fup)
			read_packet(r, &p); /* cannot fail: they were read before */
		if (!r->errata.ovf_fup_while_off || !event_off_ahead(r))
			e->has_to = packet_ip(&p, &r->last_ip, &e->to) != 0;
	}
	finish(r, e);
}

/* One packet between FUP and TIP; true: the TIP may still come. */
static bool async_packet(struct event_reader *r, const struct packet *p)
{
	if (p->type == PACKET_MODE_EXEC) {
		r->next_mode = mode_of(p);
		r->mode_waits = true;
		return true;
	}
	return p->type == PACKET_EVD || is_aside(p->type);
}

/* A FUP that no packet before it claimed: the source of an asynchronous branch. TIP or TIP.PGD say
 * where it went. */
static void async_event(struct event_reader *r, struct event *e)
{
	struct packet p;

	for (;;) {
		const uint8_t *pos = r->c.pos;
		int result = read_packet(r, &p);

		if (result != 0 && pos >= r->c.end)
			end_event(r, e);
		else if (result != 0)
			bad_event(r, result, e);
		else if (p.type == PACKET_TIP || p.type == PACKET_TIP_PGD)
			ip_event(r, &p, p.type == PACKET_TIP ? EVENT_ASYNC : EVENT_ASYNC_OFF, e);
		else if (async_packet(r, &p))
			continue;
		else {
			unread(r, pos, &p);
			misplaced_event(r, e);
		}
		return;
	}
}

/* Whether a TIP or TIP.PGD belongs to the FUP that was just read. */
static bool tip_ahead(const struct event_reader *r)
{
	struct event_reader ahead = *r;
	struct packet p;

	while (packet_next(&ahead.c, &p) == 0) {
		if (p.type == PACKET_TIP || p.type == PACKET_TIP_PGD)
			return true;
		if (!async_packet(&ahead, &p))
			return false;
	}
	return false;
}

/* A transaction begins or ends at the FUP; or MODE.Exec changed there without a branch, which
 * processors with event tracing do for the interrupt flag. */
static bool is_status(const struct event_reader *r)
{
	return (r->tx_waits && !r->tx_abort) || (r->mode_waits && !tip_ahead(r));
}

/* True: *e is an event; false: the FUP only said where something happened that is not followed. */
static bool fup_event(struct event_reader *r, const struct packet *p, struct event *e)
{
	e->has_from = packet_ip(p, &r->last_ip, &e->from) != 0;
	if (r->fup_taken) {
		r->fup_taken = false;
		return false;
	}
	if (is_status(r)) {
		e->kind = EVENT_STATUS;
		take_mode(r);
		finish(r, e);
	} else {
		async_event(r, e);
	}
	r->tx_waits = false;
	return true;
}

/* MODE.TSX binds to the FUP behind it while tracing is on; off, none follows. */
static void tsx_packet(struct event_reader *r, const struct packet *p)
{
	r->in_tx = (p->u.mode.bits & 1) != 0;
	r->tx_abort = (p->u.mode.bits & 2) != 0;
	r->tx_waits = true;
}

/* The packets that only prepare others. */
static void note_prefix(struct event_reader *r, const struct packet *p)
{
	switch (p->type) {
	case PACKET_MODE_EXEC:
		r->next_mode = mode_of(p);
		r->mode_waits = true;
		break;
	case PACKET_MODE_TSX: tsx_packet(r, p); break;
	case PACKET_PTW: r->fup_taken = r->fup_taken || p->u.ptw.ip != 0; break;
	case PACKET_EXSTOP: r->fup_taken = r->fup_taken || p->u.exstop.ip != 0; break;
	case PACKET_BEP: r->fup_taken = r->fup_taken || p->u.bep.ip != 0; break;
	case PACKET_CFE: r->fup_taken = r->fup_taken || p->u.cfe.ip != 0; break;
	default: break;
	}
}

/* True: the packet, with those behind it that belong to it, is an event. */
static bool packet_event(struct event_reader *r, const struct packet *p, struct event *e)
{
	switch (p->type) {
	case PACKET_TNT:
		e->kind = EVENT_TNT;
		e->bits = p->u.tnt.bits;
		e->n = p->u.tnt.n;
		finish(r, e);
		return true;
	case PACKET_TIP: ip_event(r, p, EVENT_TIP, e); return true;
	case PACKET_TIP_PGE:
		r->tx_waits = false;
		ip_event(r, p, EVENT_ENABLE, e);
		return true;
	case PACKET_TIP_PGD: ip_event(r, p, EVENT_DISABLE, e); return true;
	case PACKET_FUP: return fup_event(r, p, e);
	case PACKET_PSB: psb_event(r, e); return true;
	case PACKET_OVF: overflow_event(r, e); return true;
	case PACKET_TRACESTOP:
		e->kind = EVENT_STOP;
		finish(r, e);
		return true;
	default: note_prefix(r, p); return false;
	}
}

/* At the reader's end: the PSB there, if one is, says how far the code before it ran. */
static void stop_event(struct event_reader *r, struct event *e)
{
	struct event_reader ahead = *r;
	struct packet p;

	e->offset = offset_of(r);
	if (r->c.pos < r->c.end && packet_next(&ahead.c, &p) == 0 && p.type == PACKET_PSB)
		psb_event(&ahead, e);
	e->fault = FAULT_NONE;
	end_event(r, e);
}

void event_next(struct event_reader *r, struct event *ret)
{
	struct packet p;

	*ret = (struct event){0};
	do {
		int result;

		if (r->c.pos >= r->stop) {
			*ret = (struct event){0};
			stop_event(r, ret);
			return;
		}
		ret->offset = offset_of(r);
		result = read_packet(r, &p);
		if (result != 0) {
			bad_event(r, result, ret);
			return;
		}
	} while (!packet_event(r, &p, ret));
}
