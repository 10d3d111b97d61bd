/*
 * One virtual CPU: the perf records that it writes, tracing on and off, and the task that is on it.
 *
 * The PT event writes ITRACE_START and AUX; the dummy event of the same CPU writes all others. Both
 * write into one DATA ring (PERF_EVENT_IOC_SET_OUTPUT on real kernels).
 */
#include "capture/emu/machine/vcpu.h"

#include <assert.h>
#include <limits.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* A system call that took longer counts as one that blocked. */
#define BLOCKED_NS 50000u

static const struct sideband_task nobody;

enum event { EVENT_PT = 0, EVENT_DUMMY = 1 };

uint64_t sideband_time(const struct emuring_head *head, uint64_t tsc)
{
	uint64_t quotient = tsc >> head->time_shift;
	uint64_t rest = tsc & ((1ull << head->time_shift) - 1);

	return head->time_zero + quotient * head->time_mult +
	       (rest * head->time_mult >> head->time_shift);
}

static void write_record(struct sideband *s, enum event event, uint64_t tsc,
			 const struct sideband_task *by, struct perfrecord *r)
{
	uint8_t bytes[PERFRECORD_SAMPLE_ID_SIZE + 4096 + 128];
	size_t size;

	r->pid = by->pid;
	r->tid = by->tid;
	r->time = sideband_time(&s->ring->fixed, tsc);
	r->cpu = s->cpu;
	r->id = s->ring->fixed.sample_id[event] + s->cpu;
	if (perfrecord_compose(r, bytes, sizeof(bytes), &size) == 0)
		emuring_write_record(s->ring, s->cpu, bytes, size);
}

void sideband_comm(struct sideband *s, uint64_t tsc, const struct sideband_task *who,
		   const char *comm, bool exec)
{
	struct perfrecord r = {.type = PERF_RECORD_COMM};

	r.misc = exec ? PERF_RECORD_MISC_COMM_EXEC : 0;
	r.u.comm.pid = who->pid;
	r.u.comm.tid = who->tid;
	r.u.comm.comm = comm;
	write_record(s, EVENT_DUMMY, tsc, who, &r);
}

void sideband_mmap(struct sideband *s, uint64_t tsc, const struct sideband_task *who,
		   const struct sideband_mapping *m)
{
	struct perfrecord r = {.type = PERF_RECORD_MMAP2, .misc = PERF_RECORD_MISC_USER};

	assert(m->build_id_size <= sizeof(m->build_id));
	r.u.mmap2.pid = who->pid;
	r.u.mmap2.tid = who->tid;
	r.u.mmap2.addr = m->addr;
	r.u.mmap2.len = m->len;
	r.u.mmap2.pgoff = m->pgoff;
	r.u.mmap2.maj = m->maj;
	r.u.mmap2.min = m->min;
	r.u.mmap2.ino = m->ino;
	r.u.mmap2.prot = m->prot;
	r.u.mmap2.flags = m->flags;
	r.u.mmap2.filename = m->name;
	if (m->build_id_size > 0) {
		r.misc |= PERF_RECORD_MISC_MMAP_BUILD_ID;
		r.u.mmap2.build_id_size = m->build_id_size;
		memcpy(r.u.mmap2.build_id, m->build_id, sizeof(m->build_id));
	}
	write_record(s, EVENT_DUMMY, tsc, who, &r);
}

static void write_task(struct sideband *s, uint32_t type, uint64_t tsc,
		       const struct sideband_task *by, const struct sideband_task *about)
{
	struct perfrecord r = {.type = type};

	r.u.task.pid = about->pid;
	r.u.task.tid = about->tid;
	r.u.task.ppid = about->ppid;
	r.u.task.ptid = about->ptid;
	r.u.task.time = sideband_time(&s->ring->fixed, tsc);
	write_record(s, EVENT_DUMMY, tsc, by, &r);
}

void sideband_fork(struct sideband *s, uint64_t tsc, const struct sideband_task *who,
		   const struct sideband_task *child)
{
	write_task(s, PERF_RECORD_FORK, tsc, who, child);
}

void sideband_exit(struct sideband *s, uint64_t tsc, const struct sideband_task *who)
{
	write_task(s, PERF_RECORD_EXIT, tsc, who, who);
}

/* kernel/events/core.c, struct perf_namespaces_event: pid, tid, nr_namespaces, {dev, ino}[]. */
void sideband_namespaces(struct sideband *s, uint64_t tsc, const struct sideband_task *by,
			 const struct sideband_task *who, const struct sideband_namespaces *n)
{
	struct {
		uint32_t pid, tid;
		uint64_t count, link[7][2];
	} body = {who->pid, who->tid, 7, {{0}}};
	struct perfrecord r = {.type = PERF_RECORD_NAMESPACES};

	for (int i = 0; i < 7; i++) {
		body.link[i][0] = n->dev[i];
		body.link[i][1] = n->ino[i];
	}
	r.u.raw.bytes = (const uint8_t *)&body;
	r.u.raw.size = sizeof(body);
	write_record(s, EVENT_DUMMY, tsc, by, &r);
}

static void write_switch(struct sideband *s, uint16_t misc, uint64_t tsc,
			 const struct sideband_task *who, const struct sideband_task *other)
{
	struct perfrecord r = {.type = PERF_RECORD_SWITCH_CPU_WIDE, .misc = misc};

	r.u.context_switch.next_prev_pid = other->pid;
	r.u.context_switch.next_prev_tid = other->tid;
	write_record(s, EVENT_DUMMY, tsc, who, &r);
}

void sideband_switch_out(struct sideband *s, uint64_t tsc, const struct sideband_task *who,
			 const struct sideband_task *other, bool preempted)
{
	uint16_t misc = PERF_RECORD_MISC_SWITCH_OUT;

	if (preempted)
		misc |= PERF_RECORD_MISC_SWITCH_OUT_PREEMPT;
	write_switch(s, misc, tsc, who, other);
}

void sideband_switch_in(struct sideband *s, uint64_t tsc, const struct sideband_task *who,
			const struct sideband_task *other)
{
	write_switch(s, 0, tsc, who, other);
}

void sideband_itrace_start(struct sideband *s, uint64_t tsc, const struct sideband_task *who)
{
	struct perfrecord r = {.type = PERF_RECORD_ITRACE_START};

	r.u.itrace_start.pid = who->pid;
	r.u.itrace_start.tid = who->tid;
	write_record(s, EVENT_PT, tsc, who, &r);
}

void sideband_aux(struct sideband *s, uint64_t tsc, const struct sideband_task *who, uint64_t head)
{
	struct perfrecord r = {.type = PERF_RECORD_AUX};

	r.u.aux.offset = head;
	r.u.aux.size = s->ring->fixed.aux_size;
	r.u.aux.flags = PERF_AUX_FLAG_OVERWRITE;
	write_record(s, EVENT_PT, tsc, who, &r);
}

void vcpu_attach(struct vcpu *v, const struct emuring *ring, uint32_t index)
{
	assert(index < ring->fixed.n_cpus);
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
		stop_tracing(v, ip ? *ip : 0, want);
	vcpu_settled(v);
	acknowledge(v, want);
}

void vcpu_go_off(struct vcpu *v)
{
	vcpu_switch(v, &nobody, true);
	if (v->pmu.s->enabled)
		stop_tracing(v, 0, atomic_load(&v->cpu->want));
	atomic_store(&v->cpu->gone_tsc, vcpu_now(v));
	atomic_fetch_add(&v->cpu->absences, 1);
}

void vcpu_come_back(struct vcpu *v)
{
	uint32_t want = atomic_load(&v->cpu->want);

	if ((want & 1) != 0 && !v->pmu.s->enabled)
		start_tracing(v);
	atomic_store(&v->cpu->back_tsc, vcpu_now(v));
	acknowledge(v, want);
}
