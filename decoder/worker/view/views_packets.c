/*
 * From traces to lines about their packets. Called by decode.c in ptsnap-decode.
 *
 * Each byte is read as part of at most one packet between two PSBs; behind an error the search goes
 * on at most 15 bytes before it, and never finds a PSB again.
 */
#include "decoder/worker/view/views_packets.h"

#include <inttypes.h>
#include <string.h>

#include "decoder/packet/errata.h"
#include "decoder/packet/packet.h"
#include "decoder/worker/view/packet_line.h"
#include "proto/base.h"
#include "proto/perf/ptpacket.h"

/* One CPU's trace on its way. */
struct dump {
	struct packet_line line;
	const uint8_t *trace, *end;
	const uint8_t *sync; /* decoded from here on; NULL: not yet */
	struct packet_cursor c;
	bool plain; /* only what ptdump writes */
};

static bool is_raw(const struct manifest *m)
{
	return m->source != NULL && strcmp(m->source, "raw") == 0;
}

static struct errata errata_of(const struct manifest *m)
{
	static const struct errata none;

	return m->have_cpu ? errata_for(m->cpu_family, m->cpu_model) : none;
}

static void dump_init(struct dump *d, const struct bundle *b, size_t index,
		      const struct decode_options *options, struct lines *l)
{
	const struct manifest *m = bundle_manifest(b);
	const struct errata e = errata_of(m);
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
	packet_line_init(&d->line, options->show, &config, l);
	d->trace = bundle_cpu(b, index, &size);
	d->end = d->trace + size;
	d->c.end = d->end;
	d->c.quirks = (uint8_t)((e.skd007 ? PACKET_SKD007 : 0) | (e.skz84 ? PACKET_SKZ84 : 0));
}

/* What lies before the first place that can be decoded. */
static void note_head(const struct dump *d)
{
	size_t size = (size_t)(d->c.pos - d->trace);

	if (!d->plain && size > 0)
		lines_print(d->line.lines, "# %s at 0: %zu bytes skipped\n",
			    d->c.pos < d->end ? "before the first PSB" : "no PSB", size);
}

static void begin_at(struct dump *d, const uint8_t *pos)
{
	d->sync = d->c.pos = pos != NULL ? pos : d->end;
	d->c.bip_bytes = 0;
}

/* Behind an error, at the next PSB, of which the packet before it may have taken a part. */
static void resync(struct dump *d)
{
	const uint8_t *from = d->sync + 1;

	if (d->c.pos - from >= PT_PSB_SIZE)
		from = d->c.pos - (PT_PSB_SIZE - 1);
	begin_at(d, sync_find(from, d->end));
	packet_line_reset(&d->line);
}

static void write_packet(struct dump *d)
{
	const uint8_t *pos = d->c.pos;
	uint64_t offset = (uint64_t)(pos - d->trace);
	struct packet p;
	int r = packet_next(&d->c, &p);

	if (r == 0) {
		packet_line_write(&d->line, &p, pos, offset);
		return;
	}
	if (r == PACKET_BAD) {
		packet_line_say(&d->line, offset, "error decoding packet", packet_why(pos, d->end));
		resync(d);
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
	int r = 0;

	dump_init(&d, b, index, options, l);
	/* They are nobody's in particular. */
	if (index == 0)
		r = pevent_new(b, options, l, &pevent);
	if (r < 0)
		return r;
	d.line.pevent = pevent;
	begin_at(&d, options->show & WORKER_SHOW_NO_SYNC ? d.trace : sync_find(d.trace, d.end));
	note_head(&d);
	while (d.c.pos < d.end && l->error == 0)
		write_packet(&d);
	pevent_until(pevent, UINT64_MAX);
	return l->error;
}

static void write_number(const struct manifest *m, size_t index, struct lines *l)
{
	if (m->n_cpus <= 1)
		return;
	if (m->cpus[index].cpu == MANIFEST_ANY)
		lines_print(l, "# tid %u\n", m->cpus[index].tid);
	else
		lines_print(l, "# cpu %u\n", m->cpus[index].cpu);
}

int views_packets(const struct bundle *b, const struct decode_options *options, struct lines *l)
{
	const struct manifest *m = bundle_manifest(b);
	int r = 0;

	if (is_raw(m) && m->have_cpu && !errata_known(m->cpu_family, m->cpu_model))
		lines_print(l, "[0: failed to determine errata: unknown cpu]\n");
	for (size_t i = 0; i < m->n_cpus && r == 0; i++) {
		write_number(m, i, l);
		r = write_cpu(b, options, i, l);
	}
	return r == 0 ? lines_flush(l) : r;
}

/* The last PSB at or before POS; else the first one. */
static const uint8_t *last_psb(const struct dump *d, const uint8_t *pos)
{
	const uint8_t *end = d->end - pos < PT_PSB_SIZE ? d->end : pos + PT_PSB_SIZE, *found = NULL;
	size_t back;

	/* In steps that grow, each over what the one before could not see. */
	for (back = PT_PSB_SIZE; found == NULL && back / 2 < (size_t)(pos - d->trace); back *= 2)
		for (const uint8_t *p = pos - MIN_OF(back, (size_t)(pos - d->trace));
		     (p = sync_find(p, end)) != NULL && p <= pos; p += PT_PSB_SIZE)
			found = p;
	return found != NULL ? found : sync_find(pos, d->end);
}

int views_packets_before(const struct bundle *b, const struct decode_options *options, size_t index,
			 uint64_t offset, enum fault kind, struct lines *l)
{
	const uint8_t *window, *gap;
	struct dump d;

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
