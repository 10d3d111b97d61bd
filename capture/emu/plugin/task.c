/*
 * One guest thread and its virtual CPU.
 */
#include "capture/emu/plugin/task.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "capture/emu/plugin/guest.h"
#include "proto/base.h"

#define RESYNCS_A_SECOND 1000
#define LOOK_NS		 20000000l
#define ANNOUNCE_LOOKS	 50
/* A thread ID that a parent announced counts as later than one's own if it is less than this above
 * it: thread IDs wrap at pid_max, which is 32768 or more on usual hosts. */
#define ANNOUNCED_LATER 4096u

int machine_open(struct machine *m, const char *path)
{
	CLEANUP_CLOSE int fd = open(path, O_RDWR | O_CLOEXEC);
	struct stat st;
	void *map;
	int r;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (st.st_size < EMURING_HEAD_SIZE)
		return -EBADMSG;
	map = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		return -errno;
	*m = (struct machine){.head = map, .size = (uint64_t)st.st_size};
	r = emuring_check(m->head, m->size);
	if (r < 0)
		goto unmap;
	emuring_attach(&m->ring, m->head);
	m->n_cpus = m->ring.fixed.n_cpus;
	m->cpus = calloc(m->n_cpus, sizeof(*m->cpus));
	if (!m->cpus) {
		r = -ENOMEM;
		goto unmap;
	}
	for (uint32_t i = 0; i < m->n_cpus; i++)
		vcpu_attach(&m->cpus[i], &m->ring, i);
	return 0;
unmap:
	munmap(map, m->size);
	*m = (struct machine){0};
	return r;
}

/* Returns the index of thread TID in the machine's table, and claims a free slot if TID has none. A
 * thread has a slot already after an exec (*RET_KNOWN). EMURING_NO_TASK: the table is full. */
static uint32_t claim_slot(const struct machine *m, uint32_t tid, bool *ret_known)
{
	*ret_known = true;
	for (uint32_t i = 0; i < m->ring.fixed.max_tasks; i++)
		if (atomic_load(&emuring_task_at(&m->ring, i)->tid) == tid)
			return i;
	*ret_known = false;
	for (uint32_t i = 0; i < m->ring.fixed.max_tasks; i++) {
		uint32_t none = 0;

		if (atomic_compare_exchange_strong(&emuring_task_at(&m->ring, i)->tid, &none, tid))
			return i;
	}
	return EMURING_NO_TASK;
}

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

/* Whether the thread has to give its CPU away: its quantum is over and another thread waits, or the
 * keeper takes the CPU or the thread away. */
static bool must_yield(const struct task *t)
{
	const struct emuring_cpu *cpu = t->cpu->cpu;

	if (atomic_load_explicit(&cpu->offline, memory_order_relaxed) != 0 ||
	    atomic_load_explicit(&t->slot->expelled, memory_order_relaxed) != 0)
		return true;
	return sched_is_contended(t->cpu->ring) &&
	       atomic_load_explicit(&cpu->instructions, memory_order_relaxed) >= t->quantum_end;
}

/* Writes the records of an exec: the process' name and all its mappings. */
static void tell_program(struct task *t, const char *comm)
{
	sideband_comm(&t->cpu->sideband, vcpu_now(t->cpu), &t->who, comm, true);
	calls_tell_mappings(t, 0, UINT64_MAX);
}

/* If records were lost, perhaps records of this process, writes its name and mappings again. At
 * most 1000 times a second, because these records can get lost, too. */
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
	if (t->group->truth && truth_open(t->group->truth, t->who.pid, t->who.tid, &t->truth) < 0)
		t->truth = NULL;
}

void task_pause_truth(struct task *t)
{
	truth_close(t->truth);
	t->truth = t->retire.truth = NULL;
	if (t->group->truth && t->who.tid != t->who.pid)
		truth_inherit(t->group->truth, t->who.pid);
}

void task_resume_truth(struct task *t)
{
	open_truth(t);
	t->retire.truth = t->truth;
}

/* Fills in the thread's slot in the machine's table. False: the table is full. */
static bool enter_machine(struct task *t)
{
	struct machine *m = t->group->machine;
	bool known;

	t->index = claim_slot(m, t->who.tid, &known);
	if (t->index == EMURING_NO_TASK)
		return false;
	t->slot = emuring_task_at(&m->ring, t->index);
	atomic_store(&t->slot->pid, t->who.pid);
	atomic_store(&t->slot->ppid, t->who.ppid);
	atomic_store(&t->slot->ptid, t->who.ptid);
	atomic_store(&t->slot->expelled, 0);
	atomic_store(&t->slot->stopped, 0);
	if (!known)
		atomic_store(&t->slot->cpu, t->index % m->n_cpus);
	sched_disown(m->cpus, m->n_cpus, t->index);
	return true;
}

struct task *task_new(struct task_group *group, unsigned int vcpu, uint32_t parent)
{
	const struct emuring *ring = &group->machine->ring;
	struct task *t = calloc(1, sizeof(*t));

	if (!t)
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
	if (!enter_machine(t)) {
		free(t);
		return NULL;
	}
	open_truth(t);
	retire_init(&t->retire, t->truth);
	t->retire.look = look;
	t->retire.service = service;
	t->retire.on_jump = on_jump;
	t->retire.userdata = t;
	return t;
}

void task_forget(struct task *t)
{
	if (t)
		truth_abandon(t->truth);
	free(t);
}

void task_free(struct task *t)
{
	truth_close(t->truth);
	sched_remove_task(&t->group->machine->ring, t->slot);
	free(t);
}

void task_wait_announced(struct task *t)
{
	struct emuring_task *parent;

	if (t->parent == EMURING_NO_TASK)
		return;
	parent = emuring_task_at(&t->group->machine->ring, t->parent);
	for (int i = 0; i < ANNOUNCE_LOOKS && !t->group->machine->head->closing; i++) {
		uint32_t last = atomic_load(&parent->announced);

		/* The parent may have announced later children, too. Thread IDs increase and wrap.
		 */
		if (last - t->who.tid < ANNOUNCED_LATER)
			return;
		wait_on(&parent->announced, last);
	}
}

static void begin_quantum(struct task *t)
{
	uint64_t size = t->quantum_left != 0 ? t->quantum_left : t->cpu->ring->fixed.quantum;

	t->quantum_end = atomic_load(&t->cpu->cpu->instructions) + size;
	t->quantum_left = 0;
}

bool task_run(struct task *t)
{
	struct machine *m = t->group->machine;
	struct vcpu *v;

	assert(!t->cpu);
	v = sched_acquire(m->cpus, m->n_cpus, t->index);
	if (!v)
		return false;
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

void task_enter_kernel(struct task *t)
{
	struct vcpu *v = t->cpu;
	bool blocks = calls_would_block(&t->call);
	uint64_t used;

	assert(v);
	vcpu_enter_kernel(v);
	emupmu_publish(&v->pmu);
	vcpu_serve(v, NULL);
	t->cpu = NULL;
	if (!blocks) {
		/* A short system call counts as some instructions, and begins no new quantum:
		 * otherwise a thread with many short system calls would keep its CPU forever. */
		used = atomic_load(&v->cpu->instructions) + EMUPMU_VIRTUAL_SYSCALL;
		t->quantum_left = used < t->quantum_end ? t->quantum_end - used : 1;
		sched_put(v->cpu, EMURING_KERNEL, t->index);
		return;
	}
	if (sched_is_contended(v->ring) && sched_give(v, false))
		return;
	sched_put(v->cpu, EMURING_ASLEEP, t->index);
	sched_offer(v, t->index, t->index);
}

void task_exit(struct task *t)
{
	struct vcpu *v = t->cpu;

	sideband_exit(&v->sideband, vcpu_now(v), &t->who);
	vcpu_serve(v, NULL);
	t->cpu = NULL;
	sched_release(v, t->index, false);
}

bool task_yield(struct task *t, uint64_t ip)
{
	struct vcpu *v = t->cpu;

	t->deferred = false;
	if (!v || !must_yield(t))
		return v != NULL;
	retire_interrupt(&t->retire, ip);
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
	/* The keeper runs a stopped thread until the thread has given its CPU away, and then stops
	 * the thread again. */
	while (atomic_load(&t->slot->expelled) != 0 && !t->group->machine->head->closing) {
		wait_on(&t->slot->expelled, 1);
		sched_check_recorder(&t->group->machine->ring);
	}
	return task_run(t);
}

void task_wait_vfork(struct task *t, uint32_t child)
{
	uint32_t done;

	while ((done = atomic_load(&t->slot->vfork_done)) != child &&
	       !t->group->machine->head->closing) {
		siginfo_t info = {.si_pid = 0};

		/* Looks whether the child has ended, without reaping it. */
		if (waitid(P_PID, child, &info, WEXITED | WNOHANG | WNOWAIT) < 0 ||
		    info.si_pid != 0)
			return;
		wait_on(&t->slot->vfork_done, done);
	}
}
