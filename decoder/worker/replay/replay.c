/*
 * Decodes the CPUs of a bundle together, the one with the earliest turn first, and finds code and
 * names of what they executed.
 */
#include "decoder/worker/replay/replay.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "decoder/worker/replay/replay_private.h"
#include "proto/base.h"

#define PAGE_SIZE UINT64_C(4096)

int replay_find(const struct replay *r, uint32_t context, uint64_t address, struct image_code *ret)
{
	const struct context *c = &r->contexts.list[context];

	assert(context < r->contexts.n);
	if (replay_is_kernel(r, address))
		return replay_kernel_find(r, address, ret);
	if (!c->space)
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

/* Page by page: an image keeps the pages that were asked for. */
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

uint64_t replay_asked_since(const struct replay *r, size_t index)
{
	const struct manifest *m = r->manifest;
	/* The time is asked for before the trigger; a processor may stop a good deal later. A
	 * processor that was away had stopped before, at an unknown time. */
	uint64_t tsc, until;

	assert(index < m->n_cpus);
	until = MIN_OF(m->cpus[index].stop_ns, m->perf_ns);
	if (m->last_ns == MANIFEST_ABSENT || until == MANIFEST_ABSENT || until < m->last_ns)
		return 0;
	tsc = tscmap_tsc(&r->clocks[index], until - m->last_ns);
	return tsc == MANIFEST_ABSENT ? 0 : tsc;
}

/* The CPUs that are not done. */
struct group {
	struct cpu_replay **list;
	size_t n;
};

/* The CPU that has to go on. *ret_limit: how far it goes before another CPU has to go on. If
 * several CPUs are at one time, the first of them in the list goes on until it is further, wherever
 * its batches end. */
static struct cpu_replay *first_of(const struct group *g, uint64_t *ret_limit)
{
	struct cpu_replay *first = NULL;
	uint64_t least = UINT64_MAX;

	*ret_limit = UINT64_MAX;
	for (size_t i = 0; i < g->n; i++) {
		uint64_t at = cpu_replay_at(g->list[i]);

		if (first && at >= least) {
			*ret_limit = MIN_OF(*ret_limit, at);
			continue;
		}
		*ret_limit = first ? least - 1 : UINT64_MAX;
		least = at;
		first = g->list[i];
	}
	return first;
}

static int go_together(struct group *g)
{
	while (g->n > 0) {
		uint64_t limit;
		struct cpu_replay *c = first_of(g, &limit);
		int r = cpu_replay_step(c, limit);
		size_t n = 0;

		if (r == 0)
			continue;
		if (r != CPU_REPLAY_DONE)
			return r;
		for (size_t i = 0; i < g->n; i++)
			if (g->list[i] != c)
				g->list[n++] = g->list[i];
		g->n = n;
	}
	return 0;
}

/* Decodes CPUs [FIRST, FIRST + N) of the manifest. CPUS and LEFT have room for N. */
static int decode_some(struct replay *r, size_t first, size_t n,
		       const struct replay_consumer *consumer, struct cpu_replay **cpus,
		       struct cpu_replay **left)
{
	struct group group = {.list = left};

	/* Forgets what an earlier replay learnt: the places where threads left user code lie ahead
	 * again. */
	for (size_t i = 0; i < n; i++)
		turns_forget(&r->turns, first + i);
	if (!r->code) {
		int result = cpu_replay_code(r, &r->code);

		if (result < 0)
			return result;
	}
	for (size_t i = 0; i < n; i++) {
		int result = cpu_replay_new(r, first + i, consumer, &cpus[i]);

		if (result < 0)
			return result;
		left[group.n++] = cpus[i];
	}
	return go_together(&group);
}

/* STATS for each CPU; may be NULL. */
static int replay_some(struct replay *r, size_t first, size_t n,
		       const struct replay_consumer *consumer, struct flow_stats *stats)
{
	CLEANUP_FREE struct cpu_replay **cpus = calloc(n + 1, sizeof(struct cpu_replay *));
	CLEANUP_FREE struct cpu_replay **left = calloc(n + 1, sizeof(struct cpu_replay *));
	int result = -ENOMEM;

	if (cpus && left)
		result = decode_some(r, first, n, consumer, cpus, left);
	for (size_t i = 0; i < n; i++) {
		struct cpu_replay *c = cpus ? cpus[i] : NULL;

		if (stats)
			stats[i] = c ? *cpu_replay_stats(c) : (struct flow_stats){0};
		cpu_replay_free(c);
	}
	r->late = NULL;
	return result;
}

int replay_all(struct replay *r, const struct replay_consumer *consumer)
{
	return replay_some(r, 0, r->manifest->n_cpus, consumer, consumer->stats);
}

int replay_cpu(struct replay *r, size_t index, const struct replay_consumer *consumer,
	       struct flow_stats *ret)
{
	assert(index < r->manifest->n_cpus);
	return replay_some(r, index, 1, consumer, ret);
}
