/*
 * States of CPUs, looked at now and then. Called by trigger.c: at each request, and by the manager
 * when it knows that something has changed.
 */
#include "daemon/trigger/fill.h"

#include <errno.h>
#include <stdlib.h>

#include "proto/base.h"

int fill_init(struct fill *f, const struct source *source, uint64_t now_ns)
{
	*f = (struct fill){.source = source, .started_ns = now_ns};
	f->since_ns = calloc(MAX_OF(source->n_cpus, (size_t)1), sizeof(*f->since_ns));
	if (!f->since_ns)
		return -ENOMEM;
	fill_look(f, now_ns);
	return 0;
}

void fill_done(struct fill *f)
{
	free(TAKE_PTR(f->since_ns));
}

void fill_look(struct fill *f, uint64_t now_ns)
{
	for (size_t i = 0; i < f->source->n_cpus; i++) {
		if (f->source->cpus[i].state != SOURCE_CPU_TRACING)
			f->since_ns[i] = 0;
		else if (f->since_ns[i] == 0)
			f->since_ns[i] = MAX_OF(now_ns, (uint64_t)1);
	}
}

uint64_t fill_ns(const struct fill *f, uint32_t cpu, uint64_t now_ns)
{
	uint64_t since = UINT64_MAX;

	for (size_t i = 0; i < f->source->n_cpus; i++) {
		if (f->since_ns[i] == 0)
			continue;
		if (f->source->cpus[i].cpu == cpu) {
			since = f->since_ns[i];
			break;
		}
		since = MIN_OF(since, f->since_ns[i]);
	}
	if (since == UINT64_MAX)
		since = f->started_ns;
	return now_ns > since ? now_ns - since : 0;
}
