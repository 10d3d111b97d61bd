/*
 * Runs both decoders over one input and compares: from each PSB where both begin, the addresses
 * must be equal up to the first error of either.
 */
#include "tests/oracle/diff_decode.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <intel-pt.h>

#include "decoder/code/insn.h"
#include "decoder/flow/flow.h"
#include "decoder/packet/errata.h"
#include "decoder/packet/packet.h"
#include "proto/base.h"

static void begin(struct diff_stream *s, uint64_t psb)
{
	if (s->n_segments == DIFF_SEGMENTS_MAX)
		return;
	s->segments[s->n_segments++] = (struct diff_segment){.psb = psb, .first = s->n};
}

static void finish(struct diff_stream *s, bool failed, int why, uint64_t offset)
{
	struct diff_segment *last = &s->segments[s->n_segments - 1];

	last->n = s->n - last->first;
	last->failed = failed;
	last->why = why;
	last->offset = offset;
}

/* Our decoder. */

static int give_code(void *userdata, uint64_t context, uint64_t ip, struct flow_code *ret)
{
	const struct diff_piece *p = diff_input_find(userdata, ip);

	(void)context;
	if (p == NULL)
		return FAULT_UNMAPPED;
	*ret = (struct flow_code){.bytes = p->bytes, .address = p->address, .size = p->size};
	return 0;
}

/* False: the stream is full. */
static bool take_items(struct flow *f, const struct flow_batch *b, struct diff_stream *s)
{
	for (size_t i = 0; i < b->n_items; i++) {
		const struct flow_item *item = &b->items[i];
		size_t room = DIFF_INSNS_MAX - s->n;

		if (item->insns > 0)
			s->n += flow_run(f, item->start, MIN_OF(item->insns, room), s->ips + s->n);
		if (s->n == DIFF_INSNS_MAX || s->n_segments == DIFF_SEGMENTS_MAX)
			return false;
		if (item->kind == FLOW_GAP && b->gaps[item->gap].fault != FAULT_HEAD) {
			const struct flow_gap *g = &b->gaps[item->gap];

			finish(s, true, g->fault, g->offset);
			begin(s, g->offset + g->bytes);
		}
	}
	return true;
}

static void run_ours(const struct diff_input *in, uint64_t first_psb, struct diff_stream *s)
{
	const struct flow_config config = {
		.trace = in->trace,
		.size = in->size,
		.mtc_period = UINT32_MAX,
		.cpu_family = in->family,
		.cpu_model = in->model,
		.code = give_code,
		.userdata = (void *)(uintptr_t)in,
		.guests = true,
		.resume_at_psb = true,
		.retstack_libipt = true,
	};
	struct flow_batch batch;
	bool all = true;
	struct flow *f;

	s->n = s->n_segments = 0;
	if (flow_new(&config, &f) != 0)
		abort();
	begin(s, first_psb);
	while (all && flow_next(f, &batch) == 0)
		all = take_items(f, &batch, s);
	finish(s, !all, DIFF_ENOUGH, in->size);
	flow_free(f);
}

/* The decoder of libipt. */

static int give_memory(uint8_t *buffer, size_t size, const struct pt_asid *asid, uint64_t ip,
		       void *context)
{
	size_t done = 0;

	(void)asid;
	while (done < size) {
		const struct diff_piece *p = diff_input_find(context, ip + done);
		uint64_t at;

		if (p == NULL)
			break;
		at = ip + done - p->address;
		for (; done < size && at < p->size; at++)
			buffer[done++] = p->bytes[at];
	}
	return done > 0 ? (int)done : -pte_nomap;
}

static int drain(struct pt_insn_decoder *d, int status)
{
	struct pt_event event;

	while (status >= 0 && (status & pts_event_pending) != 0)
		status = pt_insn_event(d, &event, sizeof(event));
	return status;
}

/* Decodes to an error or the end and returns the status; 0: the stream is full. */
static int ipt_segment(struct pt_insn_decoder *d, int status, struct diff_stream *s)
{
	while (s->n < DIFF_INSNS_MAX) {
		struct pt_insn insn = {.iclass = ptic_error};

		status = drain(d, status);
		if (status < 0)
			return status;
		status = pt_insn_next(d, &insn, sizeof(insn));
		/* libipt returns an instruction together with the error if its successor is
		 * unknown. */
		if (status >= 0 || insn.iclass != ptic_error)
			s->ips[s->n++] = insn.ip;
		if (status < 0)
			return status;
	}
	return 0;
}

static void ipt_all(struct pt_insn_decoder *d, struct diff_stream *s, uint64_t size)
{
	while (s->n_segments < DIFF_SEGMENTS_MAX) {
		int status = pt_insn_sync_forward(d);
		uint64_t psb = 0, offset = size;

		if (status == -pte_eos)
			return;
		pt_insn_get_sync_offset(d, &psb);
		begin(s, psb);
		if (status >= 0)
			status = ipt_segment(d, status, s);
		pt_insn_get_offset(d, &offset);
		if (status == -pte_eos || status == 0) {
			finish(s, status == 0, DIFF_ENOUGH, size);
			return;
		}
		finish(s, true, (int)pt_errcode(status), offset);
	}
}

/* Our errata; libipt applies none to an unknown processor. */
static void set_errata(struct pt_config *config, struct errata e)
{
	config->errata.bdm64 = e.bdm64;
	config->errata.bdm70 = e.bdm70;
	config->errata.skd007 = e.skd007;
	config->errata.skd010 = e.skd010;
	config->errata.skd022 = e.skd022;
	config->errata.skl014 = e.skl014;
	config->errata.skl168 = e.skl168;
	config->errata.apl11 = e.apl11;
	config->errata.apl12 = e.apl12;
}

static void run_ipt(const struct diff_input *in, struct diff_stream *s)
{
	struct pt_insn_decoder *d;
	struct pt_config config;

	s->n = s->n_segments = 0;
	pt_config_init(&config);
	config.begin = (uint8_t *)(uintptr_t)in->trace;
	config.end = config.begin + in->size;
	config.cpu.vendor = in->family != 0 ? pcv_intel : pcv_unknown;
	config.cpu.family = (uint16_t)in->family;
	config.cpu.model = (uint8_t)in->model;
	set_errata(&config, errata_for(in->family, in->model));
	d = pt_insn_alloc_decoder(&config);
	if (d == NULL)
		abort();
	pt_image_set_callback(pt_insn_get_image(d), give_memory, (void *)(uintptr_t)in);
	ipt_all(d, s, in->size);
	pt_insn_free_decoder(d);
}

/* Packets that libipt 2.0 does not know, because they are newer. */
static bool is_new(uint8_t type)
{
	return type >= PACKET_BBP;
}

/* Reads packets from each PSB on, as far as they can be read. */
static bool has_new_packets(const struct diff_input *in)
{
	const uint8_t *end = in->trace + in->size;
	const uint8_t *pos = sync_find(in->trace, end);

	while (pos != NULL) {
		struct packet_cursor c = {.pos = pos, .end = end};
		struct packet p;

		while (packet_next(&c, &p) == 0)
			if (is_new(p.type))
				return true;
		pos = sync_find(c.pos == pos ? pos + 1 : c.pos, end);
	}
	return false;
}

/* Packets that bind to later ones. */
static bool waits(uint8_t type)
{
	switch (type) {
	case PACKET_FUP:
	case PACKET_MODE_EXEC:
	case PACKET_MODE_TSX:
	case PACKET_PIP:
	case PACKET_VMCS:
	case PACKET_PTW:
	case PACKET_EXSTOP:
	case PACKET_MWAIT:
	case PACKET_OVF: return true;
	default: return false;
	}
}

bool diff_is_aside(uint8_t type)
{
	return type == PACKET_PAD || type == PACKET_MTC || type == PACKET_CYC ||
	       type == PACKET_TSC || type == PACKET_TMA || type == PACKET_CBR || type == PACKET_MNT;
}

/* The packets since the last PSB; within a PSB+, all packets wait for its end. */
static bool is_ragged(const struct diff_input *in)
{
	const uint8_t *end = in->trace + in->size, *next;
	struct packet_cursor c = {.pos = sync_find(in->trace, end), .end = end};
	bool pending = false, in_psb = false;
	struct packet p;

	while ((next = sync_find(c.pos + 1, end)) != NULL)
		c.pos = next;
	while (packet_next(&c, &p) == 0) {
		if (diff_is_aside(p.type))
			continue;
		in_psb = p.type == PACKET_PSB ||
			 (in_psb && p.type != PACKET_PSBEND && p.type != PACKET_OVF);
		pending = in_psb || waits(p.type);
	}
	return pending || c.pos < end;
}

bool diff_decode(const struct diff_input *in, struct diff_result *ret)
{
	const uint8_t *psb = sync_find(in->trace, in->trace + in->size);

	if (psb == NULL || has_new_packets(in))
		return false;
	run_ours(in, (uint64_t)(psb - in->trace), &ret->ours);
	run_ipt(in, &ret->ipt);
	ret->ragged = is_ragged(in);
	return true;
}

/* The class of the instruction at IP in a word, for the signature. */
static const char *describe_insn(const struct diff_input *in, uint64_t ip)
{
	static const char *const names[] = {
		[INSN_OTHER] = "other", [INSN_COND] = "cond",	   [INSN_JUMP] = "jump",
		[INSN_CALL] = "call",	[INSN_JUMP_IND] = "jump*", [INSN_CALL_IND] = "call*",
		[INSN_RET] = "ret",	[INSN_FAR] = "far",	   [INSN_SYSCALL] = "syscall",
		[INSN_CR3] = "cr3",
	};
	int class = diff_class_at(in, ip, INSN_MODE_64);

	if (class < 0)
		return "none";
	return (size_t) class < ARRAY_SIZE(names) && names[class] != NULL ? names[class]
									  : "special";
}

static const char *why_ours(const struct diff_segment *s)
{
	if (!s->failed)
		return "end";
	return s->why == DIFF_ENOUGH ? "enough" : fault_name((enum fault)s->why);
}

static const char *why_ipt(const struct diff_segment *s)
{
	if (!s->failed)
		return "end";
	return s->why == DIFF_ENOUGH ? "enough" : pt_errstr((enum pt_error_code)s->why);
}

static void describe(const struct diff_input *in, const struct diff_result *r,
		     const struct diff_segment *a, const struct diff_segment *b, size_t at,
		     struct diff_difference *ret)
{
	const uint64_t *x = r->ours.ips + a->first, *y = r->ipt.ips + b->first;
	const char *how = at < a->n && at < b->n ? "other" : at < a->n ? "more" : "fewer";
	const char *last = "begin";

	ret->known = diff_explain(in, r, a, b, at);
	if (at > 0)
		last = describe_insn(in, x[at - 1]);
	snprintf(ret->signature, sizeof(ret->signature), "%s after %s; ours: %s; libipt: %s%s", how,
		 last, why_ours(a), why_ipt(b), a == r->ours.segments ? "" : "; resumed");
	snprintf(ret->text, sizeof(ret->text),
		 "%s; PSB %#" PRIx64 ", instruction %zu behind %#" PRIx64 ": ours %#" PRIx64
		 " of %zu, to %#" PRIx64 "; libipt's %#" PRIx64 " of %zu, to %#" PRIx64,
		 ret->signature, a->psb, at, at > 0 ? x[at - 1] : 0, at < a->n ? x[at] : 0, a->n,
		 a->offset, at < b->n ? y[at] : 0, b->n, b->offset);
}

/* We reported a fault where libipt found no error at all. */
static bool is_early(const struct diff_segment *a, const struct diff_segment *b)
{
	return a->failed && a->why != DIFF_ENOUGH && !b->failed && b->n > a->n + 1;
}

/* True: the segments differ, as *ret says. A and B begin at the same PSB. */
static bool compare(const struct diff_input *in, const struct diff_result *r,
		    const struct diff_segment *a, const struct diff_segment *b,
		    struct diff_difference *ret)
{
	const uint64_t *x = r->ours.ips + a->first, *y = r->ipt.ips + b->first;
	bool ours_open = a->failed || r->ragged, ipt_open = b->failed || r->ragged;
	size_t at = 0;

	while (at < a->n && at < b->n && x[at] == y[at])
		at++;
	if (at == a->n && (ours_open || at == b->n) && !(r->strict && is_early(a, b)))
		return false;
	if (at == b->n && ipt_open)
		return false;
	if (ret != NULL)
		describe(in, r, a, b, at, ret);
	return true;
}

bool diff_compare(const struct diff_input *in, const struct diff_result *r,
		  struct diff_difference *ret)
{
	size_t i = 0, j = 0;

	while (i < r->ours.n_segments && j < r->ipt.n_segments) {
		const struct diff_segment *a = &r->ours.segments[i], *b = &r->ipt.segments[j];

		if (a->psb == b->psb && compare(in, r, a, b, ret))
			return true;
		i += a->psb <= b->psb;
		j += b->psb <= a->psb;
	}
	return false;
}
