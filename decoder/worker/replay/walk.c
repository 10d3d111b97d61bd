/*
 * Flow -> pieces: cuts the batches of a CPU where the stretch's thread changes. Called by replay.c,
 * which says whose turn it is. Whose code it is, whose.c answers when the flow asks.
 */
#include "decoder/worker/replay/walk.h"

#include <stdlib.h>
#include <string.h>

#include "decoder/worker/replay/replay_kernel.h"
#include "decoder/worker/replay/whose.h"
#include "decoder/worker/replay/window.h"
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
	uint64_t given;		/* number of the answer of the last item that was given */
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
	return replay_kernel_code(userdata, ip, version, ret);
}

static uint32_t on_kernel_version(void *userdata, uint64_t ip, uint64_t tsc_lo, uint64_t tsc_hi,
				  uint32_t *ret_last)
{
	const struct walk *w = userdata;

	return replay_kernel_version(w->replay, &w->replay->clocks[w->index], ip, tsc_lo, tsc_hi,
				     ret_last);
}

static int on_code(void *userdata, uint64_t context, uint64_t ip, struct flow_code *ret)
{
	return whose_code(userdata, (uint32_t)context, ip, ret);
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

/* Code is asked for where it is kept: of the replay and not of a walk. */
int walk_keeper(struct replay *r, struct flow **ret)
{
	/* As much again may be what is known of what is compiled, and the rest is for the rest. It
	 * walks no trace. */
	struct flow_config config = {.trace = (const uint8_t *)"",
				     .code = on_code,
				     .userdata = r,
				     .batch_items = 1,
				     .memory = r->flow.memory / 4};

	if (r->kernel != NULL) {
		config.kernel_start = r->kernel_start;
		config.kernel_code = on_kernel_code;
	}
	return flow_new(&config, ret);
}

/* A part lies within what was asked for, unless it is all. */
static void configure_part(const struct walk *w, struct flow_config *config)
{
	const struct replay_part all = {0};
	const struct replay_part *part =
		w->replay->parts != NULL ? &w->replay->parts[w->index] : &all;
	const uint64_t since = replay_asked_since(w->replay, w->index);

	config->from_offset = part->from;
	config->end_offset = part->end;
	if (part->from == 0 && since != 0)
		config->from_tsc = window_begin(config->trace, config->size, since);
}

static void configure(struct walk *w, struct flow_config *config)
{
	const struct manifest *m = w->replay->manifest;

	*config = w->replay->flow;
	config->mtc_period = m->mtc_period;
	config->max_nonturbo_ratio = m->max_nonturbo_ratio;
	config->tsc_art_num = m->tsc_art_num;
	config->tsc_art_den = m->tsc_art_den;
	config->context = on_context;
	config->userdata = w;
	config->share = w->replay->code;
	config->batch_items = m->n_cpus > FEW_CPUS ? SMALL_BATCH : 0;
	config->memory = 0; /* the flow that is shared has it */
	if (w->replay->kernel != NULL) {
		config->kernel_start = w->replay->kernel_start;
		config->kernel_version = on_kernel_version;
		config->switch_ip = w->replay->switch_ip;
	}
	if (m->have_cpu && m->cpu_intel) {
		config->cpu_family = m->cpu_family;
		config->cpu_model = m->cpu_model;
		config->cpu_stepping = m->cpu_stepping;
	}
	config->trace = bundle_cpu(w->replay->bundle, w->index, &config->size);
	configure_part(w, config);
	config->end_tsc = end_tsc(w);
	config->cut |= m->cpus[w->index].stop_timeout;
	w->size = config->size;
}

int walk_new(struct replay *r, size_t index, const struct replay_consumer *consumer,
	     struct walk **ret)
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
	configure(w, &config);
	stopwatch_start(r->watch);
	result = flow_new(&config, &w->flow);
	if (result == 0)
		result = whose_init(&w->whose, r, index, w->flow);
	stopwatch_stop(r->watch);
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

/* MOST: there are no more. */
static size_t count_kind(const struct flow_item *items, size_t n, enum flow_kind kind, size_t most)
{
	size_t i, found = 0;

	for (i = 0; i < n && found < most; i++)
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
		.n_gaps = count_kind(items, end - w->item, FLOW_GAP, w->batch.n_gaps - w->gap),
		.first_gap = w->gap,
		.marks = w->batch.marks + w->mark,
		.n_marks = count_kind(items, end - w->item, FLOW_MARK, w->batch.n_marks - w->mark),
		.first_mark = w->mark,
		.batch = &w->batch,
		.flow = w->flow,
		.cpu = w->index,
		.context = w->batch.context < CONTEXTS_NONE ? (uint32_t)w->batch.context : 0,
		.thread = answer->thread,
		.process = answer->process,
		.switched = w->switched,
		.goes_on = answer->number == w->given,
	};

	w->switched = false;
	w->given = answer->number;
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
	if (w->answer + 1 == w->whose.n_answers)
		return w->batch.n_items;
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

	/* The flow may be at a later time already than the items that are given. */
	w->replay->late = NULL;
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
	const struct replay_consumer *consumer = w->consumer;
	int r;

	if (consumer->go_on != NULL && !consumer->go_on(consumer->userdata))
		return REPLAY_STOPPED;
	stopwatch_start(w->replay->watch);
	whose_begin(&w->whose, w->answer, w->waits);
	w->answer = 0;
	w->switched = take_answer(w);
	w->waits = false;
	w->item = w->gap = w->mark = 0;
	r = flow_next(w->flow, &w->batch);
	stopwatch_stop(w->replay->watch);
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
