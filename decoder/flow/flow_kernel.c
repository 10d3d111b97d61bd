/*
 * Knows the kernel's code in a trace: it is kept once for all contexts, and in several versions
 * where the kernel patches itself. The context function is asked behind it, and where a thread
 * switch is seen.
 *
 * Only blocks that begin at a place that changes have versions (graph.h). Where the time of such a
 * block does not tell on which side of a change it lies, both versions are tried on the packets
 * that follow.
 */
#include <stdlib.h>

#include "decoder/flow/flow_private.h"
#include "proto/base.h"

#define TRIAL_ITEMS   128u
#define TRIAL_STEPS   512u
#define TRIALS_MAX    8192u /* of one flow; after these time alone decides */
#define VERSIONS_MAX  4u    /* versions that are tried */
#define TABLE_MIN     64u
#define TABLE_MAX     65536u
#define VERSION_FIRST 1u

bool flow_is_kernel(const struct flow *f, uint64_t ip)
{
	return f->config.kernel_start != 0 && ip >= f->config.kernel_start;
}

static uint32_t ask_version(struct flow *f, uint64_t ip, struct flow_when when, uint32_t *ret_last)
{
	*ret_last = 0;
	if (!f->config.kernel_version)
		return 0;
	return f->config.kernel_version(f->config.userdata, ip, when.lo, when.hi, ret_last);
}

static struct flow_version *find_version(const struct flow *f, uint64_t ip)
{
	size_t mask = f->versions.n_max - 1;
	size_t i = (size_t)(ip * UINT64_C(0x9e3779b97f4a7c15) >> 40) & mask;

	while (f->versions.list[i].version != 0 && f->versions.list[i].ip != ip)
		i = (i + 1) & mask;
	return &f->versions.list[i];
}

/* Makes room for one place more. False: no memory. */
static bool grow_versions(struct flow *f)
{
	size_t old_max = f->versions.n_max;
	struct flow_version *old = f->versions.list;

	if (f->versions.n * 2 < old_max)
		return true;
	f->versions.n_max = old_max == 0 ? TABLE_MIN : MIN_OF(old_max * 2, (size_t)TABLE_MAX * 2);
	f->versions.list = calloc(f->versions.n_max, sizeof(*f->versions.list));
	if (!f->versions.list) {
		f->versions.list = old;
		f->versions.n_max = old_max;
		return false;
	}
	f->versions.n = 0;
	/* A table of the largest size is emptied: a place that is visited again is added again. */
	for (size_t i = 0; i < old_max && old_max < f->versions.n_max; i++) {
		if (old[i].version == 0)
			continue;
		*find_version(f, old[i].ip) = old[i];
		f->versions.n++;
	}
	free(old);
	return true;
}

void flow_forget_versions(struct flow *f)
{
	free(f->versions.list);
	f->versions.list = NULL;
	f->versions.n = f->versions.n_max = 0;
}

uint64_t flow_context_at(struct flow *f, uint64_t ip)
{
	struct flow_when ever = {0, UINT64_MAX, 0};
	uint32_t version, last;

	if (!flow_is_kernel(f, ip))
		return f->at.context;
	version = ask_version(f, ip, ever, &last);
	if (version != 0 && f->versions.n > 0 && find_version(f, ip)->version != 0)
		version = find_version(f, ip)->version;
	return GRAPH_KERNEL | version;
}

/* Results of a trial, besides a number of steps up to a fault. */
#define TRIAL_FITS     UINT32_MAX
#define TRIAL_UNLIKELY (UINT32_MAX - 1) /* the version fits if the processor deferred a TIP */
#define TRIAL_UNKNOWN  (UINT32_MAX - 2) /* the code of that version is not known */

static uint32_t try(struct flow *s)
{
	uint32_t steps = 0;

	while (steps < TRIAL_STEPS && !s->done && !s->out.full && s->out.n_items < TRIAL_ITEMS) {
		flow_load(s);
		if (s->sync.on)
			flow_step_sync(s);
		else if (s->at.enabled && flow_step_on(s) != 0)
			return TRIAL_FITS;
		if (s->sync.on || s->out.n_gaps > 0) {
			enum fault fault = s->out.n_gaps > 0 ? s->gaps[0].fault : s->sync.gap.fault;

			return steps == 0 && fault == FAULT_KERNEL_TEXT ? TRIAL_UNKNOWN : steps;
		}
		if (!s->at.enabled)
			return s->in.tnt_n > 0 ? TRIAL_UNLIKELY : TRIAL_FITS;
		steps++;
	}
	return TRIAL_FITS;
}

static uint32_t try_version(struct flow *f, uint64_t ip, uint32_t version, uint32_t last)
{
	struct flow *s = flow_fork(f, TRIAL_ITEMS);

	if (!s)
		return 0;
	s->trying.ip = ip;
	s->trying.version = version;
	s->trying.late = version == last;
	return try(s);
}

/* The version of FIRST to LAST that fits the packets; of several, the version at the middle of the
 * time. Where the code of a version is not known, that version is taken. */
static uint32_t decide(struct flow *f, uint64_t ip, struct flow_when when, uint32_t first,
		       uint32_t last)
{
	uint64_t middle = when.lo + (when.hi - when.lo) / 2;
	struct flow_when instant = {middle, middle, when.offset};
	uint32_t best, far, other, unused, tried = 1;

	best = ask_version(f, ip, instant, &unused);
	if (f->trying.n >= TRIALS_MAX || best < first || best > last)
		return MIN_OF(MAX_OF(best, first), last);
	f->trying.n++;
	far = try_version(f, ip, best, last);
	for (other = first; other <= last && far != TRIAL_UNKNOWN && tried < VERSIONS_MAX;
	     other++) {
		uint32_t how_far = other == best ? 0 : try_version(f, ip, other, last);

		tried++;
		if (how_far != TRIAL_UNKNOWN && how_far <= far)
			continue;
		far = how_far;
		best = other;
	}
	return best;
}

/* Runs of a batch are of one version of each place. False: the batch has to end before another
 * version. */
static bool note_version(struct flow *f, uint64_t ip, uint32_t version)
{
	struct flow_version *known;

	if (f->trial || !grow_versions(f))
		return true;
	known = find_version(f, ip);
	if (known->version == version)
		return true;
	if (known->version != 0 && f->out.n_items > 0) {
		f->out.full = true;
		return false;
	}
	f->versions.n += known->version == 0;
	*known = (struct flow_version){ip, version};
	return true;
}

bool flow_code_context(struct flow *f, uint64_t *ret)
{
	struct flow_when when;
	uint32_t first, last;

	*ret = f->at.context;
	if (!flow_is_kernel(f, f->at.ip))
		return true;
	when = flow_between(f);
	first = ask_version(f, f->at.ip, when, &last);
	*ret = GRAPH_KERNEL | first;
	if (first < VERSION_FIRST)
		return true;
	if (f->trial && f->at.ip == f->trying.ip)
		first = f->trying.version;
	else if (f->trial)
		first = f->trying.late ? last : first;
	else if (first != last)
		first = decide(f, f->at.ip, when, first, last);
	*ret = GRAPH_KERNEL | first;
	return note_version(f, f->at.ip, first);
}

bool flow_may_cross(struct flow *f, uint64_t from, uint64_t to)
{
	uint64_t generation = graph_generation(f->graph);

	if (!f->config.context || f->ask.asked || !flow_is_kernel(f, from) || flow_is_kernel(f, to))
		return true;
	if (flow_may_ask(f)) {
		f->ask.returning = true;
		f->ask.context = f->config.context(f->config.userdata, to, f->in.event_when.lo,
						   f->in.event_when.hi);
		f->ask.returning = false;
		f->ask.asked = f->ask.context != FLOW_CONTEXT_LATER;
		if (!f->ask.asked)
			f->out.full = f->out.later = true;
	}
	if (f->ask.asked && generation == graph_generation(f->graph))
		return true;
	/* A trial may have thrown blocks away, or the context function has to be asked again: the
	 * same step is done anew. */
	flow_go(f, f->at.ip);
	f->loop.steps = 0;
	return false;
}

/* The last item leaves user code, by an instruction or in front of one. */
static void leave(struct flow *f)
{
	struct flow_item *last = &f->items[f->out.n_items - 1];
	struct flow_item left = *last;

	left.to = 0;
	left.kind = last->kind == FLOW_ASYNC ? FLOW_DISABLE : FLOW_SYSCALL;
	if (last->kind == FLOW_ASYNC)
		left.flags |= FLOW_ASYNC_STOP;
	f->ask.left = left;
	f->ask.have_left = true;
	if (f->trial) {
		*last = left;
		f->at.enabled = false;
	}
}

void flow_crossed(struct flow *f)
{
	const struct flow_item *last = &f->items[f->out.n_items - 1];
	bool from = flow_is_kernel(f, last->from), to = flow_is_kernel(f, last->to);

	if (!from && to) {
		leave(f);
	} else if (from && !to && f->trial) {
		f->at.enabled = false;
	} else if (from && !to && f->ask.asked) {
		f->ask.asked = false;
		f->ask.next = f->ask.context;
		f->ask.changes = f->ask.context != f->at.context;
		f->out.full |= f->ask.changes;
		flow_part(f);
	}
}

void flow_look_for_switch(struct flow *f)
{
	const struct flow_item *last;

	if (f->config.switch_ip == 0 || f->at.ip != f->config.switch_ip || f->out.n_items == 0 ||
	    !f->config.context)
		return;
	last = &f->items[f->out.n_items - 1];
	if (last->to != f->at.ip || !f->at.enabled)
		return;
	f->ask.switched = true;
	f->ask.next = f->config.context(f->config.userdata, f->at.ip, last->tsc_lo, last->tsc_hi);
	f->ask.switched = false;
	f->ask.changes = f->ask.next != FLOW_CONTEXT_LATER;
	f->out.full = true;
	flow_go(f, f->at.ip); /* a trial may have thrown blocks away */
}
