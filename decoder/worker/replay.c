/*
 * Joins the two halves of a snapshot: the flow of a CPU asks for code and context, the timeline
 * answers by time. It joins and does not decode. CPU by CPU, oldest byte first. Called by decode.c
 * in ptsnap-decode.
 *
 * Who runs is asked when tracing is enabled and when the last answer has run out. An instant is an
 * interval of TSC; its later end is asked for first, as a switch or a mapping that made the packet
 * possible came before it; its earlier end where that gives nobody.
 */
#include "decoder/worker/replay.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "decoder/worker/window.h"
#include "proto/base.h"

/* One CPU on its way. */
struct walk {
	struct replay *replay;
	size_t index; /* into the manifest's CPUs */
	uint32_t cpu; /* its number */
	uint64_t stop_ns;
	struct flow *flow;
	const struct replay_consumer *consumer;
	const struct timeline_thread *thread;
	uint64_t thread_until; /* TSC */
	uint32_t context;
	bool ask; /* the thread is to be asked for at the next item */
	unsigned percent;
	int error; /* of the callbacks */
};

#define IDLE_STRETCHES 16 /* looked back over for a thread */

/* A time for the asking: that of TSC, or where nothing is known the end of the recording. */
static uint64_t time_of(const struct walk *w, uint64_t tsc)
{
	uint64_t ns = tsc == UINT64_MAX ? MANIFEST_ABSENT : tscmap_ns(&w->replay->clock, tsc);

	if (ns != MANIFEST_ABSENT)
		return ns;
	return w->stop_ns != MANIFEST_ABSENT ? w->stop_ns : SPACE_NOW - 1;
}

/* A raw trace has no switches: its one process ran all the time. */
static const struct timeline_thread *only_thread(const struct replay *r)
{
	const char *source = r->manifest->source;

	if (source == NULL || strcmp(source, "raw") != 0 || timeline_n_threads(r->timeline) != 1)
		return NULL;
	return timeline_thread(r->timeline, 0);
}

/* Who ran within [LO, HI], the last one if there were several: where time is coarse, the thread may
 * have been switched out again, for nobody, before HI. *ret_time: an instant at which it ran. */
static const struct timeline_thread *who(const struct walk *w, uint64_t lo, uint64_t hi,
					 uint64_t *ret_time, uint64_t *ret_until)
{
	const struct timeline *t = w->replay->timeline;
	uint64_t earliest = lo > 0 ? time_of(w, lo) : 0, since = 0;
	const struct timeline_thread *thread;

	*ret_time = time_of(w, hi);
	thread = timeline_running(t, w->cpu, *ret_time, &since, ret_until);
	for (unsigned int i = 0; thread == NULL && i < IDLE_STRETCHES; i++) {
		if (since == 0 || since <= earliest)
			break;
		*ret_time = since - 1;
		thread = timeline_running(t, w->cpu, *ret_time, &since, ret_until);
	}
	if (thread == NULL) {
		*ret_until = SPACE_NOW;
		thread = only_thread(w->replay);
	}
	return thread;
}

static uint64_t on_context(void *userdata, uint64_t ip, uint64_t tsc_lo, uint64_t tsc_hi)
{
	struct walk *w = userdata;
	const struct timeline_thread *thread;
	const struct space *space = NULL;
	uint32_t context = 0;
	uint64_t time, until;

	(void)ip;
	thread = who(w, tsc_lo, tsc_hi, &time, &until);
	if (thread != NULL)
		space = timeline_space(w->replay->timeline, thread->pid, time);
	if (space != NULL && contexts_intern(&w->replay->contexts, space, time, &context) < 0)
		w->error = -ENOMEM;
	w->context = context;
	return context;
}

static enum fault fault_of(int found)
{
	switch (found) {
	case IMAGE_ANONYMOUS: return FAULT_ANONYMOUS;
	case IMAGE_MISSING: return FAULT_IMAGE_MISSING;
	case IMAGE_SHORT: return FAULT_IMAGE_SHORT;
	default: return FAULT_UNMAPPED;
	}
}

int replay_find(const struct replay *r, uint32_t context, uint64_t address, struct image_code *ret)
{
	const struct context *c = &r->contexts.list[context];

	assert(context < r->contexts.n);
	if (c->space == NULL)
		return IMAGE_UNMAPPED;
	return image_find(r->images, c->space, c->time, address, ret);
}

static int on_code(void *userdata, uint64_t ip, struct flow_code *ret)
{
	struct walk *w = userdata;
	struct image_code code;
	int found;

	if (w->context == 0)
		return FAULT_NO_SPACE;
	found = replay_find(w->replay, w->context, ip, &code);
	if (found != 0)
		return fault_of(found);
	*ret = (struct flow_code){code.bytes, code.address, code.size};
	return 0;
}

static void ask_thread(struct walk *w, const struct flow_item *item)
{
	uint64_t time, until, tsc;

	w->thread = who(w, item->tsc_lo, item->tsc_hi, &time, &until);
	tsc = until == SPACE_NOW ? MANIFEST_ABSENT : tscmap_tsc(&w->replay->clock, until);
	w->thread_until = tsc;
	w->ask = false;
}

static int give(const struct walk *w, const struct flow_batch *b, size_t first, size_t end,
		const struct timeline_thread *thread)
{
	struct replay_stretch s = {
		.items = b->items + first,
		.n_items = end - first,
		.gaps = b->gaps,
		.n_gaps = first == 0 ? b->n_gaps : 0,
		.flow = w->flow,
		.cpu = w->index,
		.context = (uint32_t)b->context,
		.thread = thread,
	};

	return w->consumer->stretch(w->consumer->userdata, &s);
}

static bool must_ask(struct walk *w, const struct flow_item *item)
{
	bool ask = w->ask || item->kind == FLOW_ENABLE || item->tsc_lo > w->thread_until;

	/* After a gap, who knows. */
	w->ask = item->kind == FLOW_GAP;
	return ask;
}

/* Cuts a batch where the thread changes. */
static int give_batch(struct walk *w, const struct flow_batch *b)
{
	size_t i, first = 0;
	int r;

	if (b->n_items == 0)
		return b->n_gaps > 0 ? give(w, b, 0, 0, w->thread) : 0;
	for (i = 0; i < b->n_items; i++) {
		const struct timeline_thread *before = w->thread;

		if (!must_ask(w, &b->items[i]))
			continue;
		ask_thread(w, &b->items[i]);
		if (i == first || w->thread == before)
			continue;
		r = give(w, b, first, i, before);
		if (r != 0)
			return r;
		first = i;
	}
	return give(w, b, first, b->n_items, w->thread);
}

static void tell_progress(struct walk *w, const struct flow_batch *b, size_t size)
{
	uint64_t offset = b->n_items > 0 ? b->items[b->n_items - 1].offset : 0;
	unsigned percent = (unsigned)(MIN_OF(offset, size) / (size / 100 + 1));

	if (w->consumer->progress == NULL || percent <= w->percent)
		return;
	w->percent = percent;
	w->consumer->progress(w->consumer->userdata, w->index, percent);
}

static int walk_trace(struct walk *w, size_t size)
{
	struct flow_batch batch;
	uint64_t context = 0;
	uint32_t ahead;
	int r;

	for (;;) {
		r = flow_next(w->flow, &batch);
		if (r == 0 && w->error != 0)
			r = w->error;
		if (r != 0)
			return r == FLOW_DONE ? w->error : r;
		if (batch.context != context)
			w->ask = true;
		context = batch.context;
		/* Flow may have looked ahead; what is asked for now is code of this batch. */
		ahead = w->context;
		w->context = (uint32_t)batch.context;
		r = give_batch(w, &batch);
		w->context = ahead;
		if (r != 0)
			return r;
		tell_progress(w, &batch, size);
	}
}

/* Where to begin when a time was asked for; 0: at the beginning. */
static uint64_t from_tsc(const struct walk *w, const uint8_t *trace, size_t size)
{
	const struct manifest *m = w->replay->manifest;
	/* The time is asked for before the trigger; a processor may stop a good deal later. */
	uint64_t tsc, until = MIN_OF(w->stop_ns, m->perf_ns);

	if (m->last_ns == MANIFEST_ABSENT || w->stop_ns == MANIFEST_ABSENT || until < m->last_ns)
		return 0;
	tsc = tscmap_tsc(&w->replay->clock, until - m->last_ns);
	return tsc == MANIFEST_ABSENT ? 0 : window_begin(trace, size, tsc);
}

/* The stop's time is rounded down to whole ns: one more is certainly behind it. 0: unknown; also of
 * a CPU that did not answer the stop: it may have been over long before. */
static uint64_t end_tsc(const struct walk *w)
{
	const struct manifest_cpu *cpu = &w->replay->manifest->cpus[w->index];
	uint64_t tsc = w->stop_ns == MANIFEST_ABSENT || cpu->stop_timeout
			       ? MANIFEST_ABSENT
			       : tscmap_tsc(&w->replay->clock, w->stop_ns + 1);

	return tsc == MANIFEST_ABSENT ? 0 : tsc + 1;
}

static void configure(struct walk *w, struct flow_config *config)
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
	};
	if (m->have_cpu && m->cpu_intel) {
		config->cpu_family = m->cpu_family;
		config->cpu_model = m->cpu_model;
		config->cpu_stepping = m->cpu_stepping;
	}
	config->trace = bundle_cpu(w->replay->bundle, w->index, &config->size);
	config->from_tsc = from_tsc(w, config->trace, config->size);
	config->end_tsc = end_tsc(w);
	config->cut = m->cpus[w->index].stop_timeout;
}

int replay_cpu(struct replay *r, size_t index, const struct replay_consumer *consumer,
	       struct flow_stats *ret)
{
	const struct manifest_cpu *cpu = &r->manifest->cpus[index];
	struct walk w = {
		.replay = r,
		.index = index,
		.cpu = cpu->cpu,
		.stop_ns = cpu->stop_ns,
		.consumer = consumer,
		.ask = true,
	};
	struct flow_config config;
	int result;

	*ret = (struct flow_stats){0};
	configure(&w, &config);
	result = flow_new(&config, &w.flow);
	if (result < 0)
		return result;
	result = walk_trace(&w, config.size);
	*ret = *flow_get_stats(w.flow);
	flow_free(w.flow);
	return result;
}

static int collect_images(struct replay *r)
{
	const struct manifest *m = r->manifest;
	CLEANUP_FREE struct image_source *sources = calloc(m->n_images + 1, sizeof(*sources));
	size_t i;

	if (sources == NULL)
		return -ENOMEM;
	for (i = 0; i < m->n_images; i++) {
		const struct manifest_image *from = &m->images[i];
		struct image_source *to = &sources[i];

		*to = (struct image_source){
			.path = from->path,
			.maj = from->maj,
			.min = from->min,
			.ino = from->ino,
			.ino_generation = from->ino_generation,
			.offset = from->offset,
			.missing = from->missing,
		};
		to->bytes = bundle_image(r->bundle, i, &to->size);
	}
	return image_set_new(sources, m->n_images, &r->images);
}

static int load(struct replay *r)
{
	size_t size;
	const uint8_t *records = bundle_sideband(r->bundle, &size);
	int result = timeline_load(records, size, &r->timeline, &r->bad_records);

	if (result == 0)
		result = collect_images(r);
	if (result == 0)
		result = symbols_new(r->images, &r->symbols);
	if (result == 0)
		result = contexts_init(&r->contexts);
	return result;
}

int replay_new(const struct bundle *bundle, struct replay **ret)
{
	struct replay *r = calloc(1, sizeof(*r));
	int result;

	if (r == NULL)
		return -ENOMEM;
	r->bundle = bundle;
	r->manifest = bundle_manifest(bundle);
	tscmap_init(&r->clock, r->manifest);
	result = load(r);
	if (result != 0) {
		replay_free(r);
		return result;
	}
	*ret = r;
	return 0;
}

void replay_free(struct replay *r)
{
	if (r == NULL)
		return;
	symbols_free(r->symbols);
	image_set_free(r->images);
	timeline_free(r->timeline);
	contexts_done(&r->contexts);
	free(r);
}

void replay_freep(struct replay **r)
{
	replay_free(*r);
}
