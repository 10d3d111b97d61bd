/*
 * The intel_pt source: its owner thread, its operations, and how it is opened.
 */
#include "capture/perf/source_perf.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "capture/perf/source_perf_private.h"
#include "capture/proc/cpustat.h"
#include "proto/base.h"
#include "proto/perf/perfrecord.h"

/* --- The thread that owns all PT events --- */

struct owner {
	pthread_t thread;
	pthread_mutex_t callers; /* held by the caller whose turn it is */
	pthread_mutex_t lock;	 /* protects the following members */
	pthread_cond_t asked, answered;
	void (*fn)(void *arg); /* NULL: nothing to do */
	void *arg;
	bool end;
};

static void *owner_main(void *userdata)
{
	const struct sched_param priority = {.sched_priority = 1};
	struct owner *o = userdata;

	pthread_setschedparam(pthread_self(), SCHED_FIFO | SCHED_RESET_ON_FORK, &priority);
	pthread_mutex_lock(&o->lock);
	while (!o->end) {
		if (!o->fn) {
			pthread_cond_wait(&o->asked, &o->lock);
			continue;
		}
		o->fn(o->arg);
		o->fn = NULL;
		pthread_cond_signal(&o->answered);
	}
	pthread_mutex_unlock(&o->lock);
	return NULL;
}

int owner_new(struct owner **ret)
{
	CLEANUP_FREE struct owner *o = calloc(1, sizeof(*o));
	sigset_t all, before;
	int r;

	if (!o)
		return -ENOMEM;
	pthread_mutex_init(&o->callers, NULL);
	pthread_mutex_init(&o->lock, NULL);
	pthread_cond_init(&o->asked, NULL);
	pthread_cond_init(&o->answered, NULL);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	r = pthread_create(&o->thread, NULL, owner_main, o);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (r != 0)
		return -r;
	pthread_setname_np(o->thread, "ptsnap-pt");
	*ret = TAKE_PTR(o);
	return 0;
}

void owner_free(struct owner *o)
{
	if (!o)
		return;
	pthread_mutex_lock(&o->lock);
	o->end = true;
	pthread_cond_signal(&o->asked);
	pthread_mutex_unlock(&o->lock);
	pthread_join(o->thread, NULL);
	pthread_mutex_destroy(&o->callers);
	pthread_mutex_destroy(&o->lock);
	pthread_cond_destroy(&o->asked);
	pthread_cond_destroy(&o->answered);
	free(o);
}

void owner_run(struct owner *o, void (*fn)(void *arg), void *arg)
{
	pthread_mutex_lock(&o->callers);
	pthread_mutex_lock(&o->lock);
	o->fn = fn;
	o->arg = arg;
	pthread_cond_signal(&o->asked);
	while (o->fn)
		pthread_cond_wait(&o->answered, &o->lock);
	pthread_mutex_unlock(&o->lock);
	pthread_mutex_unlock(&o->callers);
}

/* --- The operations of the source --- */

static struct source_perf *perf_of(struct source *s)
{
	return (struct source_perf *)s;
}

static int perf_disable(struct source *base, uint32_t index)
{
	struct source_perf *s = perf_of(base);

	if (base->cpus[index].state != SOURCE_CPU_TRACING)
		return 0;
	s->cpus[index].stopped_ns = source_now_ns(base, index);
	return perf_event_disable(&s->cpus[index].pt);
}

static int perf_enable(struct source *base, uint32_t index)
{
	return base->cpus[index].state == SOURCE_CPU_TRACING
		       ? perf_cpu_restart(perf_of(base), index)
		       : 0;
}

struct stop_call {
	struct source *source;
	uint32_t first;
	int *ret;
};

/* In the owner's thread: stops the first CPU alone, then all with one call. Disabling an event
 * twice does no harm. */
static void stop_all(void *arg)
{
	struct stop_call *c = arg;
	struct source *s = c->source;
	int r;

	for (uint32_t i = 0; i < s->n_cpus; i++)
		perf_of(s)->cpus[i].stopped_ns = source_now_ns(s, i);
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
		if (away)
			perf_cpu_yield_pt(s, i);
		else if (base->cpus[i].state != SOURCE_CPU_OFFLINE)
			perf_cpu_take_pt(s, i);
	}
	return 0;
}

static int perf_lost(const struct source *base, uint32_t index, enum source_ring ring,
		     uint64_t *ret)
{
	const struct perf_cpu *cpu = &((const struct source_perf *)base)->cpus[index];
	const struct perf_event *e = ring == SOURCE_RING_PT ? &cpu->pt : &cpu->sideband;

	return e->fd < 0 ? -ENODEV : perf_event_lost(e, ret);
}

static int perf_ran(const struct source *base, uint64_t *ret, uint64_t *ret_step_ns)
{
	const struct source_perf *s = (const struct source_perf *)base;
	CLEANUP_FREE uint64_t *all = calloc(CPULIST_MAX, sizeof(*all));
	int r = all ? cpustat_read(s->proc, all, CPULIST_MAX) : -ENOMEM;

	*ret_step_ns = CPUSTAT_STEP_NS;
	for (size_t i = 0; r == 0 && i < base->n_cpus; i++)
		ret[i] = all[base->cpus[i].cpu];
	return r;
}

static void perf_free(struct source *base)
{
	struct source_perf *s = perf_of(base);

	for (uint32_t i = 0; s->cpus && i < base->n_cpus; i++)
		perf_cpu_close(s, i);
	owner_free(s->owner);
	free(base->cpus);
	free(s->cpus);
	free(s->scratch);
	free(s);
}

static uint64_t perf_unrecorded(const struct source *base)
{
	const struct source_perf *s = (const struct source_perf *)base;
	struct cpulist online;
	uint64_t n;

	if (perf_read_online(s, &online) < 0)
		return MANIFEST_ABSENT;
	n = cpulist_count(&online);
	for (uint32_t i = 0; i < base->n_cpus; i++)
		n -= cpulist_has(&online, base->cpus[i].cpu) && s->cpus[i].sideband.fd >= 0 &&
		     base->cpus[i].state != SOURCE_CPU_OFFLINE;
	return n;
}

static const struct source_ops perf_ops = {
	.name = "intel_pt",
	.disable = perf_disable,
	.enable = perf_enable,
	.disable_all = perf_disable_all,
	.tend = perf_tend,
	.yield = perf_yield,
	.lost = perf_lost,
	.ran = perf_ran,
	.unrecorded = perf_unrecorded,
	.free = perf_free,
};

/* --- Opening --- */

/* Opens all events of CPUs that are online. The sideband events come first: decoding the trace
 * needs their records. */
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
	/* One CPU is traced from now on, and the others are not yet. */
	for (uint32_t i = 0; s->have_pmu && i < s->base.n_cpus; i++)
		dark_begin(&s->base.cpus[i].dark,
			   s->cpus[i].sideband.fd < 0 ? source_cpu_state_fault(SOURCE_CPU_OFFLINE)
						      : DARK_START,
			   NULL, source_now_ns(&s->base, i));
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

static int prepare(struct source_perf *s, const struct source_config *config, char *why,
		   size_t why_size)
{
	const struct source_cpu *first;
	struct cpulist online;
	int r = perf_choose(s, config, &online, why, why_size);

	if (r == 0)
		r = open_all(s, &online, why, why_size);
	if (r < 0)
		return r;
	/* Unless the recorder may go on degraded (RequirePT=), at least one CPU must trace. */
	for (uint32_t i = 0; i < s->base.n_cpus; i++)
		if (config->degrade || s->base.cpus[i].state == SOURCE_CPU_TRACING)
			return 0;
	first = &s->base.cpus[0];
	snprintf(why, why_size, "no CPU can be traced: %s", first->why);
	return first->state == SOURCE_CPU_BUSY ? -EBUSY : -ENODEV;
}

int source_perf_open_at(const struct source_config *config, const char *sys, const char *proc,
			struct source **ret, char *why, size_t why_size)
{
	struct source_perf *s = calloc(1, sizeof(*s));
	struct source_config c = *config;
	int r;

	*why = '\0';
	if (!s)
		return -ENOMEM;
	s->base.ops = &perf_ops;
	s->sys = sys;
	s->proc = proc;
	s->scratch = malloc(PERFRECORD_MAX_SIZE);
	if (c.trace == 0)
		c.trace = SOURCE_TRACE_USER;
	s->base.trace_user = (c.trace & SOURCE_TRACE_USER) != 0;
	s->base.trace_kernel = (c.trace & SOURCE_TRACE_KERNEL) != 0;
	r = s->scratch ? owner_new(&s->owner) : -ENOMEM;
	if (r == 0)
		r = prepare(s, &c, why, why_size);
	if (r < 0) {
		if (*why == '\0')
			snprintf(why, why_size, "intel_pt: %s", strerror(-r));
		perf_free(&s->base);
		return r;
	}
	*ret = &s->base;
	return 0;
}

int source_perf_open(const struct source_config *config, struct source **ret, char *why,
		     size_t why_size)
{
	return source_perf_open_at(config, "/sys", "/proc", ret, why, why_size);
}
