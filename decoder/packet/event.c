/*
 * The event reader, and the packets that branch.
 *
 * The reader knows which packets belong together (SDM volume 3, edition 083, 33.4.2 "Packet
 * Definitions"; errata.c where processors differ), and nothing about code.
 */
#include "decoder/packet/event.h"

#include <assert.h>

#include "decoder/packet/event_read.h"
#include "proto/base.h"
#include "proto/perf/ptpacket.h"

uint8_t event_quirks(const struct errata *e)
{
	return (uint8_t)((e->skd007 ? PACKET_SKD007 : 0) | (e->skz84 ? PACKET_SKZ84 : 0));
}

void event_reader_init(struct event_reader *r, const uint8_t *trace, size_t size, size_t start,
		       size_t stop, struct errata errata)
{
	assert(start <= size && stop <= size);
	*r = (struct event_reader){
		.c = {.pos = trace + start, .end = trace + size, .quirks = event_quirks(&errata)},
		.trace = trace,
		.stop = trace + stop,
		.at = trace + start,
		.errata = errata,
	};
}

static uint64_t offset_of(const struct event_reader *r)
{
	return (uint64_t)(r->c.pos - r->trace);
}

uint8_t event_mode_of(const struct packet *p)
{
	if ((p->u.mode.bits & PT_MODE_EXEC_CSL) != 0)
		return INSN_MODE_64;
	return (p->u.mode.bits & PT_MODE_EXEC_CSD) != 0 ? INSN_MODE_32 : INSN_MODE_16;
}

bool event_iflag_of(const struct packet *p)
{
	return (p->u.mode.bits & PT_MODE_EXEC_IFLAG) != 0;
}

static void order_packet(struct event_reader *r, const struct packet *p)
{
	uint8_t n;

	switch (p->type) {
	case PACKET_TNT:
		n = p->u.tnt.n;
		r->prompt |= r->order == ORDER_PARTIAL_TIP;
		r->order = n == PT_TNT8_MAX || n == PT_TNT64_MAX ? ORDER_FULL : ORDER_PARTIAL;
		break;
	case PACKET_TIP:
		if (r->order == ORDER_FULL)
			r->order = ORDER_FULL_TIP;
		else if (r->order == ORDER_PARTIAL)
			r->order = ORDER_PARTIAL_TIP;
		break;
	case PACKET_PAD:
	case PACKET_CYC: break;
	default: r->order = ORDER_OTHER; break;
	}
}

static void count_packet(struct event_reader *r, const struct packet *p)
{
	r->counts.packets++;
	order_packet(r, p);
	switch (p->type) {
	case PACKET_CBR: r->counts.cbr++; break;
	case PACKET_PSB: r->counts.psbs++; break;
	case PACKET_OVF: r->counts.overflows++; break;
	case PACKET_TSC:
		if (r->counts.tsc_first == 0)
			r->counts.tsc_first = p->u.tsc.value;
		r->counts.tsc_last = p->u.tsc.value;
		r->timed = true;
		if (r->guest)
			break;
		r->back = event_is_earlier(p->u.tsc.value, r->time);
		r->time = MAX_OF(r->time, p->u.tsc.value);
		break;
	case PACKET_MTC:
	case PACKET_CYC: r->timed = true; break;
	default: break;
	}
}

int event_read(struct event_reader *r, struct packet *ret)
{
	int result;

	r->at = r->c.pos;
	result = packet_next(&r->c, ret);
	if (result == 0)
		count_packet(r, ret);
	return result;
}

void event_unread(struct event_reader *r, const struct packet *p)
{
	r->c.pos = r->at;
	r->counts.packets--;
	r->counts.psbs -= p->type == PACKET_PSB;
	r->counts.overflows -= p->type == PACKET_OVF;
}

bool event_is_timing(uint8_t type)
{
	switch (type) {
	case PACKET_PAD:
	case PACKET_TSC:
	case PACKET_TMA:
	case PACKET_MTC:
	case PACKET_CYC:
	case PACKET_INVALID: return true;
	default: return false;
	}
}

void event_finish(const struct event_reader *r, struct event *e)
{
	e->last = (uint64_t)(r->at - r->trace);
	e->end = offset_of(r);
	e->mode = r->mode;
	e->in_tx = r->in_tx;
	e->guest = r->guest;
}

struct event *event_push(struct event_reader *r, enum event_kind kind)
{
	unsigned int slot = r->queue_head + r->queue_n;
	struct event *e = &r->queue[slot];

	if (slot >= EVENT_QUEUE)
		return NULL;
	*e = (struct event){.kind = (uint8_t)kind, .mark = (uint8_t)slot};
	e->offset = (uint64_t)(r->at - r->trace);
	event_finish(r, e);
	r->queue_n++;
	return e;
}

void event_unreadable(struct event_reader *r, int result, struct event *e)
{
	const uint8_t *psb = sync_find(r->c.pos + (result == PACKET_BAD ? 1 : 0), r->c.end);

	event_forget(r);
	if (r->c.pos >= r->c.end) {
		e->kind = EVENT_END;
		event_finish(r, e);
		return;
	}
	e->has_from = e->has_to = false;
	r->c.bip_bytes = 0;
	r->mode_known = r->iflag_known = false;
	if (!psb && result == PACKET_SHORT) {
		e->kind = EVENT_END;
		e->fault = FAULT_TRUNCATED;
	} else {
		e->kind = EVENT_BAD;
		e->fault = FAULT_BAD_PACKET;
		r->counts.unknown++;
	}
	r->c.pos = psb ? psb : r->c.end;
	event_finish(r, e);
}

void event_misplaced(struct event_reader *r, const struct packet *p, struct event *e)
{
	event_forget(r);
	event_finish(r, e);
	event_unread(r, p);
	e->kind = EVENT_BAD;
	e->fault = FAULT_PACKET_UNEXPECTED;
	e->has_from = e->has_to = false;
	e->end = offset_of(r);
}

/* Reads the packets between FUP and TIP, whose marks stand behind the branch. True: P is the TIP.
 */
static bool read_to_tip(struct event_reader *r, struct packet *p, struct event *e)
{
	for (;;) {
		int result = event_read(r, p);

		if (result != 0) {
			event_unreadable(r, result, e);
			return false;
		}
		if (p->type == PACKET_TIP || p->type == PACKET_TIP_PGD)
			return true;
		if (p->type == PACKET_OVF) {
			/* The TIP is lost. Execution came to the FUP's IP. */
			event_forget(r);
			event_unread(r, p);
			e->kind = EVENT_STATUS;
			event_finish(r, e);
			return false;
		}
		if (!event_note_within(r, p)) {
			event_misplaced(r, p, e);
			return false;
		}
	}
}

static void take_ip(struct event_reader *r, const struct packet *p, struct event *e)
{
	e->has_to = packet_ip(p, &r->last_ip, &e->to) != 0;
}

/* Reads an asynchronous branch. Its source is a FUP that belongs to no packet before it; a TIP or
 * TIP.PGD holds its target. */
static void read_async(struct event_reader *r, bool has_from, uint64_t from, bool abort)
{
	struct event *e = event_push(r, EVENT_ASYNC);
	struct packet p;

	e->has_from = has_from;
	e->from = from;
	e->abort = abort;
	if (!read_to_tip(r, &p, e))
		return;
	if (p.type == PACKET_TIP_PGD)
		e->kind = EVENT_ASYNC_OFF;
	take_ip(r, &p, e);
	event_take_mode(r, NULL);
	event_finish(r, e);
}

/* Reads a FUP that is no branch: an OVF's, or a MODE.Exec's, with which processors with event
 * tracing say that the interrupt flag changed. */
static void read_status(struct event_reader *r, bool has_from, uint64_t from)
{
	struct event *e = event_push(r, EVENT_STATUS);

	e->has_from = has_from;
	e->from = from;
	event_take_mode(r, e);
	event_finish(r, e);
}

/* Whether the FUP read last is that of the MODE.Exec before it. An asynchronous branch has its
 * MODE.Exec between FUP and TIP (SDM volume 3, "Packet Generation Scenarios"), but one in front is
 * believed if it changes the mode, which nothing but a branch can do. */
static bool is_mode_fup(const struct event_reader *r)
{
	return r->mode_waits && !(r->mode_known && r->mode != r->next_mode);
}

static void read_fup(struct event_reader *r, const struct packet *p)
{
	uint64_t from = 0;
	bool has_from = packet_ip(p, &r->last_ip, &from) != 0, abort = false;

	if (event_settle_fup(r, has_from, from, &abort))
		return;
	/* The FUP belongs to the overflow, unless a TIP shows an asynchronous branch: processors
	 * differ in whether another FUP follows a PSB+ with a FUP. */
	if (is_mode_fup(r) || ((r->fup_owed || r->mode_waits) && !event_tip_ahead(r)))
		read_status(r, has_from, from);
	else
		read_async(r, has_from, from, abort);
}

/* Whether a TIP may be deferred: decisions stand before it, and no TIP has proved to be prompt. */
static bool is_late(const struct event_reader *r)
{
	return r->order != ORDER_OTHER && !r->prompt;
}

/* Reads a TIP, TIP.PGE or TIP.PGD, for which other packets may wait. */
static void read_branch(struct event_reader *r, const struct packet *p, enum event_kind kind)
{
	struct event *e;

	if (kind == EVENT_ENABLE)
		event_settle(r);
	e = event_push(r, kind);
	take_ip(r, p, e);
	e->late = is_late(r);
	e->timed = r->timed;
	event_settle_branch(r, kind == EVENT_DISABLE);
	event_take_mode(r, NULL);
	event_finish(r, e);
}

/* The same while nothing waits. */
static void read_plain(struct event_reader *r, const struct packet *p, enum event_kind kind,
		       struct event *e)
{
	e->kind = (uint8_t)kind;
	take_ip(r, p, e);
	e->late = is_late(r);
	event_finish(r, e);
}

static void read_tnt(struct event_reader *r, const struct packet *p, struct event *e)
{
	e->kind = EVENT_TNT;
	e->bits = p->u.tnt.bits;
	e->n = p->u.tnt.n;
	event_finish(r, e);
}

static void read_queued(struct event_reader *r, const struct packet *p)
{
	bool owed = r->fup_owed &&
		    (p->type == PACKET_PSB || event_is_timing(p->type) || p->type == PACKET_CBR);
	struct event *e;

	switch (p->type) {
	case PACKET_TNT:
		event_settle(r);
		e = event_push(r, EVENT_TNT);
		read_tnt(r, p, e);
		e->timed = r->timed;
		break;
	case PACKET_TIP: read_branch(r, p, EVENT_TIP); break;
	case PACKET_TIP_PGE: read_branch(r, p, EVENT_ENABLE); break;
	case PACKET_TIP_PGD: read_branch(r, p, EVENT_DISABLE); break;
	case PACKET_FUP: read_fup(r, p); break;
	case PACKET_PSB: event_read_psb(r); break;
	case PACKET_OVF: event_read_overflow(r); break;
	case PACKET_TRACESTOP:
		event_settle(r);
		event_push(r, EVENT_STOP);
		break;
	default:
		if (!event_note(r, p))
			event_misplaced(r, p, event_push(r, EVENT_BAD));
		break;
	}
	if (p->type != PACKET_OVF)
		r->fup_owed = r->fup_owed && owed;
}

/* Reads the most frequent packets, while nothing waits. Returns whether *e is an event. */
static bool read_simple(struct event_reader *r, const struct packet *p, struct event *e)
{
	switch (p->type) {
	case PACKET_TNT: read_tnt(r, p, e); return true;
	case PACKET_TIP: read_plain(r, p, EVENT_TIP, e); return true;
	case PACKET_TIP_PGE: read_plain(r, p, EVENT_ENABLE, e); return true;
	case PACKET_TIP_PGD: read_plain(r, p, EVENT_DISABLE, e); return true;
	default: read_queued(r, p); return false;
	}
}

/* Makes the event at the reader's end. If a PSB follows, the PSB says how far execution came. */
static void read_end(struct event_reader *r, struct event *e)
{
	uint64_t offset = offset_of(r);
	struct event_reader ahead = *r;
	struct packet p;

	*e = (struct event){0};
	if (r->c.pos < r->c.end && event_read(&ahead, &p) == 0 && p.type == PACKET_PSB) {
		event_forget(&ahead);
		event_read_psb(&ahead);
		*e = ahead.queue[0];
	}
	e->fault = FAULT_NONE;
	e->kind = EVENT_END;
	e->offset = offset;
	event_finish(r, e);
	e->last = offset;
}

static bool pop(struct event_reader *r, struct event *ret)
{
	if (r->queue_n == 0)
		return false;
	*ret = r->queue[r->queue_head++];
	if (--r->queue_n == 0)
		r->queue_head = 0;
	return true;
}

void event_next(struct event_reader *r, struct event *ret)
{
	struct packet p;
	bool done = pop(r, ret);

	while (!done) {
		int result;

		event_pass_mtcs(r);
		if (r->c.pos >= r->stop) {
			event_settle(r);
			if (!pop(r, ret))
				read_end(r, ret);
			break;
		}
		result = event_read(r, &p);
		if (result == 0 && event_is_timing(p.type) && !r->back)
			continue;
		*ret = (struct event){.offset = (uint64_t)(r->at - r->trace)};
		if (r->back) {
			event_doubt_tsc(r, ret);
			break;
		}
		if (result != 0) {
			event_unreadable(r, result, ret);
			break;
		}
		if (r->n_waits == 0 && !r->mode_waits && !r->fup_owed) {
			done = read_simple(r, &p, ret);
			ret->timed = r->timed;
		} else {
			read_queued(r, &p);
		}
		done = done || pop(r, ret);
	}
	r->timed = false;
	/* Drops marks of a PSB+ that the end of the trace cut off. */
	if (ret->kind == EVENT_END)
		r->queue_n = r->queue_head = 0;
}

const struct flow_mark *event_mark(const struct event_reader *r, const struct event *e)
{
	return &r->marks[e->mark];
}
