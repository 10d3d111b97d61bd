/*
 * Intel PT of this host: for each CPU one pinned intel_pt event with an AUX ring in overwrite mode,
 * and one dummy event for the sideband. Without PT the sideband goes on alone, so that what ran
 * when is known all the same. Called by the recorder when it starts, then through struct
 * source_ops.
 */
#include "capture/perf/source_perf_private.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "capture/perf/perf_sys.h"
#include "capture/perf/source_perf.h"
#include "proto/base.h"
#include "proto/perf/perfrecord.h"

static struct source_perf *perf_of(struct source *s)
{
	return (struct source_perf *)s;
}

static int perf_disable(struct source *base, uint32_t index)
{
	struct source_perf *s = perf_of(base);

	return base->cpus[index].state == SOURCE_CPU_TRACING
		       ? perf_event_disable(&s->cpus[index].pt)
		       : 0;
}

static int perf_enable(struct source *base, uint32_t index)
{
	struct source_perf *s = perf_of(base);

	return base->cpus[index].state == SOURCE_CPU_TRACING ? perf_event_enable(&s->cpus[index].pt)
							     : 0;
}

struct stop_call {
	struct source *source;
	uint32_t first;
	int *ret;
};

/* In the owner's thread: the first by itself, then all with one call. Disabling twice does no harm.
 */
static void stop_all(void *arg)
{
	struct stop_call *c = arg;
	struct source *s = c->source;
	int r;

	if (c->first < s->n_cpus)
		perf_disable(s, c->first);
	r = perf_sys_disable_mine();
	for (uint32_t i = 0; i < s->n_cpus; i++)
		c->ret[i] = r < 0 ? perf_disable(s, i) : 0;
}

static void perf_disable_all(struct source *s, uint32_t first, int *ret)
{
	struct stop_call call = {s, first, ret};

	owner_run(perf_of(s)->owner, stop_all, &call);
}

static size_t perf_tend(struct source *base)
{
	struct source_perf *s = perf_of(base);
	struct cpulist online;
	bool slept = perf_read_clock(s);
	size_t n = 0;

	if (slept)
		for (uint32_t i = 0; i < base->n_cpus; i++)
			perf_cpu_drop_pt(s, i);
	if (perf_read_online(s, &online) < 0)
		return 0;
	s->holders[0] = '\0';
	for (uint32_t i = 0; i < base->n_cpus; i++)
		n += perf_cpu_tend(s, i, cpulist_has(&online, base->cpus[i].cpu));
	return n;
}

static int perf_yield(struct source *base, bool away)
{
	struct source_perf *s = perf_of(base);

	if (!s->have_pmu)
		return -ENODEV;
	if (s->yielded == away)
		return 0;
	s->yielded = away;
	s->holders[0] = '\0';
	for (uint32_t i = 0; i < base->n_cpus; i++) {
		struct source_cpu *cpu = &base->cpus[i];

		/* A dead event is in the way of others, too. */
		if (away)
			perf_cpu_close_pt(s, i);
		if (cpu->state == SOURCE_CPU_OFFLINE)
			continue;
		if (!away) {
			perf_cpu_take_pt(s, i);
			continue;
		}
		cpu->state = SOURCE_CPU_YIELDED;
		snprintf(cpu->why, sizeof(cpu->why), "Intel PT was handed back on request");
	}
	return 0;
}

static int perf_lost(const struct source *base, uint32_t index, uint64_t *ret)
{
	const struct perf_event *e = &((const struct source_perf *)base)->cpus[index].sideband;

	return e->fd < 0 ? -ENODEV : perf_event_lost(e, ret);
}

static void perf_free(struct source *base)
{
	struct source_perf *s = perf_of(base);

	for (uint32_t i = 0; s->cpus != NULL && i < base->n_cpus; i++)
		perf_cpu_close(s, i);
	owner_free(s->owner);
	free(base->cpus);
	free(s->cpus);
	free(s->scratch);
	free(s);
}

static const struct source_ops perf_ops = {
	.name = "intel_pt",
	.disable = perf_disable,
	.enable = perf_enable,
	.disable_all = perf_disable_all,
	.tend = perf_tend,
	.yield = perf_yield,
	.lost = perf_lost,
	.free = perf_free,
};

static void perf_freep(struct source_perf **s)
{
	if (*s != NULL)
		perf_free(&(*s)->base);
}

/* All events of CPUs that are there. The sideband's first: it must know what the trace needs. */
static int open_all(struct source_perf *s, const struct cpulist *online, char *why, size_t why_size)
{
	for (uint32_t i = 0; i < s->base.n_cpus; i++) {
		int r = cpulist_has(online, s->base.cpus[i].cpu) ? perf_cpu_open_sideband(s, i) : 0;

		if (r == 0 || r == -ENODEV || r == -ENXIO)
			continue;
		snprintf(why, why_size, "the sideband event of CPU %u cannot be opened: %s%s",
			 s->base.cpus[i].cpu, strerror(-r),
			 r == -EPERM ? "; it needs LimitMEMLOCK=infinity or CAP_IPC_LOCK" : "");
		return r;
	}
	perf_read_clock(s);
	for (uint32_t i = 0; i < s->base.n_cpus; i++) {
		if (s->cpus[i].sideband.fd < 0) {
			perf_cpu_tend(s, i, false);
		} else if (s->have_pmu) {
			perf_cpu_open_pt(s, i);
		} else {
			s->base.cpus[i].state = SOURCE_CPU_NO_PT;
			strcpy(s->base.cpus[i].why, s->no_pt);
		}
	}
	return 0;
}

/* Where the recorder may not go on degraded (RequirePT=) somebody must trace. */
static int check_tracing(const struct source_perf *s, bool degrade, char *why, size_t why_size)
{
	const struct source_cpu *first = &s->base.cpus[0];

	for (uint32_t i = 0; i < s->base.n_cpus; i++)
		if (degrade || s->base.cpus[i].state == SOURCE_CPU_TRACING)
			return 0;
	snprintf(why, why_size, "no CPU can be traced: %s", first->why);
	return first->state == SOURCE_CPU_BUSY ? -EBUSY : -ENODEV;
}

static int prepare(struct source_perf *s, const struct source_config *config, char *why,
		   size_t why_size)
{
	struct cpulist online;
	int r = perf_choose(s, config, &online, why, why_size);

	if (r == 0)
		r = open_all(s, &online, why, why_size);
	return r == 0 ? check_tracing(s, config->degrade, why, why_size) : r;
}

int source_perf_open(const struct source_config *config, struct source **ret, char *why,
		     size_t why_size)
{
	return source_perf_open_at(config, "/sys", "/proc", ret, why, why_size);
}

int source_perf_open_at(const struct source_config *config, const char *sys, const char *proc,
			struct source **ret, char *why, size_t why_size)
{
	__attribute__((cleanup(perf_freep))) struct source_perf *s = calloc(1, sizeof(*s));
	struct source_config c = *config;
	int r;

	*why = '\0';
	if (s == NULL)
		return -ENOMEM;
	s->base.ops = &perf_ops;
	s->sys = sys;
	s->proc = proc;
	s->scratch = malloc(PERFRECORD_MAX_SIZE);
	if (c.trace == 0)
		c.trace = SOURCE_TRACE_USER;
	s->base.trace_user = (c.trace & SOURCE_TRACE_USER) != 0;
	s->base.trace_kernel = (c.trace & SOURCE_TRACE_KERNEL) != 0;
	r = s->scratch != NULL ? owner_new(&s->owner) : -ENOMEM;
	if (r == 0)
		r = prepare(s, &c, why, why_size);
	if (r < 0) {
		if (*why == '\0')
			snprintf(why, why_size, "intel_pt: %s", strerror(-r));
		return r;
	}
	*ret = &TAKE_PTR(s)->base;
	return 0;
}
