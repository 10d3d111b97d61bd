/*
 * Flow -> pieces: cuts the batches of a CPU where the stretch's thread changes. Called by replay.c,
 * which says whose turn it is. Whose code it is, whose.c answers when the flow asks.
 */
#include "decoder/worker/walk.h"

#include <stdlib.h>
#include <string.h>

#include "decoder/worker/replay_kernel.h"
#include "decoder/worker/whose.h"
#include "decoder/worker/window.h"
#include "proto/base.h"

/* With more CPUs than that, smaller batches: each has one in memory. */
#define FEW_CPUS    8u
#define SMALL_BATCH 512u

struct walk {
	struct replay *replay;
	size_t index; /* into the manifest's CPUs */
	uint64_t stop_ns;
	struct flow *flow;
	size_t size; /* bytes of the trace */
	const struct replay_consumer *consumer;
	struct whose whose;
	struct flow_batch batch;
	size_t item, gap, mark; /* of the batch, not given yet */
	size_t answer;		/* of whose, that holds for that item */
	bool switched;		/* and begins with it */
	bool waits;		/* the flow is to be asked again when all others are further */
	unsigned percent;
};

static uint64_t on_context(void *userdata, uint64_t ip, uint64_t tsc_lo, uint64_t tsc_hi)
{
	struct walk *w = userdata;

	return whose_ask(&w->whose, ip, tsc_lo, tsc_hi);
}

static int on_kernel_code(void *userdata, uint64_t ip, uint32_t version, struct flow_code *ret)
{
	const struct walk *w = userdata;

	return replay_kernel_code(w->replay, ip, version, ret);
}

static uint32_t on_kernel_version(void *userdata, uint64_t ip, uint64_t tsc_lo, uint64_t tsc_hi,
				  uint32_t *ret_last)
{
	const struct walk *w = userdata;

	return replay_kernel_version(w->replay, &w->replay->clocks[w->index], ip, tsc_lo, tsc_hi,
				     ret_last);
}

static int on_code(void *userdata, uint64_t ip, struct flow_code *ret)
{
	const struct walk *w = userdata;

	return whose_code(w->replay, ip, ret);
}

/* Where to begin when a time was asked for; 0: at the beginning. */
static uint64_t from_tsc(const struct walk *w, const uint8_t *trace, size_t size)
{
	const struct manifest *m = w->replay->manifest;
	/* The time is asked for before the trigger; a processor may stop a good deal later. One
	 * that was away had stopped before, nobody knows when. */
	uint64_t tsc, until = MIN_OF(w->stop_ns, m->perf_ns);

	if (m->last_ns == MANIFEST_ABSENT || until == MANIFEST_ABSENT || until < m->last_ns)
		return 0;
	tsc = tscmap_tsc(&w->replay->clocks[w->index], until - m->last_ns);
	return tsc == MANIFEST_ABSENT ? 0 : window_begin(trace, size, tsc);
}

/* The stop's time is rounded down to whole ns: one more is certainly behind it. 0: unknown; also of
 * a CPU that did not answer the stop: it may have been over long before. */
static uint64_t end_tsc(const struct walk *w)
{
	const struct manifest_cpu *cpu = &w->replay->manifest->cpus[w->index];
	uint64_t tsc = w->stop_ns == MANIFEST_ABSENT || cpu->stop_timeout
			       ? MANIFEST_ABSENT
			       : tscmap_tsc(&w->replay->clocks[w->index], w->stop_ns + 1);

	return tsc == MANIFEST_ABSENT ? 0 : tsc + 1;
}

static void configure(struct walk *w, const struct walk *first, struct flow_config *config)
{
	const struct manifest *m = w->replay->manifest;

	*config = (struct flow_config){
		.mtc_period = m->mtc_period,
		.max_nonturbo_ratio = m->max_nonturbo_ratio,
		.tsc_art_num = m->tsc_art_num,
		.tsc_art_den = m->tsc_art_den,
		.code = on_code,
		.context = on_context,
		.userdata = w,
		.share = first != NULL ? first->flow : NULL,
		.batch_items = m->n_cpus > FEW_CPUS ? SMALL_BATCH : 0,
	};
	if (w->replay->kernel != NULL) {
		config->kernel_start = w->replay->kernel_start;
		config->kernel_code = on_kernel_code;
		config->kernel_version = on_kernel_version;
		config->switch_ip = w->replay->switch_ip;
	}
	if (m->have_cpu && m->cpu_intel) {
		config->cpu_family = m->cpu_family;
		config->cpu_model = m->cpu_model;
		config->cpu_stepping = m->cpu_stepping;
	}
	config->trace = bundle_cpu(w->replay->bundle, w->index, &config->size);
	config->from_tsc = from_tsc(w, config->trace, config->size);
	config->end_tsc = end_tsc(w);
	config->cut = m->cpus[w->index].stop_timeout || w->replay->options.cut;
	config->marks = w->replay->options.marks;
	config->ticks = w->replay->options.ticks;
	config->guests = w->replay->options.guests;
	config->resume_at_psb = w->replay->options.resume_at_psb;
	config->resume_at_tip = w->replay->options.resume_at_tip;
	config->retstack_libipt = w->replay->options.retstack_libipt;
	w->size = config->size;
}

int walk_new(struct replay *r, size_t index, const struct replay_consumer *consumer,
	     struct walk *first, struct walk **ret)
{
	struct walk *w = calloc(1, sizeof(*w));
	struct flow_config config;
	int result;

	if (w == NULL)
		return -ENOMEM;
	w->replay = r;
	w->index = index;
	w->stop_ns = r->manifest->cpus[index].stop_ns;
	w->consumer = consumer;
	configure(w, first, &config);
	result = flow_new(&config, &w->flow);
	if (result == 0)
		result = whose_init(&w->whose, r, index, w->flow);
	if (result < 0) {
		walk_free(w);
		return result;
	}
	*ret = w;
	return 0;
}

void walk_free(struct walk *w)
{
	if (w == NULL)
		return;
	whose_done(&w->whose);
	flow_free(w->flow);
	free(w);
}

const struct flow_stats *walk_stats(const struct walk *w)
{
	return flow_get_stats(w->flow);
}

/* The answer that holds for ITEM, which stands behind those of answer AT. */
static size_t answer_for(const struct walk *w, size_t at, const struct flow_item *item)
{
	const struct whose *whose = &w->whose;

	while (item->kind == FLOW_ENABLE && at + 1 < whose->n_answers &&
	       !whose->answers[at + 1].at_batch && whose->answers[at + 1].offset <= item->offset)
		at++;
	return at;
}

uint64_t walk_at(const struct walk *w)
{
	if (w->item < w->batch.n_items)
		return w->whose.answers[answer_for(w, w->answer, &w->batch.items[w->item])].since;
	return w->waits ? w->whose.waits_for : w->whose.answers[w->answer].since;
}

static size_t count_kind(const struct flow_item *items, size_t n, enum flow_kind kind)
{
	size_t i, found = 0;

	for (i = 0; i < n; i++)
		found += items[i].kind == kind;
	return found;
}

/* Items [w->item, END) are of the answer w->answer. */
static int give(struct walk *w, size_t end)
{
	const struct whose_answer *answer = &w->whose.answers[w->answer];
	const struct flow_item *items = w->batch.items + w->item;
	struct replay_stretch s = {
		.items = items,
		.n_items = end - w->item,
		.gaps = w->batch.gaps + w->gap,
		.n_gaps = count_kind(items, end - w->item, FLOW_GAP),
		.first_gap = w->gap,
		.marks = w->batch.marks + w->mark,
		.n_marks = count_kind(items, end - w->item, FLOW_MARK),
		.first_mark = w->mark,
		.flow = w->flow,
		.cpu = w->index,
		.context = w->batch.context < CONTEXTS_IMAGE_UNCERTAIN ? (uint32_t)w->batch.context
								       : 0,
		.thread = answer->thread,
		.process = answer->process,
		.switched = w->switched,
	};

	w->switched = false;

	w->item = end;
	w->gap += s.n_gaps;
	w->mark += s.n_marks;
	return w->consumer->stretch(w->consumer->userdata, &s);
}

/* Beyond the last item that still goes to the same thread, up to LIMIT. */
static size_t piece_end(struct walk *w, uint64_t limit)
{
	const struct whose_answer *answers = w->whose.answers;
	size_t i, at;

	w->answer = answer_for(w, w->answer, &w->batch.items[w->item]);
	for (i = w->item + 1; i < w->batch.n_items; i++) {
		if (w->batch.items[i].kind != FLOW_ENABLE)
			continue;
		at = answer_for(w, w->answer, &w->batch.items[i]);
		if (at == w->answer)
			continue;
		if (answers[at].thread != answers[w->answer].thread || answers[at].thread == NULL ||
		    answers[at].since > limit)
			break;
		w->answer = at;
	}
	return i;
}

static int give_all(struct walk *w, uint64_t limit)
{
	int r = 0;

	/* Flow may have looked ahead; what is asked for now is code of this batch. */
	w->replay->asking = (uint32_t)w->batch.context;
	w->replay->late = 0;
	while (r == 0 && w->item < w->batch.n_items && walk_at(w) <= limit)
		r = give(w, piece_end(w, limit));
	return r;
}

static void tell_progress(struct walk *w)
{
	const struct flow_batch *b = &w->batch;
	uint64_t offset = b->n_items > 0 ? b->items[b->n_items - 1].offset : 0;
	unsigned percent = (unsigned)(MIN_OF(offset, w->size) / (w->size / 100 + 1));

	if (w->consumer->progress == NULL || percent <= w->percent)
		return;
	w->percent = percent;
	w->consumer->progress(w->consumer->userdata, w->index, percent);
}

/* What was answered while the last batch was made, and holds from the next one on. False: nothing.
 */
static bool take_answer(struct walk *w)
{
	for (size_t i = w->whose.n_answers; i-- > 1;) {
		if (!w->whose.answers[i].at_batch)
			continue;
		w->answer = i;
		return true;
	}
	return false;
}

static int decode_on(struct walk *w)
{
	int r;

	whose_begin(&w->whose, w->answer, w->waits);
	w->answer = 0;
	w->switched = take_answer(w);
	w->waits = false;
	w->item = w->gap = w->mark = 0;
	r = flow_next(w->flow, &w->batch);
	if (w->whose.error != 0)
		return w->whose.error;
	if (r == FLOW_DONE) {
		whose_end(&w->whose);
		return WALK_DONE;
	}
	w->waits = r == FLOW_LATER;
	tell_progress(w);
	return w->waits ? 0 : r;
}

int walk_on(struct walk *w, uint64_t limit)
{
	if (w->item == w->batch.n_items) {
		int r = decode_on(w);

		if (r != 0)
			return r;
	}
	return give_all(w, limit);
}
