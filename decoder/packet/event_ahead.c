/*
 * Questions about the packets that follow. Each is a scan over packets that leave it open, up to
 * one that decides it. The answer holds for every place in between, where it is kept, so that no
 * packet is scanned twice for the same question: the work stays linear in the trace. Part of the
 * event reader (event_private.h).
 */
#include "decoder/packet/event_private.h"
#include "proto/base.h"

enum verdict { OPEN, YES, NO };

static bool kept(const struct event_reader *r, enum event_question question, bool *ret)
{
	const struct event_answer *a = &r->answers[question];

	*ret = a->yes;
	return a->from != NULL && r->c.pos >= a->from && r->c.pos < a->until;
}

/* Scans from the reader's place on. At the end of what can be read the answer is AT_END. */
static bool ask(struct event_reader *r, enum event_question question,
		enum verdict (*judge)(const struct packet *p), bool at_end)
{
	struct event_answer *a = &r->answers[question];
	struct packet_cursor c = r->c;
	enum verdict v = OPEN;
	struct packet p;
	bool yes;

	if (kept(r, question, &yes))
		return yes;
	*a = (struct event_answer){.from = c.pos, .yes = at_end};
	do {
		a->until = c.pos + 1;
		if (packet_next(&c, &p) != 0)
			return a->yes;
		v = judge(&p);
	} while (v == OPEN);
	a->yes = v == YES;
	return a->yes;
}

static enum verdict judge_enable(const struct packet *p)
{
	switch (p->type) {
	case PACKET_TIP_PGE: return YES;
	case PACKET_CBR:
	case PACKET_MNT:
	case PACKET_PIP:
	case PACKET_VMCS:
	case PACKET_PSBEND:
	case PACKET_MODE_EXEC:
	case PACKET_MODE_TSX: return OPEN;
	default: return event_is_timing(p->type) ? OPEN : NO;
	}
}

bool event_enable_ahead(struct event_reader *r)
{
	return ask(r, EVENT_ASK_ENABLE, judge_enable, false);
}

static enum verdict judge_tip(const struct packet *p)
{
	switch (p->type) {
	case PACKET_TIP:
	case PACKET_TIP_PGD: return YES;
	case PACKET_CBR:
	case PACKET_MNT:
	case PACKET_PIP:
	case PACKET_VMCS:
	case PACKET_EVD: return OPEN;
	default: return event_is_timing(p->type) ? OPEN : NO;
	}
}

bool event_tip_ahead(struct event_reader *r)
{
	return ask(r, EVENT_ASK_TIP, judge_tip, false);
}

static enum verdict judge_prompt(const struct packet *p)
{
	switch (p->type) {
	case PACKET_TNT: return YES;
	case PACKET_TIP:
	case PACKET_PAD:
	case PACKET_CYC: return OPEN;
	default: return NO;
	}
}

bool event_prompt_ahead(struct event_reader *r)
{
	return r->order == ORDER_PARTIAL_TIP && ask(r, EVENT_ASK_PROMPT, judge_prompt, false);
}

/* A PSB+ may stand between OVF and FUP (SDM table "Compound Packet Event Summary"); one with a FUP
 * says itself where execution is. Asked at an OVF, and decided by the next one at the latest. */
bool event_fup_ahead(const struct event_reader *r)
{
	struct packet_cursor c = r->c;
	bool in_psb = false;
	struct packet p;

	while (packet_next(&c, &p) == 0) {
		if (p.type == PACKET_FUP)
			return !in_psb;
		if (p.type == PACKET_PSB)
			in_psb = true;
		else if (p.type == PACKET_PSBEND && in_psb)
			in_psb = false;
		else if (!in_psb && (p.type == PACKET_MODE_EXEC || p.type == PACKET_MODE_TSX ||
				     p.type == PACKET_PIP || p.type == PACKET_VMCS))
			return false;
		else if (judge_enable(&p) != OPEN || p.type == PACKET_PSBEND)
			return false;
	}
	return false;
}

static enum verdict judge_off(const struct packet *p)
{
	switch (p->type) {
	case PACKET_TIP_PGE:
	case PACKET_TRACESTOP:
	case PACKET_OVF: return YES;
	case PACKET_TNT:
	case PACKET_TIP:
	case PACKET_TIP_PGD:
	case PACKET_FUP: return NO;
	default: return OPEN;
	}
}

/* A PSB+ decides by its FUP: the scan enters it from before, so what was seen of it is not kept for
 * places within. */
bool event_off_ahead(struct event_reader *r)
{
	struct event_answer *a = &r->answers[EVENT_ASK_OFF];
	struct packet_cursor c = r->c;
	bool in_psb = false, yes;
	struct packet p;

	if (kept(r, EVENT_ASK_OFF, &yes))
		return yes;
	*a = (struct event_answer){.from = c.pos, .yes = true};
	for (;;) {
		enum verdict v;

		if (!in_psb)
			a->until = c.pos + 1;
		if (packet_next(&c, &p) != 0)
			return a->yes;
		in_psb = in_psb || p.type == PACKET_PSB;
		v = in_psb && p.type == PACKET_PSBEND ? YES : judge_off(&p);
		if (v != OPEN) {
			a->yes = v == YES;
			return a->yes;
		}
	}
}
