/*
 * One CPU's two events: opens them, and follows the CPU when it goes offline or loses PT.
 *
 * When a CPU goes offline, its events end, and the ring keeps the trace until the CPU comes back.
 * Then new events are opened: the old ones never run again although every ioctl returns 0
 * (kernel/events/core.c, perf_event_exit_cpu_context).
 */
#include "capture/perf/source_perf_private.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "capture/proc/procscan.h"
#include "proto/base.h"

static void PRINTF_LIKE(3, 4)
	set_state(struct source_cpu *cpu, enum source_cpu_state state, const char *format, ...)
{
	va_list args;

	cpu->state = state;
	va_start(args, format);
	vsnprintf(cpu->why, sizeof(cpu->why), format, args);
	va_end(args);
}

static void set_offline(struct source_cpu *cpu)
{
	set_state(cpu, SOURCE_CPU_OFFLINE, "CPU %u is offline", cpu->cpu);
}

static void tell_added(struct source_perf *s, uint32_t index, struct ring *ring, int fd)
{
	const struct source_watch *w = s->base.watch;

	if (w)
		w->ring_added(w->userdata, index, ring, fd);
}

static void tell_removed(struct source_perf *s, uint32_t index, struct ring *ring)
{
	const struct source_watch *w = s->base.watch;

	if (w && ring->data)
		w->ring_removed(w->userdata, index, ring);
}

int perf_cpu_open_sideband(struct source_perf *s, uint32_t index)
{
	struct source_cpu *cpu = &s->base.cpus[index];
	struct perf_event *e = &s->cpus[index].sideband;
	uint64_t no_aux = 0;
	int r = perf_event_start(e, &s->sideband_attr, cpu->cpu, s->sizes.data, &no_aux,
				 s->scratch);

	if (r == 0)
		r = perf_event_enable(e);
	if (r < 0) {
		perf_event_stop(e);
		return r;
	}
	cpu->sideband = e->ring;
	cpu->sideband_fd = e->fd;
	tell_added(s, index, &cpu->sideband, e->fd);
	return 0;
}

/* Says who may be using the CPU's PT. The search reads the files of all processes, so it is done
 * once for all CPUs. */
static void explain_busy(struct source_perf *s, struct source_cpu *cpu)
{
	struct holders holders;

	if (s->holders[0] == '\0') {
		snprintf(s->holders, sizeof(s->holders), "unknown");
		if (holders_find(s->proc, (uint32_t)getpid(), &holders) == 0)
			holders_format(&holders, s->holders, sizeof(s->holders));
	}
	set_state(cpu, SOURCE_CPU_BUSY,
		  "another user of Intel PT has CPU %u; perf events are held by %s", cpu->cpu,
		  s->holders);
}

/* Sets the CPU's state after perf_event_open(2) or mmap(2) of the PT event failed with R. */
static void explain(struct source_perf *s, struct source_cpu *cpu, int r)
{
	switch (r) {
	case -EBUSY: explain_busy(s, cpu); return;
	case -ENODEV:
	case -ENXIO: set_offline(cpu); return;
	case -EACCES:
		set_state(cpu, SOURCE_CPU_FAILED,
			  "not permitted: it needs CAP_SYS_ADMIN, or CAP_PERFMON where "
			  "kernel.perf_event_paranoid is at most 2");
		return;
	case -EPERM:
		set_state(
			cpu, SOURCE_CPU_FAILED,
			"the trace ring may not be locked in memory: it needs LimitMEMLOCK=infinity "
			"or CAP_IPC_LOCK");
		return;
	case -ENOMEM:
		set_state(cpu, SOURCE_CPU_FAILED, "no memory for the trace ring of CPU %u",
			  cpu->cpu);
		return;
	default:
		set_state(cpu, SOURCE_CPU_FAILED, "the PT event of CPU %u cannot be opened: %s",
			  cpu->cpu, strerror(-r));
	}
}

struct pt_call {
	struct source_perf *s;
	uint32_t index;
	uint64_t aux_size;
	int r;
};

/* In the owner's thread. */
static void open_pt(void *arg)
{
	struct pt_call *c = arg;
	struct perf_event *e = &c->s->cpus[c->index].pt;

	c->r = perf_event_start(e, &c->s->pt_attr, c->s->base.cpus[c->index].cpu, BUDGET_PT_DATA,
				&c->aux_size, c->s->scratch);
	if (c->r == 0)
		c->r = perf_event_enable(e);
	/* A pinned event may be open and not run, if the CPU has no room for it. */
	if (c->r == 0 && !perf_event_alive(e))
		c->r = -EBUSY;
	if (c->r < 0)
		perf_event_stop(e);
}

void perf_cpu_open_pt(struct source_perf *s, uint32_t index)
{
	struct pt_call call = {.s = s, .index = index, .aux_size = s->sizes.aux};
	struct source_cpu *cpu = &s->base.cpus[index];
	struct perf_event *e = &s->cpus[index].pt;

	owner_run(s->owner, open_pt, &call);
	if (call.r < 0) {
		explain(s, cpu, call.r);
		return;
	}
	cpu->pt = e->ring;
	cpu->pt_fd = e->fd;
	set_state(cpu, SOURCE_CPU_TRACING, "%s", "");
	if (call.aux_size != s->sizes.aux)
		perf_note(s,
			  "trace ring %llu KiB instead of %llu KiB on CPU %u: no more memory "
			  "could be allocated or locked",
			  (unsigned long long)call.aux_size >> 10,
			  (unsigned long long)s->sizes.aux >> 10, cpu->cpu);
	tell_added(s, index, &cpu->pt, e->fd);
}

void perf_cpu_close_pt(struct source_perf *s, uint32_t index)
{
	struct source_cpu *cpu = &s->base.cpus[index];

	/* Disables first, so that the stop's own records are in the ring when the drain empties
	 * it. */
	if (s->cpus[index].pt.fd >= 0)
		perf_event_disable(&s->cpus[index].pt);
	tell_removed(s, index, &cpu->pt);
	cpu->pt = (struct ring){0};
	cpu->pt_fd = 0;
	perf_event_stop(&s->cpus[index].pt);
}

void perf_cpu_close(struct source_perf *s, uint32_t index)
{
	struct source_cpu *cpu = &s->base.cpus[index];

	perf_cpu_close_pt(s, index);
	tell_removed(s, index, &cpu->sideband);
	cpu->sideband = (struct ring){0};
	cpu->sideband_fd = 0;
	perf_event_stop(&s->cpus[index].sideband);
}

/* Opens all events of a CPU that came back, or that is seen for the first time. */
static void reopen(struct source_perf *s, uint32_t index)
{
	struct source_cpu *cpu = &s->base.cpus[index];
	int r;

	perf_cpu_close(s, index);
	r = perf_cpu_open_sideband(s, index);
	if (r == -ENODEV)
		set_offline(cpu);
	else if (r < 0)
		set_state(cpu, SOURCE_CPU_FAILED,
			  "the sideband event of CPU %u cannot be opened: %s", cpu->cpu,
			  strerror(-r));
	else if (!s->have_pmu)
		set_state(cpu, SOURCE_CPU_NO_PT, "%s", s->no_pt);
	else if (s->yielded)
		set_state(cpu, SOURCE_CPU_YIELDED, "%s", "Intel PT was handed back on request");
	else
		perf_cpu_open_pt(s, index);
}

/* Whether the event runs now: the first call forgets what ran since an earlier look. */
static bool runs(struct perf_event *e)
{
	perf_event_alive(e);
	return perf_event_alive(e);
}

/* While there is no PT event, only the sideband event shows whether the CPU was offline. */
void perf_cpu_take_pt(struct source_perf *s, uint32_t index)
{
	if (runs(&s->cpus[index].sideband))
		perf_cpu_open_pt(s, index);
	else
		reopen(s, index);
}

/* A CPU that loses power loses its PT registers (SDM volume 3, 33.2.8.1), and the kernel does not
 * set them again (arch/x86/power/cpu.c). CPUs that went offline for the sleep show that. The CPU
 * that stayed online has an event that counts as running and traces nothing, and the times in its
 * ring do not belong to the present clock. */
void perf_cpu_drop_pt(struct source_perf *s, uint32_t index)
{
	if (s->base.cpus[index].pt.aux)
		perf_cpu_close_pt(s, index);
	if (s->base.cpus[index].state == SOURCE_CPU_TRACING)
		set_state(&s->base.cpus[index], SOURCE_CPU_FAILED, "the host slept");
}

/* Whether the CPU is going offline. The kernel removes a CPU's events before it removes the CPU
 * from the list of online CPUs (kernel/cpu.c, CPUHP_AP_PERF_ONLINE); from then on no event can be
 * opened there. */
static bool is_leaving(const struct source_perf *s, uint32_t index)
{
	int r = perf_sys_open(&s->sideband_attr, s->base.cpus[index].cpu);

	close_fd(r);
	return r == -ENODEV;
}

/* Makes the PT event of a tracing CPU run again. If it does not run, it is in the error state,
 * which enabling ends; or its CPU was offline for a moment (in a suspend), which takes a new event;
 * or its CPU is going offline, and the ring stays. */
static void mend(struct source_perf *s, uint32_t index)
{
	struct perf_event *e = &s->cpus[index].pt;

	if (perf_event_alive(e))
		return;
	perf_event_disable(e);
	perf_event_enable(e);
	if (perf_event_alive(e))
		return;
	if (is_leaving(s, index))
		set_offline(&s->base.cpus[index]);
	else
		reopen(s, index);
}

static void tend_online(struct source_perf *s, uint32_t index)
{
	switch (s->base.cpus[index].state) {
	case SOURCE_CPU_OFFLINE: reopen(s, index); break;
	case SOURCE_CPU_TRACING: mend(s, index); break;
	case SOURCE_CPU_BUSY:
	case SOURCE_CPU_FAILED: perf_cpu_take_pt(s, index); break;
	default:
		/* While there is no PT event, the sideband event shows whether the CPU was offline.
		 */
		if (!perf_event_alive(&s->cpus[index].sideband))
			reopen(s, index);
	}
}

bool perf_cpu_tend(struct source_perf *s, uint32_t index, bool online)
{
	struct source_cpu *cpu = &s->base.cpus[index];
	enum source_cpu_state before = cpu->state;

	if (online)
		tend_online(s, index);
	else if (before != SOURCE_CPU_OFFLINE)
		set_offline(cpu);
	return cpu->state != before;
}
