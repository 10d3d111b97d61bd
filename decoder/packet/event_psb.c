/*
 * Reads PSB+ and overflows, which set the state of a trace anew.
 *
 * SDM volume 3 (edition 083), 33.4.2.17 "PSB Packet", 33.4.2.16 "Overflow Packet".
 */
#include "decoder/packet/event_read.h"
#include "proto/base.h"

/* Takes one packet of a PSB+. Returns whether the PSB+ goes on. */
static bool read_psb_packet(struct event_reader *r, const struct packet *p, struct event *e)
{
	switch (p->type) {
	case PACKET_FUP:
		if (!r->errata.bdm70 || !event_enable_ahead(r))
			e->has_from = packet_ip(p, &r->last_ip, &e->from) != 0;
		return true;
	case PACKET_MODE_EXEC:
		e->clash = r->mode_known && r->mode != event_mode_of(p);
		e->bits = (uint64_t)(r->at - r->trace);
		r->mode = event_mode_of(p);
		r->iflag = event_iflag_of(p);
		r->mode_known = r->iflag_known = true;
		return true;
	case PACKET_MODE_TSX: r->in_tx = (p->u.mode.bits & 1) != 0; return true;
	default: return event_note_psb(r, p);
	}
}

/* Reads the PSB+ behind its PSB. Its TSC was judged before (event_doubt_psb), when it was known
 * whether it is that of a virtual machine. */
static void read_psb_plus(struct event_reader *r)
{
	struct event *e = event_push(r, EVENT_PSB);
	struct packet p;

	do {
		int result = event_read(r, &p);

		if (result != 0) {
			event_unreadable(r, result, e);
			return;
		}
	} while (read_psb_packet(r, &p, e));
	if (p.type == PACKET_PSBEND) {
		event_finish(r, e);
	} else if (p.type == PACKET_OVF) {
		/* An OVF ends the PSB+ as PSBEND does, and is then an event of its own. */
		event_unread(r, &p);
		event_finish(r, e);
		/* The FUP of the PSB+ may be among the lost packets. */
		if (!e->has_from)
			e->kind = EVENT_NONE;
	} else {
		event_misplaced(r, &p, e);
	}
	r->timed = false;
}

void event_read_psb(struct event_reader *r)
{
	uint64_t time;

	event_settle(r);
	event_forget(r);
	r->last_ip = 0;
	if (event_doubt_psb(r))
		return;
	time = r->time;
	read_psb_plus(r);
	r->time = time;
	r->back = false;
}

/* Erratum SKD010: the FUP may be that of an asynchronous branch, because the OVF's is missing. If a
 * TIP follows with no decision before it, execution is at the TIP's target in either case. */
static void read_overflow_branch(struct event_reader *r, struct packet *p)
{
	uint64_t from;

	packet_ip(p, &r->last_ip, &from);
	/* This does not fail: event_branch_ahead() has read the packets. */
	while (event_read(r, p) == 0 && p->type != PACKET_TIP && p->type != PACKET_TIP_PGD)
		event_note_within(r, p);
	event_take_mode(r, NULL);
}

static bool goes_on(struct event_reader *r, const struct packet *p)
{
	if (p->type == PACKET_FUP)
		return !r->errata.apl12 || !event_off_ahead(r);
	return p->type == PACKET_TIP;
}

/* Reads up to the FUP, which says where tracing goes on. A PSB+ may stand before the FUP. */
static void read_overflow_fup(struct event_reader *r, struct event *e)
{
	uint64_t offset = e->offset, time = r->time;
	struct event none = {0};
	bool in_psb = false;
	struct packet p;

	/* The packets before the FUP precede the point where tracing goes on: their marks come
	 * first. */
	r->queue_n--;
	/* This does not fail: event_fup_ahead() has read the packets. */
	while (event_read(r, &p) == 0 && p.type != PACKET_FUP) {
		if (p.type == PACKET_PSB)
			r->last_ip = 0;
		if (in_psb && p.type != PACKET_PSBEND)
			read_psb_packet(r, &p, &none);
		else
			event_note_within(r, &p);
		in_psb = p.type == PACKET_PSB || (in_psb && p.type != PACKET_PSBEND);
	}
	if (p.type == PACKET_FUP && r->errata.skd010 && event_branch_ahead(r))
		read_overflow_branch(r, &p);
	r->time = time;
	r->back = false;
	e = event_push(r, EVENT_OVERFLOW);
	e->offset = offset;
	e->has_to = packet_ip(&p, &r->last_ip, &e->to) != 0 && goes_on(r, &p);
	event_finish(r, e);
}

void event_read_overflow(struct event_reader *r)
{
	struct event *e;

	event_settle(r);
	event_forget(r);
	r->last_ip = 0;
	r->mode_known = r->iflag_known = r->in_tx = false;
	e = event_push(r, EVENT_OVERFLOW);
	r->fup_owed = !event_fup_ahead(r);
	if (!r->fup_owed)
		read_overflow_fup(r, e);
}
