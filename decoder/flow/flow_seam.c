/*
 * Begins anew behind a seam, where the bytes of a trace do not go on.
 *
 * Each piece between two seams is walked like a trace of its own: no packet, address, time or
 * return address of the piece before is used for the next. Between the pieces stands a gap. What is
 * kept is code, counts, and the last time, so that a piece that is older than the piece before is
 * found (FAULT_TIME_BACKWARDS).
 */
#include "decoder/flow/flow_private.h"
#include "decoder/packet/packet.h"
#include "proto/base.h"

bool flow_has_piece(const struct flow *f)
{
	return f->pieces.next < f->config.n_seams &&
	       f->config.seams[f->pieces.next].offset < f->pieces.stop;
}

/* Where the piece ends that seam number I is behind. */
static size_t end_of(const struct flow *f, size_t i)
{
	return i < f->config.n_seams ? (size_t)f->config.seams[i].offset : f->pieces.size;
}

/* The TSC of the first PSB of the next piece; 0: none. */
static uint64_t tsc_behind(const struct flow *f)
{
	const uint8_t *trace = f->config.trace, *psb = NULL;
	const uint8_t *end = trace + end_of(f, f->pieces.next + 1);
	uint64_t tsc;

	if (f->pieces.next < f->config.n_seams)
		psb = sync_find(trace + f->config.size, end);
	return psb && sync_tsc(psb, end, &tsc) ? tsc : 0;
}

/* Sets the reader and the clock to BEGIN, in the piece that ends with seam f->pieces.next. */
static void set_piece(struct flow *f, size_t begin)
{
	const struct flow_config *c = &f->config;
	bool last = f->pieces.next == c->n_seams;
	struct timing_config timing = {.mtc_period = c->mtc_period,
				       .max_nonturbo_ratio = c->max_nonturbo_ratio,
				       .tsc_art_num = c->tsc_art_num,
				       .tsc_art_den = c->tsc_art_den,
				       .end_tsc = c->end_tsc,
				       .quirks = event_quirks(&f->errata),
				       .skl168 = f->errata.skl168};
	uint64_t tsc;

	f->config.size = end_of(f, f->pieces.next);
	f->config.cut = !last || f->pieces.cut;
	/* The TSC of a CPU rises, so nothing before the seam is later than what is behind it. */
	tsc = tsc_behind(f);
	if (tsc != 0 && (timing.end_tsc == 0 || tsc < timing.end_tsc))
		timing.end_tsc = tsc;
	event_reader_init(&f->reader, c->trace, c->size, begin, MIN_OF(f->pieces.stop, c->size),
			  f->errata);
	timing_init(&f->timing, c->trace, c->size, begin, &timing);
}

static void push_seam(struct flow *f, const struct flow_seam *seam, size_t begin, uint64_t lo)
{
	const uint8_t *trace = f->config.trace;
	struct flow_gap gap = {.fault = seam->fault,
			       .offset = seam->offset,
			       .bytes = begin - seam->offset,
			       .read = seam->offset,
			       .tsc_lo = lo,
			       .tsc_hi = UINT64_MAX};
	uint64_t tsc;

	if (begin < f->config.size && sync_tsc(trace + begin, trace + f->config.size, &tsc))
		gap.tsc_hi = MAX_OF(tsc, lo);
	flow_push_gap(f, &gap);
}

void flow_begin_trace(struct flow *f, size_t begin, size_t stop)
{
	const struct flow_config *c = &f->config;
	const struct flow_seam *at;

	f->pieces = (struct flow_pieces){
		.next = FIRST_WHERE(i, c->n_seams, c->seams[i].offset > begin),
		.size = c->size,
		.stop = stop,
		.cut = c->cut,
	};
	set_piece(f, begin);
	if (c->from_tsc != 0 || c->from_offset != 0)
		event_note_before(&f->reader, c->trace + begin);
	if (f->pieces.next == 0 || begin == stop)
		return;
	/* The part of the trace before ends at the seam and says nothing of it. */
	at = &c->seams[f->pieces.next - 1];
	if (at->offset == begin && c->from_offset == begin)
		push_seam(f, at, begin, f->reader.time);
}

void flow_begin_piece(struct flow *f)
{
	const struct flow_seam *seam = &f->config.seams[f->pieces.next++];
	const struct event_reader before = f->reader;
	const uint64_t lo = f->in.event_when.lo;
	const uint8_t *trace = f->config.trace, *psb;
	size_t end, begin;

	ahead_close(f->ahead.trace);
	f->ahead.trace = NULL;
	f->ahead.tried = false;
	end = end_of(f, f->pieces.next);
	psb = sync_find(trace + seam->offset, trace + end);
	begin = psb ? (size_t)(psb - trace) : end;
	begin = MIN_OF(begin, f->pieces.stop);
	flow_release(f);
	f->in = (struct flow_in){0};
	f->held = (struct flow_held){0};
	f->sync = (struct flow_sync){.end = f->sync.end};
	f->loop = (struct flow_loop){0};
	f->at = (struct flow_at){
		.context = f->at.context, .mode = f->at.mode, .offset = f->at.offset};
	set_piece(f, begin);
	f->reader.counts = before.counts;
	f->reader.time = before.time;
	f->reader.psb_time = before.psb_time;
	push_seam(f, seam, begin, lo);
	f->done = begin == MIN_OF(end, f->pieces.stop);
}
