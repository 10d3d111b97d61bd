/*
 * Replays one CPU: has its flow make batches, and gives them to the consumer in pieces
 * that end where the thread changes.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "decoder/worker/replay/replay_private.h"
#include "decoder/worker/replay/segment.h"
#include "decoder/worker/replay/whose.h"
#include "proto/base.h"

/* With more CPUs batches are smaller, as each CPU has one in memory. */
#define FEW_CPUS    8u
#define SMALL_BATCH 512u

struct cpu_replay {
	struct replay *replay;
	size_t index; /* into the manifest's CPUs */
	uint64_t stop_ns;
	struct flow *flow;
	size_t size; /* bytes of the trace */
	const struct replay_consumer *consumer;
	struct whose whose;
	struct flow_batch batch;
	size_t item, gap, mark; /* of the batch, not given yet */
	size_t answer;		/* index into the answers of `whose`: the one for that item */
	bool switched;		/* the answer begins with that item */
	uint64_t given;		/* number of the answer of the last item that was given */
	bool waits;		/* the flow goes on when all other CPUs are further */
	unsigned percent;
};

/* --- For the flow --- */

static uint64_t on_context(void *userdata, uint64_t ip, uint64_t tsc_lo, uint64_t tsc_hi)
{
	struct cpu_replay *c = userdata;

	return whose_ask(&c->whose, ip, tsc_lo, tsc_hi);
}

static int on_kernel_code(void *userdata, uint64_t ip, uint32_t version, struct flow_code *ret)
{
	return replay_kernel_code(userdata, ip, version, ret);
}

static uint32_t on_kernel_version(void *userdata, uint64_t ip, uint64_t tsc_lo, uint64_t tsc_hi,
				  uint32_t *ret_last)
{
	const struct cpu_replay *c = userdata;

	return replay_kernel_version(c->replay, &c->replay->clocks[c->index], ip, tsc_lo, tsc_hi,
				     ret_last);
}

static int on_code(void *userdata, uint64_t context, uint64_t ip, struct flow_code *ret)
{
	return whose_code(userdata, (uint32_t)context, ip, ret);
}

/* The CPU's stop as a TSC: the stop's time is rounded down to whole ns, so one ns more is certainly
 * behind it. 0: unknown, as of a CPU that did not answer the stop and may have ended long before.
 */
static uint64_t end_tsc(const struct cpu_replay *c)
{
	const struct manifest_cpu *cpu = &c->replay->manifest->cpus[c->index];
	uint64_t tsc = c->stop_ns == MANIFEST_ABSENT || cpu->stop_timeout
			       ? MANIFEST_ABSENT
			       : tscmap_tsc(&c->replay->clocks[c->index], c->stop_ns + 1);

	return tsc == MANIFEST_ABSENT ? 0 : tsc + 1;
}

/* The flow that keeps the code asks for it, so its userdata is the replay and not one CPU. */
int cpu_replay_code(struct replay *r, struct flow **ret)
{
	/* Half of the limit is for code and for what the consumers know of it, a quarter each; the
	 * other half is for everything else. */
	struct flow_config config = {.trace = (const uint8_t *)"",
				     .code = on_code,
				     .userdata = r,
				     .batch_items = 1,
				     .memory = r->flow.memory / 4};

	if (r->kernel) {
		config.kernel_start = r->kernel_start;
		config.kernel_code = on_kernel_code;
	}
	return flow_new(&config, ret);
}

static void configure(struct cpu_replay *c, struct flow_config *config)
{
	const struct manifest *m = c->replay->manifest;
	const struct replay_part all = {0};
	const struct replay_part *part = c->replay->parts ? &c->replay->parts[c->index] : &all;
	const uint64_t since = replay_asked_since(c->replay, c->index);

	*config = c->replay->flow;
	config->mtc_period = m->mtc_period;
	config->max_nonturbo_ratio = m->max_nonturbo_ratio;
	config->tsc_art_num = m->tsc_art_num;
	config->tsc_art_den = m->tsc_art_den;
	config->context = on_context;
	config->userdata = c;
	config->share = c->replay->code;
	config->batch_items = m->n_cpus > FEW_CPUS ? SMALL_BATCH : 0;
	config->memory = 0; /* r->code has the limit */
	if (c->replay->kernel) {
		config->kernel_start = c->replay->kernel_start;
		config->kernel_version = on_kernel_version;
		config->switch_ip = c->replay->switch_ip;
	}
	if (m->have_cpu && m->cpu_intel) {
		config->cpu_family = m->cpu_family;
		config->cpu_model = m->cpu_model;
		config->cpu_stepping = m->cpu_stepping;
	}
	config->trace = bundle_cpu(c->replay->bundle, c->index, &config->size);
	config->seams = replay_seams(c->replay, c->index, &config->n_seams);
	config->from_offset = part->from;
	config->end_offset = part->end;
	/* A part that begins later lies within what was asked for. */
	if (part->from == 0 && !part->whole && since != 0)
		config->from_tsc = segment_window(config->trace, config->size, since);
	config->end_tsc = end_tsc(c);
	config->cut |= m->cpus[c->index].stop_timeout;
	c->size = config->size;
}

/* --- The replay of one CPU --- */

/* Processor time of all threads of this process counts. */
static void stopwatch_start(struct stopwatch *w)
{
	if (!w)
		return;
	w->wall_since = now_ns(CLOCK_MONOTONIC);
	w->cpu_since = now_ns(CLOCK_PROCESS_CPUTIME_ID);
}

static void stopwatch_stop(struct stopwatch *w)
{
	if (!w)
		return;
	w->cpu += now_ns(CLOCK_PROCESS_CPUTIME_ID) - w->cpu_since;
	w->wall += now_ns(CLOCK_MONOTONIC) - w->wall_since;
}

int cpu_replay_new(struct replay *r, size_t index, const struct replay_consumer *consumer,
		   struct cpu_replay **ret)
{
	struct cpu_replay *c = calloc(1, sizeof(*c));
	struct flow_config config;
	int result;

	if (!c)
		return -ENOMEM;
	c->replay = r;
	c->index = index;
	c->stop_ns = r->manifest->cpus[index].stop_ns;
	c->consumer = consumer;
	configure(c, &config);
	stopwatch_start(r->watch);
	result = flow_new(&config, &c->flow);
	if (result == 0)
		result = whose_init(&c->whose, r, index, c->flow);
	stopwatch_stop(r->watch);
	if (result < 0) {
		cpu_replay_free(c);
		return result;
	}
	*ret = c;
	return 0;
}

void cpu_replay_free(struct cpu_replay *c)
{
	if (!c)
		return;
	whose_done(&c->whose);
	flow_free(c->flow);
	free(c);
}

const struct flow_stats *cpu_replay_stats(const struct cpu_replay *c)
{
	return flow_get_stats(c->flow);
}

/* --- Pieces of a batch --- */

/* The answer that holds for ITEM, which stands behind the items of answer AT. */
static size_t answer_for(const struct cpu_replay *c, size_t at, const struct flow_item *item)
{
	const struct whose *whose = &c->whose;

	while (item->kind == FLOW_ENABLE && at + 1 < whose->n_answers &&
	       !whose->answers[at + 1].at_batch && whose->answers[at + 1].offset <= item->offset)
		at++;
	return at;
}

uint64_t cpu_replay_at(const struct cpu_replay *c)
{
	if (c->item < c->batch.n_items)
		return c->whose.answers[answer_for(c, c->answer, &c->batch.items[c->item])].since;
	return c->waits ? c->whose.waits_for : c->whose.answers[c->answer].since;
}

/* How many of N items are of KIND; the batch has MOST of them left. */
static size_t count_kind(const struct flow_item *items, size_t n, enum flow_kind kind, size_t most)
{
	size_t found = 0;

	for (size_t i = 0; i < n && found < most; i++)
		found += items[i].kind == kind;
	return found;
}

/* Gives items [c->item, END), which answer c->answer holds for. */
static int give(struct cpu_replay *c, size_t end)
{
	const struct whose_answer *answer = &c->whose.answers[c->answer];
	const struct flow_item *items = c->batch.items + c->item;
	struct replay_stretch s = {
		.items = items,
		.n_items = end - c->item,
		.gaps = c->batch.gaps + c->gap,
		.n_gaps = count_kind(items, end - c->item, FLOW_GAP, c->batch.n_gaps - c->gap),
		.first_gap = c->gap,
		.marks = c->batch.marks + c->mark,
		.n_marks = count_kind(items, end - c->item, FLOW_MARK, c->batch.n_marks - c->mark),
		.first_mark = c->mark,
		.batch = &c->batch,
		.flow = c->flow,
		.cpu = c->index,
		.context = c->batch.context < CONTEXTS_NONE ? (uint32_t)c->batch.context : 0,
		.thread = answer->thread,
		.process = answer->process,
		.candidates = &answer->candidates,
		.switched = c->switched,
		.goes_on = answer->number == c->given,
	};

	c->switched = false;
	c->given = answer->number;
	c->item = end;
	c->gap += s.n_gaps;
	c->mark += s.n_marks;
	return c->consumer->stretch(c->consumer->userdata, &s);
}

/* The end of the piece that begins at c->item: items of one thread, whose turns began up to LIMIT.
 */
static size_t piece_end(struct cpu_replay *c, uint64_t limit)
{
	const struct whose_answer *answers = c->whose.answers;
	size_t i;

	c->answer = answer_for(c, c->answer, &c->batch.items[c->item]);
	if (c->answer + 1 == c->whose.n_answers)
		return c->batch.n_items;
	for (i = c->item + 1; i < c->batch.n_items; i++) {
		size_t at;

		if (c->batch.items[i].kind != FLOW_ENABLE)
			continue;
		at = answer_for(c, c->answer, &c->batch.items[i]);
		if (at == c->answer)
			continue;
		if (answers[at].thread != answers[c->answer].thread || !answers[at].thread ||
		    answers[at].since > limit)
			break;
		c->answer = at;
	}
	return i;
}

static void tell_progress(struct cpu_replay *c)
{
	const struct flow_batch *b = &c->batch;
	uint64_t offset = b->n_items > 0 ? b->items[b->n_items - 1].offset : 0;
	unsigned percent = (unsigned)(MIN_OF(offset, c->size) / (c->size / 100 + 1));

	if (!c->consumer->progress || percent <= c->percent)
		return;
	c->percent = percent;
	c->consumer->progress(c->consumer->userdata, c->index, percent);
}

/* Sets c->answer to the answer that was given while the last batch was made and holds from the next
 * batch on. False: there is none. */
static bool take_answer(struct cpu_replay *c)
{
	for (size_t i = c->whose.n_answers; i-- > 1;) {
		if (!c->whose.answers[i].at_batch)
			continue;
		c->answer = i;
		return true;
	}
	return false;
}

static int decode_on(struct cpu_replay *c)
{
	const struct replay_consumer *consumer = c->consumer;
	int r;

	if (consumer->go_on && !consumer->go_on(consumer->userdata))
		return REPLAY_STOPPED;
	stopwatch_start(c->replay->watch);
	whose_begin(&c->whose, c->answer, c->waits);
	c->answer = 0;
	c->switched = take_answer(c);
	c->waits = false;
	c->item = c->gap = c->mark = 0;
	r = flow_next(c->flow, &c->batch);
	stopwatch_stop(c->replay->watch);
	if (c->whose.error != 0)
		return c->whose.error;
	if (r == FLOW_DONE) {
		whose_end(&c->whose);
		return CPU_REPLAY_DONE;
	}
	c->waits = r == FLOW_LATER;
	tell_progress(c);
	return c->waits ? 0 : r;
}

int cpu_replay_step(struct cpu_replay *c, uint64_t limit)
{
	int r = c->item == c->batch.n_items ? decode_on(c) : 0;

	/* The flow may be at a later time already than the items that are given. */
	c->replay->late = NULL;
	while (r == 0 && c->item < c->batch.n_items && cpu_replay_at(c) <= limit)
		r = give(c, piece_end(c, limit));
	return r;
}
