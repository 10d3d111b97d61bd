/*
 * The lines of ptxed, out of items.
 *
 * An item tells less than libipt's event of the same thing: track.c finds in the trace which packet
 * the event was, and the addresses in the packet. libipt looks no further than its next PSB or
 * event, and calls that part of the code a block; a run with conditional branches that were not
 * taken is several blocks.
 */
#include "decoder/worker/view/views_ptxed.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "decoder/packet/errata.h"
#include "proto/base.h"
#include "proto/bundle/bundle.h"
#include "proto/decode_options.h"

#define CHUNK 1024u /* instruction addresses at once */

static bool shows(const struct views_ptxed *v, uint64_t what)
{
	return (v->show & what) != 0;
}

static void begin_block(struct views_ptxed *v)
{
	v->within = true;
	v->blocks++;
	if (shows(v, WORKER_SHOW_QUIET) || !shows(v, WORKER_SHOW_BLOCKS))
		return;
	if (shows(v, WORKER_SHOW_STAT | WORKER_SHOW_STAT_INSN | WORKER_SHOW_STAT_BLOCKS))
		lines_print(v->lines, "[block %" PRIx64 "]\n", v->blocks);
	else
		lines_print(v->lines, "[block]\n");
}

static void put_ip(struct lines *l, uint64_t ip, bool speculative)
{
	static const char digits[] = "0123456789abcdef";
	char text[19] = "? ";

	for (size_t i = 0; i < 16; i++)
		text[2 + i] = digits[ip >> (60 - 4 * i) & 15];
	text[18] = '\n';
	lines_text(l, speculative ? text : text + 2, speculative ? 19 : 17);
}

/* Writes N addresses of the run of ITEM. A block holds code of one file, and no code behind a PSB.
 */
static void put_ips(struct views_ptxed *v, const struct replay_stretch *s, const uint64_t *ips,
		    size_t n, const struct flow_item *item)
{
	/* Whether blocks have to be told apart. */
	bool blocks = shows(v, WORKER_SHOW_BLOCKS | WORKER_SHOW_STAT | WORKER_SHOW_STAT_BLOCKS);
	bool quiet = shows(v, WORKER_SHOW_QUIET), ends = false;
	uint64_t psb;
	bool have_psb = blocks && track_psb(&v->psbs, item->offset, &psb);

	v->fresh = false;
	v->insns += n;
	for (size_t i = 0; i < n; i++) {
		if (blocks) {
			uint32_t image = views_ptxed_image(v, s, ips[i], &ends);

			if (!v->within || image != v->image || (have_psb && psb == ips[i]))
				begin_block(v);
			v->image = image;
		}
		if (have_psb && ips[i] == psb)
			have_psb = track_psb(&v->psbs, item->offset, &psb);
		if (!quiet)
			put_ip(v->lines, ips[i], (item->flags & FLOW_IN_TX) != 0);
		v->within = v->within && !ends;
	}
}

static void put_run(struct views_ptxed *v, const struct replay_stretch *s,
		    const struct flow_item *item)
{
	uint64_t ips[CHUNK], start = item->start;
	size_t left = item->insns, skip = 0;

	/* From the second chunk on, a chunk begins with the last instruction of the one before. */
	while (left > 0) {
		size_t n = flow_run(s->flow, start, MIN_OF(left + skip, CHUNK), ips);

		if (n <= skip)
			return;
		put_ips(v, s, ips + skip, n - skip, item);
		left -= n - skip;
		start = ips[n - 1];
		skip = 1;
	}
}

/* Writes "[" and the time before an event's name. False: the event is not to be shown. */
static bool open_event(struct views_ptxed *v, uint64_t offset)
{
	uint64_t tsc;

	if (shows(v, WORKER_SHOW_QUIET))
		return false;
	lines_print(v->lines, "[");
	if (shows(v, WORKER_SHOW_EVENT_TIME) && track_time(&v->track, offset, &tsc))
		lines_print(v->lines, "%016" PRIx64 "  ", tsc);
	return true;
}

static void close_event(struct views_ptxed *v)
{
	lines_print(v->lines, "]\n");
}

static void put_address(struct views_ptxed *v, const char *name, bool known, uint64_t ip)
{
	if (known && shows(v, WORKER_SHOW_EVENT_IP))
		lines_print(v->lines, ", %s: %016" PRIx64, name, ip);
}

/* Writes the sideband records up to the time of an event, behind the event, shown or not. */
static void put_sideband(struct views_ptxed *v, uint64_t offset, int where, uint64_t ip)
{
	struct pevent_event event = {.ip = ip};

	if (!v->pevent)
		return;
	event.where = (__typeof__(event.where))where;
	if (!track_time(&v->track, offset, &event.tsc))
		event.tsc = 0;
	pevent_event(v->pevent, &event);
}

/* The beginning of decoding is no event, nor is its going on. */
static void put_enable(struct views_ptxed *v, const struct flow_item *item)
{
	bool goes_on = (item->flags & FLOW_GOES_ON) != 0;

	if (!goes_on && open_event(v, item->offset)) {
		lines_print(v->lines, "%s",
			    v->resume != 0 && v->resume == item->to ? "resumed" : "enabled");
		put_address(v, "ip", true, item->to);
		close_event(v);
	}
	v->resume = 0;
	v->fresh = goes_on;
	put_sideband(v, item->offset, PEVENT_AT, item->to);
}

/* Keeps the line about the end of tracing until the marks of the branch that ended it are written.
 * Without a packet of its own there is no such line: the decoder only changed to other code. */
static void take_disable(struct views_ptxed *v, const struct replay_stretch *s,
			 const struct flow_item *item)
{
	bool async = (item->flags & FLOW_ASYNC_STOP) != 0;
	const struct track_packet *pgd;
	struct track_pair p;

	track_look(&v->track, item->offset, &p);
	pgd = async ? &p.second : &p.first;
	v->resume = async ? item->from : views_ptxed_behind(v, s, item->from);
	v->disable = (struct views_ptxed_disable){
		.waits = p.first.type != PACKET_PSB,
		.async = async,
		.has_ip = pgd->type == PACKET_TIP_PGD && pgd->has_ip,
		.at = item->from,
		.ip = pgd->ip,
		.offset = item->offset,
	};
}

static void put_disable(struct views_ptxed *v)
{
	const struct views_ptxed_disable *d = &v->disable;

	if (d->waits && open_event(v, d->offset)) {
		lines_print(v->lines, "disabled");
		put_address(v, "at", d->async, d->at);
		put_address(v, "ip", d->has_ip, d->ip);
		close_event(v);
	}
	if (d->has_ip)
		put_sideband(v, d->offset, PEVENT_AT, d->ip);
	else
		put_sideband(v, d->offset, d->async ? PEVENT_ACROSS_FROM : PEVENT_ACROSS, d->at);
	v->disable.waits = false;
}

static void put_end(struct views_ptxed *v)
{
	if (!shows(v, WORKER_SHOW_QUIET))
		lines_print(v->lines, "[end of trace]\n");
}

static void put_error(struct views_ptxed *v, const struct replay_stretch *s,
		      const struct flow_item *item, const char *text)
{
	const struct flow_gap *gap = &s->gaps[item->gap - s->first_gap];
	/* Before the first block, ptxed knows no address. */
	uint64_t ip = v->fresh && gap->fault == FAULT_PACKET_UNEXPECTED ? 0 : gap->address;

	/* The branch that the packets do not fit counts as executed. */
	if (gap->fault == FAULT_TNT_UNEXPECTED || gap->fault == FAULT_TIP_UNEXPECTED ||
	    gap->fault == FAULT_EVENT_UNREACHABLE)
		put_ips(v, s, &gap->address, 1, item);
	lines_print(v->lines, "[%" PRIx64 ", %" PRIx64 ": error: %s]\n", gap->read, ip, text);
	/* Decoding goes on with the same packet, which gives the same error again. */
	if (gap->fault == FAULT_STATUS && shows(v, WORKER_SHOW_RESYNC_ON_ERROR))
		lines_print(v->lines, "[%" PRIx64 ", %" PRIx64 ": resync error: %s]\n", gap->read,
			    ip, text);
}

static void put_gap(struct views_ptxed *v, const struct replay_stretch *s,
		    const struct flow_item *item)
{
	const struct flow_gap *gap = &s->gaps[item->gap - s->first_gap];
	const struct track *t = &v->track;
	const char *text = views_ptxed_error(gap->fault);
	struct track_pair p;
	bool known;

	if (gap->fault == FAULT_BAD_PACKET && gap->offset < (uint64_t)(t->cursor.end - t->trace))
		text = packet_why(t->trace + gap->offset, t->cursor.end);
	v->resume = 0;
	if (gap->fault == FAULT_OVERFLOW) {
		track_look(&v->track, gap->offset, &p);
		known = p.second.type == PACKET_FUP && p.second.has_ip;
		if (open_event(v, gap->offset)) {
			lines_print(v->lines, "overflow");
			put_address(v, "ip", known, p.second.ip);
			close_event(v);
		}
		put_sideband(v, gap->offset, known ? PEVENT_AT : PEVENT_NOWHERE, p.second.ip);
	} else if (gap->fault == FAULT_TRACESTOP) {
		if (open_event(v, gap->offset))
			lines_print(v->lines, "stopped]\n");
		put_sideband(v, gap->offset, PEVENT_NOWHERE, 0);
	} else if (gap->fault == FAULT_TRUNCATED && item->from != 0) {
		put_end(v);
	} else if (text) {
		put_error(v, s, item, text);
	}
}

/* Where libipt's sideband decoder takes a mark to be. It does not look at other kinds. */
static int where_of(const struct flow_mark *m)
{
	switch (m->kind) {
	case FLOW_MARK_MODE:
	case FLOW_MARK_TSX:
	case FLOW_MARK_EXSTOP:
	case FLOW_MARK_MWAIT:
	case FLOW_MARK_PTWRITE:
	case FLOW_MARK_TICK: return (m->flags & FLOW_MARK_HAS_IP) != 0 ? PEVENT_AT : PEVENT_NOWHERE;
	case FLOW_MARK_PAGING:
		return (m->flags & FLOW_MARK_HAS_IP) != 0 ? PEVENT_AT : PEVENT_LIKELY_KERNEL;
	default: return PEVENT_NOWHERE;
	}
}

static void put_mark(struct views_ptxed *v, const struct flow_item *item,
		     const struct flow_mark *mark)
{
	struct flow_mark m = *mark;

	if (m.kind == FLOW_MARK_MODE)
		v->mode = (uint8_t)m.value;
	/* Marks that libipt was not asked for. */
	if ((m.kind == FLOW_MARK_TICK && !shows(v, WORKER_SHOW_EVENT_TICK)) ||
	    (m.kind == FLOW_MARK_IFLAG && !shows(v, WORKER_SHOW_EVENT_IFLAGS)) ||
	    !views_ptxed_knows(&m))
		return;
	/* For a tick, libipt tells the address at which the decoder was. */
	if (m.kind == FLOW_MARK_TICK && item->from != 0) {
		m.flags |= FLOW_MARK_HAS_IP;
		m.ip = item->from;
	}
	if ((m.flags & FLOW_MARK_STATUS) == 0 && open_event(v, m.offset)) {
		views_ptxed_mark(v->lines, &m, shows(v, WORKER_SHOW_EVENT_IP));
		close_event(v);
	}
	put_sideband(v, m.offset, where_of(&m), m.ip);
}

static void put_item(struct views_ptxed *v, const struct replay_stretch *s,
		     const struct flow_item *item)
{
	bool of_branch = item->kind == FLOW_MARK &&
			 (s->marks[item->mark - s->first_mark].flags & FLOW_MARK_OF_BRANCH) != 0;

	if (v->disable.waits && !of_branch)
		put_disable(v);
	put_run(v, s, item);
	switch (item->kind) {
	case FLOW_JUMP: v->within = v->within && !shows(v, WORKER_SHOW_END_ON_JUMP); return;
	case FLOW_CALL: v->within = v->within && !shows(v, WORKER_SHOW_END_ON_CALL); return;
	case FLOW_ENABLE: put_enable(v, item); break;
	case FLOW_SYSCALL:
	case FLOW_DISABLE: take_disable(v, s, item); break;
	case FLOW_ASYNC:
		if (open_event(v, item->offset)) {
			lines_print(v->lines, "interrupt");
			put_address(v, "from", true, item->from);
			put_address(v, "to", true, item->to);
			close_event(v);
		}
		put_sideband(v, item->offset, PEVENT_AT, item->to);
		break;
	case FLOW_GAP: put_gap(v, s, item); break;
	case FLOW_MARK: put_mark(v, item, &s->marks[item->mark - s->first_mark]); break;
	case FLOW_END: put_end(v); break;
	default: break;
	}
	v->within = false;
}

int views_ptxed_stretch(struct views_ptxed *v, const struct replay_stretch *s)
{
	for (size_t i = 0; i < s->n_items; i++)
		put_item(v, s, &s->items[i]);
	return v->lines->error;
}

void views_ptxed_settle(struct views_ptxed *v)
{
	if (v->disable.waits)
		put_disable(v);
}

int views_ptxed_init(struct views_ptxed *v, const struct replay *r, size_t cpu,
		     const struct decode_options *options, struct lines *l)
{
	const struct manifest *m = r->manifest;
	const struct errata errata = errata_for(m->cpu_family, m->cpu_model);
	const struct estimate_config estimate = {
		.mtc_period = m->mtc_period,
		.max_nonturbo_ratio = m->max_nonturbo_ratio,
		.tsc_art_num = m->tsc_art_num,
		.tsc_art_den = m->tsc_art_den,
		.cyc_lost_at_psb = errata.skl168,
		.keep_calibration = (options->show & WORKER_SHOW_KEEP_TCAL) != 0,
	};
	size_t size;
	const uint8_t *trace = bundle_cpu(r->bundle, cpu, &size);

	*v = (struct views_ptxed){.replay = r, .lines = l, .show = options->show};
	track_init(&v->track, trace, size, &errata, &estimate);
	track_init(&v->psbs, trace, size, &errata, NULL);
	v->reader = insn_reader_new();
	if (!v->reader)
		return -ENOMEM;
	return cpu == 0 ? pevent_new(r->bundle, options, l, &v->pevent) : 0;
}

void views_ptxed_done(struct views_ptxed *v)
{
	insn_reader_free(v->reader);
	v->reader = NULL;
	pevent_free(v->pevent);
	v->pevent = NULL;
}

void views_ptxed_begin(struct views_ptxed *v)
{
	const struct manifest *m = v->replay->manifest;

	if (m->have_cpu && !errata_known(m->cpu_family, m->cpu_model))
		lines_print(v->lines, "[0, 0: config error: unknown cpu]\n");
}

void views_ptxed_end(struct views_ptxed *v)
{
	bool all = shows(v, WORKER_SHOW_STAT) &&
		   !shows(v, WORKER_SHOW_STAT_INSN | WORKER_SHOW_STAT_BLOCKS);

	views_ptxed_settle(v);
	if (all || shows(v, WORKER_SHOW_STAT_INSN))
		lines_print(v->lines, "insn: %" PRIu64 ".\n", v->insns);
	if ((all && !shows(v, WORKER_SHOW_INSN_DECODER)) || shows(v, WORKER_SHOW_STAT_BLOCKS))
		lines_print(v->lines, "blocks:\t%" PRIu64 ".\n", v->blocks);
}
