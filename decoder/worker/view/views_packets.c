/*
 * The view of packets: one line for each packet, as libipt's ptdump writes it.
 *
 * Each byte is read as part of at most one packet between two PSBs. Behind an error the search for
 * a PSB begins at most 15 bytes before the place of the error, and never finds the same PSB again.
 */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "decoder/packet/errata.h"
#include "decoder/packet/packet.h"
#include "decoder/time/estimate.h"
#include "decoder/worker/view/pevent.h"
#include "decoder/worker/view/views.h"
#include "proto/base.h"
#include "proto/perf/ptpacket.h"

/* --- One packet --- */

/* The state behind the packets read so far: the last IP and the estimated time. */
struct packet_line {
	struct lines *lines;
	uint64_t show;	       /* WORKER_SHOW_* */
	struct pevent *pevent; /* borrowed; NULL: there are no records to show */
	bool timed;	       /* a column needs the time */
	bool hidden;	       /* packets are read and not written */
	struct estimate estimate;
	uint64_t last_tsc, last_length; /* shown before, for --time-delta */
	uint64_t ip;
	bool have_ip;
};

/* "[OFFSET: WHAT: WHY]" or, if WHY is NULL, "[OFFSET: WHAT]". */
static void packet_line_say(const struct packet_line *pl, uint64_t offset, const char *what,
			    const char *why)
{
	if (!pl->hidden)
		lines_print(pl->lines, "[%" PRIx64 ": %s%s%s]\n", offset, what, why ? ": " : "",
			    why ? why : "");
}

static void say_fault(const struct packet_line *pl, uint64_t offset, const char *what,
		      enum estimate_fault fault)
{
	if (fault != ESTIMATE_OK)
		packet_line_say(pl, offset, what, estimate_text(fault));
}

static void describe_time(struct packet_line *pl, uint64_t offset, struct packet_text *t)
{
	uint64_t tsc, last = pl->last_tsc;
	enum estimate_fault fault = estimate_tsc(&pl->estimate, &tsc);

	snprintf(t->key, sizeof(t->key), "tsc");
	if (fault != ESTIMATE_OK && !(pl->show & WORKER_SHOW_NO_WALL_CLOCK)) {
		say_fault(pl, offset, "error printing time", fault);
		snprintf(t->value, sizeof(t->value), "<unavailable>");
	} else if (!(pl->show & WORKER_SHOW_TIME_DELTA)) {
		snprintf(t->value, sizeof(t->value), "%016" PRIx64, tsc);
	} else {
		snprintf(t->value, sizeof(t->value), "%c%" PRIx64, tsc >= last ? '+' : '-',
			 tsc >= last ? tsc - last : last - tsc);
		pl->last_tsc = tsc;
	}
}

static void describe_length(struct packet_line *pl, uint64_t offset, struct packet_text *t)
{
	const double unit = 1 << ESTIMATE_SHIFT;
	uint64_t length, last = pl->last_length;
	enum estimate_fault fault = estimate_length(&pl->estimate, &length);

	snprintf(t->key, sizeof(t->key), "fcr");
	if (fault != ESTIMATE_OK) {
		say_fault(pl, offset, "error printing time", fault);
		snprintf(t->value, sizeof(t->value), "<unavailable>");
	} else if (!(pl->show & WORKER_SHOW_TIME_DELTA)) {
		snprintf(t->value, sizeof(t->value), "%.3f", (double)length / unit);
	} else {
		snprintf(t->value, sizeof(t->value), "%+.3f",
			 (double)length / unit - (double)last / unit);
		pl->last_length = length;
	}
}

static bool is_timing(const struct packet_line *pl, const struct packet *p)
{
	switch (p->type) {
	case PACKET_TSC:
	case PACKET_CBR:
	case PACKET_TMA:
	case PACKET_MTC: return true;
	case PACKET_CYC: return !(pl->show & WORKER_SHOW_NO_CYC);
	default: return false;
	}
}

/* A CBR does not move the time; CYC and TMA do not measure the length of a cycle. */
static void track_time(struct packet_line *pl, const struct packet *p, uint64_t offset,
		       struct packet_text *t)
{
	struct estimate_faults faults = estimate_packet(&pl->estimate, p);
	uint64_t tsc;

	if (!is_timing(pl, p))
		return;
	say_fault(pl, offset, "calibration error", faults.length);
	say_fault(pl, offset, "error calibrating time", faults.calibration);
	say_fault(pl, offset, "error updating time", faults.point);
	if (faults.uncalibrated)
		packet_line_say(pl, offset, "error updating time: no calibration", NULL);
	if ((pl->show & WORKER_SHOW_TCAL) && p->type != PACKET_TMA && p->type != PACKET_CYC)
		describe_length(pl, offset, t);
	if ((pl->show & WORKER_SHOW_TIME) && p->type != PACKET_CBR)
		describe_time(pl, offset, t);
	estimate_tsc(&pl->estimate, &tsc);
	if (!pl->hidden)
		pevent_until(pl->pevent, tsc);
}

static void track_ip(struct packet_line *pl, const struct packet *p, struct packet_text *t)
{
	uint64_t ip;
	bool known = packet_ip(p, &pl->ip, &ip);

	pl->have_ip |= known;
	if (!(pl->show & WORKER_SHOW_LASTIP))
		return;
	snprintf(t->key, sizeof(t->key), "ip");
	if (known)
		snprintf(t->value, sizeof(t->value), "%016" PRIx64, ip);
	else
		snprintf(t->value, sizeof(t->value),
			 pl->have_ip ? "<suppressed>" : "<unavailable>");
}

static bool is_hidden(const struct packet_line *pl, const struct packet *p)
{
	uint64_t hides = WORKER_SHOW_QUIET;

	switch (p->type) {
	case PACKET_PAD: hides |= WORKER_SHOW_NO_PAD; break;
	case PACKET_CYC: hides |= WORKER_SHOW_NO_CYC | WORKER_SHOW_NO_TIMING; break;
	case PACKET_TSC:
	case PACKET_CBR:
	case PACKET_TMA:
	case PACKET_MTC: hides |= WORKER_SHOW_NO_TIMING; break;
	default: break;
	}
	return pl->hidden || (pl->show & hides) != 0;
}

static void put(const struct packet_line *pl, const struct packet *p, const uint8_t *bytes,
		uint64_t offset, const struct packet_text *t)
{
	char text[192];
	size_t n = 0;

	if (!(pl->show & WORKER_SHOW_NO_OFFSET))
		n = (size_t)snprintf(text, sizeof(text), "%016" PRIx64 "  ", offset);
	if (pl->show & WORKER_SHOW_RAW) {
		size_t begin = n;

		for (size_t i = 0; i < p->size && i < PT_MAX_PACKET; i++)
			n += (size_t)snprintf(text + n, sizeof(text) - n, "%02x", bytes[i]);
		while (n < begin + 2 * PT_MAX_PACKET + 2)
			text[n++] = ' ';
	}
	n += packet_columns(p, t, text + n, sizeof(text) - n);
	text[n++] = '\n';
	lines_text(pl->lines, text, n);
}

/* Writes the packet P at OFFSET, which lies at BYTES. Before its line come lines about what is
 * wrong with it, and the sideband records up to its time. */
static void packet_line_write(struct packet_line *pl, const struct packet *p, const uint8_t *bytes,
			      uint64_t offset)
{
	static const char *const modes[] = {"16-bit", "64-bit", "32-bit", "unknown"};
	struct packet_text t;

	packet_describe(p, &t);
	switch (p->type) {
	case PACKET_FUP:
	case PACKET_TIP:
	case PACKET_TIP_PGE:
	case PACKET_TIP_PGD: track_ip(pl, p, &t); break;
	case PACKET_MODE_EXEC:
		if (pl->show & WORKER_SHOW_EXEC_MODE) {
			snprintf(t.key, sizeof(t.key), "em");
			snprintf(t.value, sizeof(t.value), "%s",
				 modes[p->u.mode.bits & (PT_MODE_EXEC_CSL | PT_MODE_EXEC_CSD)]);
		}
		break;
	default: break;
	}
	if (pl->timed || pl->pevent)
		track_time(pl, p, offset, &t);
	if (!is_hidden(pl, p))
		put(pl, p, bytes, offset, &t);
}

/* --- Traces --- */

/* One CPU's trace while it is read. */
struct dump {
	struct packet_line line;
	const uint8_t *trace, *end;
	const struct manifest_seam *seams; /* that are left */
	size_t n_seams;
	const uint8_t *sync; /* reading began here */
	struct packet_cursor c;
	bool plain; /* write only what ptdump writes */
};

static bool is_raw(const struct manifest *m)
{
	return m->source && strcmp(m->source, "raw") == 0;
}

static void dump_init(struct dump *d, const struct bundle *b, size_t index,
		      const struct decode_options *options, struct lines *l)
{
	const struct manifest *m = bundle_manifest(b);
	static const struct errata none;
	const struct errata e = m->have_cpu ? errata_for(m->cpu_family, m->cpu_model) : none;
	const struct estimate_config config = {
		.mtc_period = m->mtc_period,
		.max_nonturbo_ratio = m->max_nonturbo_ratio,
		.tsc_art_num = m->tsc_art_num,
		.tsc_art_den = m->tsc_art_den,
		.cyc_lost_at_psb = e.skl168,
		.no_calibration = options->show & WORKER_SHOW_NO_TCAL,
		.no_cyc = options->show & WORKER_SHOW_NO_CYC,
		.keep_calibration = options->show & WORKER_SHOW_KEEP_TCAL,
	};
	size_t size;

	*d = (struct dump){.plain = is_raw(m)};
	d->line = (struct packet_line){
		.lines = l,
		.show = options->show,
		.timed = options->show & (WORKER_SHOW_TIME | WORKER_SHOW_TCAL),
	};
	estimate_init(&d->line.estimate, &config);
	d->trace = bundle_cpu(b, index, &size);
	d->seams = manifest_seams(m, index, &d->n_seams);
	d->end = d->trace + (d->n_seams > 0 ? (size_t)d->seams[0].offset : size);
	d->c.end = d->end;
	d->c.quirks = (uint8_t)((e.skd007 ? PACKET_SKD007 : 0) | (e.skz84 ? PACKET_SKZ84 : 0));
}

static void begin_at(struct dump *d, const uint8_t *pos)
{
	d->sync = d->c.pos = pos ? pos : d->end;
	d->c.bip_bytes = 0;
}

/* Nothing is known any more. */
static void forget(struct packet_line *line)
{
	estimate_reset(&line->estimate);
	line->last_tsc = line->last_length = line->ip = 0;
	line->have_ip = false;
}

/* Goes behind the seam at the end of what was written. False: there is none. */
static bool pass_seam(struct dump *d, const uint8_t *end)
{
	const struct manifest_seam *seam = d->seams;
	const uint8_t *from = d->end;
	enum fault kind;

	if (d->n_seams == 0)
		return false;
	kind = fault_by_name(seam->kind);
	d->seams++;
	d->n_seams--;
	d->end = d->c.end = d->n_seams > 0 ? d->trace + d->seams[0].offset : end;
	begin_at(d, sync_find(from, d->end));
	forget(&d->line);
	lines_print(d->line.lines, "# gap %s at %" PRIu64 ": %zu bytes skipped\n",
		    fault_name(kind == FAULT_NONE ? FAULT_TRACE_MISSING : kind), seam->offset,
		    (size_t)(d->c.pos - from));
	return true;
}

static void write_packet(struct dump *d)
{
	struct packet_line *line = &d->line;
	const uint8_t *pos = d->c.pos;
	uint64_t offset = (uint64_t)(pos - d->trace);
	struct packet p;
	int r = packet_next(&d->c, &p);

	if (r == 0) {
		packet_line_write(line, &p, pos, offset);
		return;
	}
	if (r == PACKET_BAD) {
		packet_line_say(line, offset, "error decoding packet", packet_why(pos, d->end));
		/* Goes on at the next PSB, of which the packet in error may have a part. */
		pos = d->sync + 1;
		if (d->c.pos - pos >= PT_PSB_SIZE)
			pos = d->c.pos - (PT_PSB_SIZE - 1);
		begin_at(d, sync_find(pos, d->end));
		forget(line);
		return;
	}
	if (!d->plain)
		lines_print(d->line.lines, "# truncated packet at %" PRIu64 ": %zu bytes skipped\n",
			    offset, (size_t)(d->end - pos));
	d->c.pos = d->end;
}

static int write_cpu(const struct bundle *b, const struct decode_options *options, size_t index,
		     struct lines *l)
{
	CLEANUP(pevent_freep) struct pevent *pevent = NULL;
	struct dump d;
	size_t size;
	int r = 0;

	dump_init(&d, b, index, options, l);
	/* The records belong to no CPU in particular: they are written with the first one. */
	if (index == 0)
		r = pevent_new(b, options, l, &pevent);
	if (r < 0)
		return r;
	d.line.pevent = pevent;
	begin_at(&d, options->show & WORKER_SHOW_NO_SYNC ? d.trace : sync_find(d.trace, d.end));
	if (!d.plain && d.c.pos > d.trace)
		lines_print(l, "# %s at 0: %zu bytes skipped\n",
			    d.c.pos < d.end ? "before the first PSB" : "no PSB",
			    (size_t)(d.c.pos - d.trace));
	bundle_cpu(b, index, &size);
	while (l->error == 0 && (d.c.pos < d.end || pass_seam(&d, d.trace + size)))
		if (d.c.pos < d.end)
			write_packet(&d);
	pevent_until(pevent, UINT64_MAX);
	return l->error;
}

int views_packets(const struct bundle *b, const struct decode_options *options, struct lines *l)
{
	const struct manifest *m = bundle_manifest(b);
	int r = 0;

	if (is_raw(m) && m->have_cpu && !errata_known(m->cpu_family, m->cpu_model))
		lines_print(l, "[0: failed to determine errata: unknown cpu]\n");
	for (size_t i = 0; i < m->n_cpus && r == 0; i++) {
		if (m->n_cpus > 1 && m->cpus[i].cpu == MANIFEST_ANY)
			lines_print(l, "# tid %u\n", m->cpus[i].tid);
		else if (m->n_cpus > 1)
			lines_print(l, "# cpu %u\n", m->cpus[i].cpu);
		r = write_cpu(b, options, i, l);
	}
	return r == 0 ? lines_flush(l) : r;
}

/* The last PSB at or before POS, or else the first PSB of the trace. */
static const uint8_t *last_psb(const struct dump *d, const uint8_t *pos)
{
	const uint8_t *end = d->end - pos < PT_PSB_SIZE ? d->end : pos + PT_PSB_SIZE, *found = NULL;
	size_t back;

	/* In steps that grow; each step searches the bytes that the step before could not see. */
	for (back = PT_PSB_SIZE; !found && back / 2 < (size_t)(pos - d->trace); back *= 2)
		for (const uint8_t *p = pos - MIN_OF(back, (size_t)(pos - d->trace));
		     (p = sync_find(p, end)) && p <= pos; p += PT_PSB_SIZE)
			found = p;
	return found ? found : sync_find(pos, d->end);
}

int views_packets_before(const struct bundle *b, const struct decode_options *options, size_t index,
			 uint64_t offset, enum fault kind, struct lines *l)
{
	const uint8_t *window, *gap;
	struct dump d;

	assert(index < bundle_manifest(b)->n_cpus);
	dump_init(&d, b, index, options, l);
	gap = d.trace + MIN_OF(offset, (uint64_t)(d.end - d.trace));
	window = gap - MIN_OF((size_t)(gap - d.trace), (size_t)VIEWS_PACKETS_BEFORE);
	begin_at(&d, last_psb(&d, window));
	while (d.c.pos < gap && l->error == 0) {
		d.line.hidden = d.c.pos < window;
		write_packet(&d);
	}
	d.line.hidden = false;
	lines_print(l, "# gap %s\n", fault_name(kind));
	if (d.c.pos < d.end)
		write_packet(&d);
	return lines_flush(l);
}
