/*
 * One CPU's two events: opens them, follows the CPU when it goes offline or loses PT, and lists the
 * times in which the CPU was not traced.
 *
 * The kernel says of an event for how long it has run (read(2)), and the clock says how long that
 * should be. The time that is missing between two looks was dark. An event that has stopped by
 * itself ran from the last look on without a break: its end is the last look and the time that it
 * ran since.
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

#define WHY_STOPPED "the kernel had stopped the event"
#define WHY_YIELDED "Intel PT was handed back on request"

/* A CPU that does not trace is dark since SINCE_NS, or goes on to be dark for another reason. A CPU
 * that traces is no longer dark, and a host without PT is noted as a whole. */
static void PRINTF_LIKE(5, 6)
	set_state_since(struct source_perf *s, uint32_t index, enum source_cpu_state state,
			uint64_t since_ns, const char *format, ...)
{
	struct source_cpu *cpu = &s->base.cpus[index];
	va_list args;

	cpu->state = state;
	va_start(args, format);
	vsnprintf(cpu->why, sizeof(cpu->why), format, args);
	va_end(args);
	if (state == SOURCE_CPU_TRACING || state == SOURCE_CPU_NO_PT)
		dark_end(&cpu->dark, since_ns);
	else
		dark_begin(&cpu->dark, source_cpu_state_fault(state), cpu->why, since_ns);
}

#define set_state(s, index, state, ...) \
	set_state_since(s, index, state, source_now_ns(&(s)->base, index), __VA_ARGS__)

static void set_offline(struct source_perf *s, uint32_t index, uint64_t since_ns)
{
	set_state_since(s, index, SOURCE_CPU_OFFLINE, since_ns, "CPU %u is offline",
			s->base.cpus[index].cpu);
}

/* By how much the two clocks may differ in ELAPSED ns. The event's time is read between two
 * readings of our clock: the later one begins what is compared, and the earlier one ends it, so
 * that a slow reading never looks like a pause. Shorter pauses are not noticed. */
static uint64_t slack(uint64_t elapsed)
{
	return 1000000 + elapsed / 1024;
}

/* Lists what the PT event did not run between the last look and UNTIL, if it ran for RAN ns.
 * STOPPED: the event has not run again since it stopped. */
static void list_missing(struct source_perf *s, uint32_t index, uint64_t ran, uint64_t until,
			 bool stopped)
{
	struct dark *dark = &s->base.cpus[index].dark;
	const uint64_t since = s->cpus[index].seen_ns;
	char why[DARK_WHY_SIZE];
	uint64_t missing;

	if (dark_open(dark) || since == MANIFEST_ABSENT || until == MANIFEST_ABSENT ||
	    until <= since)
		return;
	missing = until - since - MIN_OF(ran, until - since);
	if (missing <= slack(until - since))
		return;
	snprintf(why, sizeof(why), "the kernel did not run the event for %llu us of this time",
		 (unsigned long long)missing / 1000);
	dark_add(dark, source_cpu_state_fault(SOURCE_CPU_FAILED), stopped ? WHY_STOPPED : why,
		 stopped ? until - missing : since, until);
}

/* While an event is in error, the kernel does not say for how long it ran, and says so again once
 * the event runs. */
int perf_cpu_restart(struct source_perf *s, uint32_t index)
{
	struct perf_cpu *c = &s->cpus[index];
	const uint64_t was = c->pt.running_ns;
	uint64_t ran = 0, begin, end;
	int known = perf_event_ran(&c->pt, &ran), r;

	begin = source_now_ns(&s->base, index);
	r = perf_event_restart(&c->pt);
	end = source_now_ns(&s->base, index);
	if (known < 0 && r == 0) {
		ran = c->pt.running_ns - MIN_OF(was, c->pt.running_ns);
		ran -= MIN_OF(ran, end - begin);
	}
	list_missing(s, index, ran, c->stopped_ns, known < 0);
	if (r == 0)
		c->seen_ns = end;
	return r;
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
static void explain_busy(struct source_perf *s, uint32_t index)
{
	struct holders holders;

	if (s->holders[0] == '\0') {
		snprintf(s->holders, sizeof(s->holders), "unknown");
		if (holders_find(s->proc, (uint32_t)getpid(), &holders) == 0)
			holders_format(&holders, s->holders, sizeof(s->holders));
		s->lbr_is_used = s->lbr_excludes_pt && perf_lbr_is_used(s->base.cpus[index].cpu);
	}
	if (s->lbr_is_used) {
		set_state(
			s, index, SOURCE_CPU_BUSY,
			"branch records (LBR: perf record -b, --call-graph lbr) are in use on this "
			"host, and this processor has no Intel PT meanwhile; perf events are held by "
			"%s",
			s->holders);
		return;
	}
	set_state(s, index, SOURCE_CPU_BUSY,
		  "another user of Intel PT has CPU %u; perf events are held by %s",
		  s->base.cpus[index].cpu, s->holders);
}

/* Sets the CPU's state after perf_event_open(2) or mmap(2) of the PT event failed with R. */
static void explain(struct source_perf *s, uint32_t index, int r)
{
	const uint32_t cpu = s->base.cpus[index].cpu;

	switch (r) {
	case -EBUSY: explain_busy(s, index); return;
	case -ENODEV:
	case -ENXIO: set_offline(s, index, source_now_ns(&s->base, index)); return;
	case -EACCES:
		set_state(s, index, SOURCE_CPU_FAILED,
			  "not permitted: it needs CAP_SYS_ADMIN, or CAP_PERFMON where "
			  "kernel.perf_event_paranoid is at most 2");
		return;
	case -EPERM:
		set_state(
			s, index, SOURCE_CPU_FAILED,
			"the trace ring may not be locked in memory: it needs LimitMEMLOCK=infinity "
			"or CAP_IPC_LOCK");
		return;
	case -ENOMEM:
		set_state(s, index, SOURCE_CPU_FAILED, "no memory for the trace ring of CPU %u",
			  cpu);
		return;
	default:
		set_state(s, index, SOURCE_CPU_FAILED,
			  "the PT event of CPU %u cannot be opened: %s", cpu, strerror(-r));
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
		c->r = perf_event_restart(e);
	/* A pinned event may be open and not run, if the CPU has no room for it. */
	if (c->r == -EIO)
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
		explain(s, index, call.r);
		return;
	}
	cpu->pt = e->ring;
	cpu->pt_fd = e->fd;
	s->cpus[index].seen_ns = s->cpus[index].stopped_ns = source_now_ns(&s->base, index);
	set_state(s, index, SOURCE_CPU_TRACING, "%s", "");
	perf_note_sizes(s);
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
	cpu->pulse = (struct pulse){0};
	cpu->pt_fd = 0;
	perf_event_stop(&s->cpus[index].pt);
	perf_note_sizes(s);
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

void perf_cpu_yield_pt(struct source_perf *s, uint32_t index)
{
	/* An event in error keeps PT from other users, too. */
	if (s->base.cpus[index].state != SOURCE_CPU_OFFLINE)
		set_state(s, index, SOURCE_CPU_YIELDED, WHY_YIELDED);
	perf_cpu_close_pt(s, index);
}

/* Opens all events of a CPU that came back, or that is seen for the first time. */
static void reopen(struct source_perf *s, uint32_t index)
{
	int r;

	perf_cpu_close(s, index);
	r = perf_cpu_open_sideband(s, index);
	if (r == -ENODEV)
		set_offline(s, index, source_now_ns(&s->base, index));
	else if (r < 0)
		set_state(s, index, SOURCE_CPU_FAILED,
			  "the sideband event of CPU %u cannot be opened: %s",
			  s->base.cpus[index].cpu, strerror(-r));
	else if (!s->have_pmu)
		set_state(s, index, SOURCE_CPU_NO_PT, "%s", s->no_pt);
	else if (s->yielded)
		set_state(s, index, SOURCE_CPU_YIELDED, WHY_YIELDED);
	else
		perf_cpu_open_pt(s, index);
}

/* While there is no PT event, only the sideband event shows whether the CPU was offline. */
void perf_cpu_take_pt(struct source_perf *s, uint32_t index)
{
	if (perf_event_runs(&s->cpus[index].sideband))
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
		set_state(s, index, SOURCE_CPU_FAILED, "the host slept");
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

/* Since when the PT event, which does not run, has not run. If the kernel does not say how long it
 * ran, the newest AUX record says when the event was stopped (perf_aux_output_end). */
static uint64_t stopped_since(const struct source_perf *s, uint32_t index, int known, uint64_t ran)
{
	const struct perf_cpu *c = &s->cpus[index];

	if (c->seen_ns == MANIFEST_ABSENT)
		return MANIFEST_ABSENT;
	return known == 0 ? c->seen_ns + ran : MAX_OF(c->seen_ns, s->base.cpus[index].aux_ns);
}

/* Makes the PT event of a tracing CPU run again. If it does not run, it is in the error state,
 * which enabling ends; or its CPU was offline for a moment (in a suspend), which takes a new event;
 * or its CPU is going offline, and the ring stays. */
static void mend(struct source_perf *s, uint32_t index)
{
	struct perf_cpu *c = &s->cpus[index];
	/* Taken before the kernel's reading, which may take long: see slack(). */
	uint64_t now = source_now_ns(&s->base, index), ran = 0, since;
	int known = perf_event_ran(&c->pt, &ran);

	if (known == 0 && ran > 0 && perf_event_runs(&c->pt)) {
		list_missing(s, index, ran, now, false);
		c->seen_ns = source_now_ns(&s->base, index);
		dark_end(&s->base.cpus[index].dark, c->seen_ns);
		return;
	}
	since = stopped_since(s, index, known, ran);
	dark_begin(&s->base.cpus[index].dark, source_cpu_state_fault(SOURCE_CPU_FAILED),
		   WHY_STOPPED, since);
	perf_event_disable(&c->pt);
	if (perf_event_restart(&c->pt) == 0) {
		c->seen_ns = c->stopped_ns = source_now_ns(&s->base, index);
		dark_end(&s->base.cpus[index].dark, c->seen_ns);
	} else if (is_leaving(s, index)) {
		set_offline(s, index, since);
	} else {
		reopen(s, index);
	}
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
		if (!perf_event_runs(&s->cpus[index].sideband))
			reopen(s, index);
	}
}

/* The kernel's list of online CPUs lacks the CPU. */
static void tend_offline(struct source_perf *s, uint32_t index)
{
	struct perf_cpu *c = &s->cpus[index];
	uint64_t since = source_now_ns(&s->base, index), ran = 0;

	if (s->base.cpus[index].state == SOURCE_CPU_OFFLINE)
		return;
	if (s->base.cpus[index].state == SOURCE_CPU_TRACING && c->pt.fd >= 0)
		since = stopped_since(s, index, perf_event_ran(&c->pt, &ran), ran);
	set_offline(s, index, since);
}

bool perf_cpu_tend(struct source_perf *s, uint32_t index, bool online)
{
	enum source_cpu_state before = s->base.cpus[index].state;

	if (online)
		tend_online(s, index);
	else
		tend_offline(s, index);
	return s->base.cpus[index].state != before;
}
