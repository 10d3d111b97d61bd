/*
 * Answers questions about the packets ahead, and passes packets by without reading them.
 *
 * A question scans packets up to one that decides it. The answer holds for every place in between
 * and is kept, so that no packet is scanned twice for the same question and the work stays linear
 * in the trace.
 *
 * Branches in user code are passed by for a caller that only wants to know where a stay in user
 * code ends (decoder/worker/turns/scan.c). MTCs are always passed by: while tracing is off, hardly
 * anything else is written. Passing by is much faster than reading packet after packet.
 */
#include <string.h>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "decoder/packet/event_read.h"
#include "proto/base.h"
#include "proto/perf/ptpacket.h"

enum verdict { OPEN, YES, NO };

static bool kept(const struct event_reader *r, enum event_question question, bool *ret)
{
	const struct event_answer *a = &r->answers[question];

	*ret = a->yes;
	return a->from && r->c.pos >= a->from && r->c.pos < a->until;
}

/* Scans from the reader's place on. If no packet decides the question, the answer is AT_END. */
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

/* A PSB+ may stand between OVF and FUP (SDM table "Compound Packet Event Summary"). A PSB+ with a
 * FUP itself says where execution is. The scan ends at the next OVF at the latest. */
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

static enum verdict judge_branch(const struct packet *p)
{
	return p->type == PACKET_MODE_EXEC || p->type == PACKET_MODE_TSX ? OPEN : judge_tip(p);
}

bool event_branch_ahead(struct event_reader *r)
{
	return ask(r, EVENT_ASK_BRANCH, judge_branch, false);
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

/* A PSB+ decides the question by its FUP. The scan enters the PSB+ from before, so the answer is
 * not kept for places within the PSB+. */
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

/* --- Passing by --- */

/* The size of the longest packet that is passed by. */
#define LONGEST 8

#ifdef __SSE2__
#define AT_ONCE 16

static bool are_mtcs(const uint8_t *pos)
{
	const __m128i v = _mm_loadu_si128((const __m128i *)(const void *)pos);
	const __m128i mtc = _mm_cmpeq_epi8(v, _mm_set1_epi8(PT_OPC_MTC));

	return (_mm_movemask_epi8(mtc) & 0x5555) == 0x5555;
}
#else
#define AT_ONCE 2

static bool are_mtcs(const uint8_t *pos)
{
	return pos[0] == PT_OPC_MTC;
}
#endif

void event_pass_mtcs(struct event_reader *r)
{
	const uint8_t *pos = r->c.pos;

	/* Within a block, MTCs are read one by one: looking at all of them each time would be
	 * quadratic. */
	if (r->c.bip_bytes != 0)
		return;
	while (r->stop - pos >= AT_ONCE && r->c.end - pos >= AT_ONCE && are_mtcs(pos))
		pos += AT_ONCE;
	if (pos == r->c.pos)
		return;
	r->counts.packets += (uint64_t)(pos - r->c.pos) / 2;
	r->order = ORDER_OTHER;
	r->timed = true;
	r->at = pos - 2;
	r->c.pos = pos;
}

/* Whether nothing waits for a TIP or TNT, so that these say only where execution is. It must be
 * known that TIPs are not deferred, as the order of TNTs and TIPs shows that. */
static bool is_plain(const struct event_reader *r)
{
	return r->queue_n == 0 && r->n_waits == 0 && !r->mode_waits && !r->fup_owed && r->prompt &&
	       !r->guest && r->c.bip_bytes == 0 && r->last_ip >> 63 == 0;
}

/* The N bytes at POS, little-endian. */
static uint64_t number(const uint8_t *pos, size_t n)
{
	uint64_t value = 0;

	memcpy(&value, pos, n);
	return value;
}

/* Each of the following returns the size of the packet to pass by, or 0: the packet must be read.
 */
static size_t pass_long_tnt(struct event_reader *r, const uint8_t *pos)
{
	uint64_t payload = number(pos + 2, 6);

	if (pos[1] != PT_EXT_TNT64 || payload < 2)
		return 0;
	r->order = payload >> PT_TNT64_MAX == 1 || payload >> PT_TNT8_MAX == 1 ? ORDER_FULL
									       : ORDER_PARTIAL;
	r->timed = false;
	return 8;
}

static size_t pass_tnt(struct event_reader *r, uint8_t byte)
{
	if (byte == PT_OPC_PAD)
		return 1;
	/* The highest bit set is the stop bit, before six branches or fewer. */
	r->order = byte >> (PT_TNT8_MAX + 1) == 1 ? ORDER_FULL : ORDER_PARTIAL;
	r->timed = false;
	return 1;
}

static size_t pass_tip(struct event_reader *r, const uint8_t *pos)
{
	size_t size;

	switch (pos[0] >> 5) {
	case PT_IPB_SUPPRESSED: size = 1; break;
	case PT_IPB_UPDATE16:
		r->last_ip = (r->last_ip & ~UINT64_C(0xffff)) | number(pos + 1, 2);
		size = 3;
		break;
	case PT_IPB_UPDATE32:
		r->last_ip = (r->last_ip & ~UINT64_C(0xffffffff)) | number(pos + 1, 4);
		size = 5;
		break;
	case PT_IPB_SEXT48:
		if (pos[6] >> 7 == 1)
			return 0;
		r->last_ip = number(pos + 1, 6);
		size = 7;
		break;
	default: return 0;
	}
	if (r->order == ORDER_FULL)
		r->order = ORDER_FULL_TIP;
	else if (r->order == ORDER_PARTIAL)
		r->order = ORDER_PARTIAL_TIP;
	r->timed = false;
	return size;
}

static size_t pass_timing(struct event_reader *r, uint8_t byte)
{
	if (byte == PT_OPC_MTC) {
		r->order = ORDER_OTHER;
		r->timed = true;
		return 2;
	}
	if ((byte & PT_OPC_CYC_MASK) != PT_OPC_CYC || (byte & PT_CYC_MORE) != 0)
		return 0;
	r->timed = true;
	return 1;
}

static size_t pass_packet(struct event_reader *r, const uint8_t *pos)
{
	if (pos[0] == PT_OPC_EXT)
		return pass_long_tnt(r, pos);
	if ((pos[0] & 1) == 0)
		return pass_tnt(r, pos[0]);
	if ((pos[0] & PT_OPC_IP_MASK) == PT_OPC_TIP)
		return pass_tip(r, pos);
	return pass_timing(r, pos[0]);
}

void event_pass_branches(struct event_reader *r)
{
	size_t size;

	if (!is_plain(r))
		return;
	while (r->c.pos < r->stop && r->c.end - r->c.pos >= LONGEST &&
	       (size = pass_packet(r, r->c.pos)) != 0) {
		r->at = r->c.pos;
		r->c.pos += size;
		r->counts.packets++;
	}
}
