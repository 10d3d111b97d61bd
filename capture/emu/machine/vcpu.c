/*
 * One virtual CPU: tracing on and off, and the task that is on it.
 */
#include "capture/emu/machine/vcpu.h"

#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

/* A system call that took longer counts as one that blocked. */
#define BLOCKED_NS 50000u

static const struct sideband_task nobody;

void vcpu_attach(struct vcpu *v, const struct emuring *ring, uint32_t index)
{
	*v = (struct vcpu){.ring = ring,
			   .cpu = emuring_cpu_at(ring, index),
			   .index = index,
			   .sideband = {ring, index}};
	emupmu_attach(&v->pmu, ring, index);
}

uint64_t vcpu_now(struct vcpu *v)
{
	return emupmu_now(&v->pmu);
}

/* The task that is on the CPU. */
static struct sideband_task present(const struct vcpu *v)
{
	return (struct sideband_task){.pid = v->cpu->pid, .tid = v->cpu->tid};
}

void vcpu_enter_kernel(struct vcpu *v)
{
	v->cpu->kernel_since = vcpu_now(v);
}

/* Writes the switch to NEXT at time TSC. */
static void switch_to(struct vcpu *v, uint64_t tsc, const struct sideband_task *next,
		      bool preempted)
{
	struct sideband_task before = present(v);

	sideband_switch_out(&v->sideband, tsc, &before, next, preempted);
	sideband_switch_in(&v->sideband, tsc, next, &before);
	v->cpu->pid = next->pid;
	v->cpu->tid = next->tid;
	v->cpu->kernel_since = 0;
}

/* Whether the task on the CPU has been in the kernel for so long that it sleeps. */
static bool has_slept(struct vcpu *v, uint64_t now)
{
	uint64_t since = v->cpu->kernel_since;

	return v->cpu->tid != 0 && since != 0 && since <= now &&
	       sideband_time(&v->ring->fixed, now) - sideband_time(&v->ring->fixed, since) >=
		       BLOCKED_NS;
}

void vcpu_settle(struct vcpu *v)
{
	uint64_t now = vcpu_now(v);

	if (has_slept(v, now))
		switch_to(v, v->cpu->kernel_since, &nobody, false);
	else if (v->cpu->kernel_since != 0)
		v->cpu->kernel_since = now;
}

void vcpu_settled(struct vcpu *v)
{
	if (v->cpu->kernel_since != 0)
		v->cpu->kernel_since = v->pmu.s->now;
}

void vcpu_switch(struct vcpu *v, const struct sideband_task *next, bool preempted)
{
	uint64_t now = vcpu_now(v);

	if (has_slept(v, now))
		switch_to(v, v->cpu->kernel_since, &nobody, false);
	if (v->cpu->tid != next->tid || v->cpu->pid != next->pid)
		switch_to(v, now, next, preempted);
	v->cpu->kernel_since = 0;
}

static void start_tracing(struct vcpu *v)
{
	struct sideband_task who = present(v);

	emupmu_start(&v->pmu);
	if (atomic_exchange(&v->cpu->itrace_started, 1) == 0)
		sideband_itrace_start(&v->sideband, v->pmu.s->now, &who);
}

/* Like pt_event_stop and perf_aux_output_end: aux_head becomes an offset, and an AUX record
 * follows. */
static void stop_tracing(struct vcpu *v, uint64_t ip, uint32_t generation)
{
	struct perf_event_mmap_page *page = emuring_page_at(v->ring, v->index);
	struct sideband_task who = present(v);
	bool flowing = v->pmu.s->flowing;
	uint64_t head;

	emupmu_stop(&v->pmu, ip);
	if (flowing && v->on_stop)
		v->on_stop(v->userdata, v->pmu.s->now, v->pmu.s->encode.pos, generation);
	head = v->pmu.s->encode.pos & (v->pmu.encoder.aux_size - 1);
	sideband_aux(&v->sideband, v->pmu.s->now, &who, head);
	__atomic_store_n(&page->aux_head, head, __ATOMIC_RELEASE);
}

/* Tells the recorder that the CPU is in the state that it wanted. */
static void acknowledge(struct vcpu *v, uint32_t want)
{
	atomic_store(&v->cpu->is, want);
	syscall(SYS_futex, &v->cpu->is, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

void vcpu_serve(struct vcpu *v, const uint64_t *ip)
{
	uint32_t want = atomic_load(&v->cpu->want);

	if (want == atomic_load_explicit(&v->cpu->is, memory_order_relaxed))
		return;
	if (!ip)
		vcpu_settle(v);
	if ((want & 1) != 0 && !v->pmu.s->enabled)
		start_tracing(v);
	if ((want & 1) == 0 && v->pmu.s->enabled)
		stop_tracing(v, ip != NULL ? *ip : 0, want);
	vcpu_settled(v);
	acknowledge(v, want);
}

void vcpu_go_off(struct vcpu *v)
{
	vcpu_switch(v, &nobody, true);
	if (v->pmu.s->enabled)
		stop_tracing(v, 0, atomic_load(&v->cpu->want));
}

void vcpu_come_back(struct vcpu *v)
{
	uint32_t want = atomic_load(&v->cpu->want);

	if ((want & 1) != 0 && !v->pmu.s->enabled)
		start_tracing(v);
	acknowledge(v, want);
}
