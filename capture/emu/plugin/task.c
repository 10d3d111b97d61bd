/*
 * One guest thread and its virtual CPU. Called by plugin.c in the emulator's process.
 *
 * Where it waits: in deferred work and in system call callbacks. A thread that waited within a
 * block's callback would count as running for QEMU, and everything exclusive (fork, exit) would
 * wait for it.
 */
#include "capture/emu/plugin/task.h"

#include <linux/futex.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "capture/emu/machine/sched.h"
#include "capture/emu/plugin/guest.h"
#include "capture/emu/plugin/maps.h"
#include "capture/emu/plugin/waits.h"

#define RESYNCS_A_SECOND 1000
#define LOOK_NS		 20000000l
#define ANNOUNCE_LOOKS	 50 /* a parent that was killed announces nobody */
/* A younger brother's tid is less than this above one's own (the least pid_max is 301, the usual
 * one 32768 and more). */
#define ANNOUNCED_LATER 4096u

static void wait_on(_Atomic uint32_t *word, uint32_t value)
{
	static const struct timespec look = {.tv_nsec = LOOK_NS};

	syscall(SYS_futex, word, FUTEX_WAIT, value, &look, NULL, 0);
}

static struct retire_signal look(void *userdata)
{
	struct task *t = userdata;
	struct retire_signal s = {0};
	struct sig_frame frame;

	s.entered = sig_entered(t->group->sig, guest_stack_pointer(t->vcpu), &frame);
	if (s.entered) {
		s.rsp = frame.rsp;
		s.ip = frame.ip;
		s.fault = frame.fault;
	}
	return s;
}

static void on_jump(void *userdata)
{
	const struct task *t = userdata;

	atomic_fetch_add(&t->group->machine->head->decode_failures, 1);
}

/* Its time is over, or something wants the CPU. */
static bool must_yield(const struct task *t)
{
	const struct emuring_cpu *cpu = t->cpu->cpu;

	if (atomic_load_explicit(&cpu->offline, memory_order_relaxed) != 0 ||
	    atomic_load_explicit(&t->slot->expelled, memory_order_relaxed) != 0)
		return true;
	return sched_is_contended(t->cpu->ring) &&
	       atomic_load_explicit(&cpu->instructions, memory_order_relaxed) >= t->quantum_end;
}

static void give_mapping(void *userdata, const struct sideband_mapping *mapping)
{
	struct task *t = userdata;

	sideband_mmap(&t->cpu->sideband, t->cpu->pmu.s->now, &t->who, mapping);
}

/* The process' name and all its mappings; EXEC: nothing from before counts. */
static void tell_program(struct task *t, const char *comm)
{
	uint64_t now = vcpu_now(t->cpu);

	sideband_comm(&t->cpu->sideband, now, &t->who, comm, true);
	maps_executable(0, UINT64_MAX, t->cpu->ring->fixed.flags, give_mapping, t);
}

/* Records were lost, maybe some of this process: all is told anew; not at once again, as that may
 * lose records, too. */
static void resync(struct task *t)
{
	const struct emuring *r = t->cpu->ring;
	uint64_t tsc = t->cpu->pmu.s->now;
	uint32_t now = atomic_load_explicit(&r->shared->resync, memory_order_relaxed);
	uint32_t before = atomic_load_explicit(&t->group->resynced, memory_order_relaxed);

	if (__builtin_expect(now == before, 1) ||
	    tsc - t->group->resynced_at < r->fixed.tsc_hz / RESYNCS_A_SECOND ||
	    !atomic_compare_exchange_strong(&t->group->resynced, &before, now))
		return;
	t->group->resynced_at = tsc;
	tell_program(t, t->group->comm);
}

static void service(void *userdata, uint64_t ip)
{
	struct task *t = userdata;

	resync(t);
	vcpu_serve(t->cpu, &ip);
	if (t->deferred || !must_yield(t))
		return;
	t->deferred = true;
	guest_defer(t->vcpu, t->group->yield, NULL);
}

static void on_psb(void *userdata, uint64_t tsc, uint64_t pos, bool user)
{
	const struct task *t = userdata;

	if (user)
		truth_psb(t->truth, tsc, pos);
}

static void on_overflow(void *userdata, uint64_t tsc, uint64_t pos, bool resolved)
{
	const struct task *t = userdata;

	truth_overflow(t->truth, tsc, pos, resolved);
}

static void on_stop(void *userdata, uint64_t tsc, uint64_t pos, uint32_t generation)
{
	const struct task *t = userdata;

	truth_stop(t->truth, tsc, pos, generation);
}

static void open_truth(struct task *t)
{
	t->truth = NULL;
	if (t->group->truth != NULL &&
	    truth_open(t->group->truth, t->who.pid, t->who.tid, &t->truth) < 0)
		t->truth = NULL;
}

void task_pause_truth(struct task *t)
{
	truth_close(t->truth);
	t->truth = t->retire.truth = NULL;
	if (t->group->truth != NULL && t->who.tid != t->who.pid)
		truth_inherit(t->group->truth, t->who.pid);
}

void task_resume_truth(struct task *t)
{
	open_truth(t);
	t->retire.truth = t->truth;
}

static bool take_place(struct task *t)
{
	t->index = machine_add_task(t->group->machine, &t->who);
	if (t->index == EMURING_NO_TASK)
		return false;
	t->slot = emuring_task_at(&t->group->machine->ring, t->index);
	sched_disown(t->group->machine->cpus, t->group->machine->n_cpus, t->index);
	open_truth(t);
	return true;
}

struct task *task_new(struct task_group *group, unsigned int vcpu, uint32_t parent)
{
	const struct emuring *ring = &group->machine->ring;
	struct task *t = calloc(1, sizeof(*t));

	if (t == NULL)
		return NULL;
	t->group = group;
	t->vcpu = vcpu;
	t->parent = parent;
	t->who = (struct sideband_task){
		.pid = (uint32_t)getpid(), .tid = (uint32_t)gettid(), .ppid = (uint32_t)getppid()};
	t->who.ptid =
		parent < ring->fixed.max_tasks ? emuring_task_at(ring, parent)->tid : t->who.ppid;
	if (t->who.tid != t->who.pid)
		t->who.ppid = t->who.pid;
	if (!take_place(t)) {
		free(t);
		return NULL;
	}
	retire_init(&t->retire, t->truth);
	t->retire.look = look;
	t->retire.service = service;
	t->retire.on_jump = on_jump;
	t->retire.userdata = t;
	return t;
}

void task_forget(struct task *t)
{
	if (t != NULL)
		/* The parent goes on writing its truth; what was not yet flushed is the parent's.
		 */
		truth_abandon(t->truth);
	free(t);
}

void task_free(struct task *t)
{
	truth_close(t->truth);
	sched_remove_task(&t->group->machine->ring, t->slot);
	free(t);
}

/* LAST is the last child that CHILD's parent has told of. Tids go up, but begin anew one day. */
static bool is_announced(uint32_t last, uint32_t child)
{
	return last - child < ANNOUNCED_LATER;
}

void task_wait_announced(struct task *t)
{
	struct emuring_task *parent;

	if (t->parent == EMURING_NO_TASK)
		return;
	parent = emuring_task_at(&t->group->machine->ring, t->parent);
	for (int i = 0; i < ANNOUNCE_LOOKS && !t->group->machine->head->closing; i++) {
		uint32_t child = atomic_load(&parent->announced);

		if (is_announced(child, t->who.tid))
			return;
		wait_on(&parent->announced, child);
	}
}

static void begin_quantum(struct task *t)
{
	uint64_t size = t->quantum_left != 0 ? t->quantum_left : t->cpu->ring->fixed.quantum;

	t->quantum_end = atomic_load(&t->cpu->cpu->instructions) + size;
	t->quantum_left = 0;
}

/* A short system call counts as some instructions, and does not begin a new quantum: a thread that
 * makes many would keep its CPU for ever. */
static void keep_quantum(struct task *t)
{
	uint64_t used = atomic_load(&t->cpu->cpu->instructions) + EMUPMU_VIRTUAL_SYSCALL;

	t->quantum_left = used < t->quantum_end ? t->quantum_end - used : 1;
}

static void attach(struct task *t, struct vcpu *v)
{
	t->cpu = v;
	v->pmu.on_psb = on_psb;
	v->pmu.on_overflow = on_overflow;
	v->pmu.userdata = t;
	v->on_stop = on_stop;
	v->userdata = t;
	retire_attach(&t->retire, &v->pmu, v->index);
	if (v->pmu.virtual_clock)
		v->pmu.s->extra_ticks += EMUPMU_VIRTUAL_SYSCALL;
	begin_quantum(t);
}

bool task_run(struct task *t)
{
	struct machine *m = t->group->machine;
	struct vcpu *v = sched_acquire(m->cpus, m->n_cpus, t->index);

	if (v == NULL)
		return false;
	attach(t, v);
	emupmu_service(&v->pmu, 0);
	vcpu_serve(v, NULL);
	atomic_store(&v->cpu->ip, 0);
	sched_put(v->cpu, EMURING_USER, t->index);
	resync(t);
	v->pmu.budget = 0;
	return true;
}

void task_begin_program(struct task *t)
{
	struct emuring_head *head = t->group->machine->head;
	uint32_t first = 0;

	atomic_store(&t->group->resynced, head->resync);
	tell_program(t, t->group->comm);
	atomic_compare_exchange_strong(&head->guest_pid, &first, t->who.pid);
	atomic_store(&head->attached, 1);
}

/* The CPU has no user code to run for now. */
static void let_go(struct task *t, bool blocks)
{
	struct vcpu *v = t->cpu;

	vcpu_enter_kernel(v);
	emupmu_publish(&v->pmu);
	vcpu_serve(v, NULL);
	if (!blocks)
		keep_quantum(t);
	t->cpu = NULL;
	if (!blocks) {
		sched_put(v->cpu, EMURING_KERNEL, t->index);
		return;
	}
	if (sched_is_contended(v->ring) && sched_give(v, false))
		return;
	sched_put(v->cpu, EMURING_ASLEEP, t->index);
	sched_offer(v, t->index, t->index);
}

void task_enter_kernel(struct task *t)
{
	bool blocks = waits_would_block(t->call.number, t->call.args);

	let_go(t, blocks);
}

void task_exit(struct task *t)
{
	struct vcpu *v = t->cpu;

	sideband_exit(&v->sideband, vcpu_now(v), &t->who);
	vcpu_serve(v, NULL);
	t->cpu = NULL;
	sched_release(v, t->index, false);
}

/* The keeper lets go of a stopped thread only when it has let go of its CPU. */
static void wait_while_expelled(struct task *t)
{
	while (atomic_load(&t->slot->expelled) != 0 && !t->group->machine->head->closing) {
		wait_on(&t->slot->expelled, 1);
		sched_check_recorder(&t->group->machine->ring);
	}
}

bool task_yield(struct task *t, uint64_t ip)
{
	struct vcpu *v = t->cpu;

	t->deferred = false;
	if (v == NULL || !must_yield(t))
		return v != NULL;
	retire_depart(&t->retire, ip);
	vcpu_serve(v, NULL);
	if (atomic_load(&v->cpu->offline) != 0) {
		vcpu_go_off(v);
		sched_put(v->cpu, EMURING_OFF, EMURING_NO_TASK);
	} else if (!sched_give(v, true)) {
		if (atomic_load(&t->slot->expelled) == 0) {
			begin_quantum(t);
			return true;
		}
		sched_release(v, t->index, true);
	}
	t->cpu = NULL;
	wait_while_expelled(t);
	return task_run(t);
}

static bool has_gone(uint32_t child)
{
	siginfo_t info = {.si_pid = 0};

	return waitid(P_PID, child, &info, WEXITED | WNOHANG | WNOWAIT) < 0 || info.si_pid != 0;
}

void task_wait_vfork(struct task *t, uint32_t child)
{
	uint32_t done;

	while ((done = atomic_load(&t->slot->vfork_done)) != child && !has_gone(child) &&
	       !t->group->machine->head->closing)
		wait_on(&t->slot->vfork_done, done);
}
