/*
 * Loads all that a bundle holds and decodes its CPUs together. Called by decode.c in
 * ptsnap-decode.
 *
 * Each CPU is decoded on its own (cpu_replay.c), in batches; the one whose next piece belongs to
 * the earliest turn goes on, up to where another one is earlier. A thread has one turn at a time,
 * so its pieces come in order. One that cannot tell whose its next piece is waits for those that
 * are behind it, and has to make do when there are none.
 */
#include "decoder/worker/replay/replay.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "decoder/worker/replay/cpu_replay.h"
#include "decoder/worker/replay/replay_images.h"
#include "decoder/worker/replay/replay_kernel.h"
#include "proto/base.h"

/* Mappings, in search of the only thread with code. */
#define MAX_LOOKS 65536u
#define PAGE_SIZE UINT64_C(4096)

int replay_find(const struct replay *r, uint32_t context, uint64_t address, struct image_code *ret)
{
	const struct context *c = &r->contexts.list[context];

	assert(context < r->contexts.n);
	if (replay_is_kernel(r, address))
		return replay_kernel_find(r, address, ret);
	if (c->space == NULL)
		return IMAGE_UNMAPPED;
	return image_find(r->images, c->space, c->time, address, ret);
}

void replay_symbol(const struct replay *r, uint64_t address, const struct image_code *code,
		   struct symbol *ret)
{
	if (replay_is_kernel(r, address))
		replay_kernel_symbol(r, address, code, ret);
	else
		symbols_find(r->symbols, code->image, code->offset + (address - code->address),
			     ret);
}

/* Page by page, as what was asked for is what is kept. */
size_t replay_read(const struct replay *r, uint32_t context, uint64_t address, uint8_t *to,
		   size_t size)
{
	size_t n = 0;

	while (n < size) {
		uint64_t ip = address + n, part = MIN_OF(size - n, PAGE_SIZE - ip % PAGE_SIZE);
		struct image_code code;

		if (replay_find(r, context, ip, &code) != 0)
			break;
		part = MIN_OF(part, code.size - (ip - code.address));
		memcpy(to + n, code.bytes + (ip - code.address), (size_t)part);
		n += (size_t)part;
	}
	return n;
}

/* The CPUs that are not done. */
struct group {
	struct cpu_replay **list;
	size_t n;
};

/* The one that has to go on, and in *ret_limit up to where before another one has to. Of several at
 * one time the first in the list goes on until it is further, wherever its batches end. */
static struct cpu_replay *first_of(const struct group *g, uint64_t *ret_limit)
{
	struct cpu_replay *first = NULL;
	uint64_t least = UINT64_MAX;
	size_t i;

	*ret_limit = UINT64_MAX;
	for (i = 0; i < g->n; i++) {
		uint64_t at = cpu_replay_at(g->list[i]);

		if (first != NULL && at >= least) {
			*ret_limit = MIN_OF(*ret_limit, at);
			continue;
		}
		*ret_limit = first != NULL ? least - 1 : UINT64_MAX;
		least = at;
		first = g->list[i];
	}
	return first;
}

static void leave(struct group *g, const struct cpu_replay *c)
{
	size_t i, n = 0;

	for (i = 0; i < g->n; i++)
		if (g->list[i] != c)
			g->list[n++] = g->list[i];
	g->n = n;
}

static int go_together(struct group *g)
{
	while (g->n > 0) {
		uint64_t limit;
		struct cpu_replay *c = first_of(g, &limit);
		int r = cpu_replay_step(c, limit);

		if (r == CPU_REPLAY_DONE)
			leave(g, c);
		else if (r != 0)
			return r;
	}
	return 0;
}

/* Of what was walked before nothing is known: where a thread left user code lies ahead now. */
static int begin(struct replay *r, size_t first, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		turns_forget(&r->turns, first + i);
	turns_restart(&r->turns);
	return r->code == NULL ? cpu_replay_keeper(r, &r->code) : 0;
}

static void end(struct replay *r, struct cpu_replay **cpus, size_t n)
{
	while (n-- > 0)
		cpu_replay_free(cpus[n]);
	r->late = NULL;
}

/* CPUs [FIRST, FIRST + N) of the manifest; STATS for each, may be NULL. */
static int replay_some(struct replay *r, size_t first, size_t n,
		       const struct replay_consumer *consumer, struct flow_stats *stats)
{
	CLEANUP_FREE struct cpu_replay **cpus = calloc(n + 1, sizeof(struct cpu_replay *));
	CLEANUP_FREE struct cpu_replay **left = calloc(n + 1, sizeof(struct cpu_replay *));
	struct group group = {.list = left};
	int result = cpus == NULL || left == NULL ? -ENOMEM : begin(r, first, n);
	size_t i;

	for (i = 0; i < n && result == 0; i++) {
		result = cpu_replay_new(r, first + i, consumer, &cpus[i]);
		left[i] = cpus[i];
		group.n += result == 0;
	}
	if (result == 0)
		result = go_together(&group);
	for (i = 0; i < n && stats != NULL; i++)
		stats[i] = cpus != NULL && cpus[i] != NULL ? *cpu_replay_stats(cpus[i])
							   : (struct flow_stats){0};
	if (cpus != NULL)
		end(r, cpus, n);
	return result;
}

int replay_all(struct replay *r, const struct replay_consumer *consumer)
{
	return replay_some(r, 0, r->manifest->n_cpus, consumer, consumer->stats);
}

int replay_cpu(struct replay *r, size_t index, const struct replay_consumer *consumer,
	       struct flow_stats *ret)
{
	return replay_some(r, index, 1, consumer, ret);
}

uint64_t replay_asked_since(const struct replay *r, size_t index)
{
	const struct manifest *m = r->manifest;
	/* The time is asked for before the trigger; a processor may stop a good deal later. One
	 * that was away had stopped before, nobody knows when. */
	uint64_t tsc, until = MIN_OF(m->cpus[index].stop_ns, m->perf_ns);

	if (m->last_ns == MANIFEST_ABSENT || until == MANIFEST_ABSENT || until < m->last_ns)
		return 0;
	tsc = tscmap_tsc(&r->clocks[index], until - m->last_ns);
	return tsc == MANIFEST_ABSENT ? 0 : tsc;
}

/* 1: it is code; 2: enough was looked at. */
static int find_code(void *userdata, const struct space_mapping *m)
{
	size_t *budget = userdata;

	if (*budget == 0)
		return 2;
	(*budget)--;
	return (m->prot & PROT_EXEC) != 0;
}

/* The only one whose code is known, or *ret_shared: one of the only process. NULL: there are more,
 * or too many to look at. */
static const struct timeline_thread *only_thread(const struct replay *r, bool *ret_shared)
{
	const struct timeline_thread *only = NULL;
	size_t i, budget = MAX_LOOKS;

	for (i = 0; i < timeline_n_threads(r->timeline); i++) {
		const struct timeline_thread *thread = timeline_thread(r->timeline, i);
		const struct space *space = timeline_space(r->timeline, thread->pid, SPACE_NOW - 1);
		int found =
			space == NULL ? 0 : space_foreach(space, SPACE_NOW - 1, find_code, &budget);

		if (found == 2 || (found == 1 && only != NULL && only->pid != thread->pid))
			return NULL;
		if (found == 1) {
			*ret_shared = only != NULL;
			only = thread;
		}
	}
	return only;
}

/* Nothing tells when who ran on that CPU. */
static bool is_untold(const struct replay *r, const struct manifest_cpu *cpu)
{
	return !r->manifest->have_clock || timeline_n_turns(r->timeline, cpu->cpu) == 0;
}

/* A thread's own trace is always its own. A CPU's is that of the only thread, if there is one and
 * nothing tells more. */
static int load_turn(struct replay *r, size_t index)
{
	const struct manifest_cpu *cpu = &r->manifest->cpus[index];
	const struct timeline_thread *thread = NULL;
	bool shared = false;

	if (cpu->tid != MANIFEST_ANY)
		thread = timeline_last_thread(r->timeline, cpu->tid);
	else if (is_untold(r, cpu))
		thread = only_thread(r, &shared);
	if (shared)
		r->process = thread;
	if (thread != NULL && !shared)
		return turns_give(&r->turns, index, thread);
	return turns_load(&r->turns, index, r->timeline, cpu->cpu);
}

static int load_turns(struct replay *r)
{
	const struct manifest *m = r->manifest;
	int result = turns_init(&r->turns, m->n_cpus);
	size_t i;

	for (i = 0; i < m->n_cpus && result == 0; i++)
		result = load_turn(r, i);
	return result == 0 ? turns_link(&r->turns) : result;
}

/* Names of code in memory. */
static int load_maps(struct replay *r)
{
	const struct manifest *m = r->manifest;
	int result = 0;

	for (size_t i = 0; i < m->n_texts && result == 0; i++) {
		size_t size;
		const void *text = bundle_text(r->bundle, i, &size);

		if (text != NULL && strcmp(m->texts[i].kind, MANIFEST_TEXT_PERF_MAP) == 0)
			result = symbols_add_map(r->symbols, m->texts[i].pid, text, size);
	}
	return result;
}

static int load(struct replay *r, const struct image_loader *loader)
{
	size_t size;
	const uint8_t *records = bundle_sideband(r->bundle, &size);
	int result = timeline_load(records, size, &r->timeline, &r->bad_records);

	if (result == 0)
		result = replay_images(r->bundle, r->timeline, loader, &r->images);
	if (result == 0)
		result = symbols_new(r->images, &r->symbols);
	if (result == 0)
		result = load_maps(r);
	if (result == 0)
		result = replay_kernel_load(r);
	if (result == 0)
		result = contexts_init(&r->contexts);
	if (result == 0)
		result = load_turns(r);
	return result;
}

static int find_clocks(struct replay *r)
{
	return shift_clocks(r->bundle, &r->turns, r->timeline, &r->clock, &r->shift, &r->clocks);
}

int replay_new_with(const struct bundle *bundle, const struct image_loader *loader,
		    int (*clocks)(struct replay *r), struct replay **ret)
{
	struct replay *r = calloc(1, sizeof(*r));
	int result;

	if (r == NULL)
		return -ENOMEM;
	r->bundle = bundle;
	r->manifest = bundle_manifest(bundle);
	tscmap_init(&r->clock, r->manifest);
	result = load(r, loader);
	if (result == 0)
		result = clocks(r);
	if (result != 0) {
		replay_free(r);
		return result;
	}
	*ret = r;
	return 0;
}

int replay_new(const struct bundle *bundle, const struct image_loader *loader, struct replay **ret)
{
	return replay_new_with(bundle, loader, find_clocks, ret);
}

void replay_free(struct replay *r)
{
	if (r == NULL)
		return;
	flow_free(r->code);
	kernel_free(r->kernel);
	symbols_free(r->symbols);
	image_set_free(r->images);
	timeline_free(r->timeline);
	contexts_done(&r->contexts);
	turns_done(&r->turns);
	shift_done(&r->shift);
	free(r->clocks);
	free(r);
}

void replay_freep(struct replay **r)
{
	replay_free(*r);
}
