/*
 * The keeper of the emulated machine.
 */
#include "capture/emu/host/emu_keeper.h"

#include <assert.h>
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "capture/emu/machine/vcpu.h"
#include "proto/base.h"

#define TICK_NS	      10000000ull
#define TASKS_EVERY   8u /* ticks between two checks of the tasks without a CPU */
#define HINT_PATIENCE 8u /* ticks for which n_waiting may be wrong */

/* One --emu-offline. */
struct absence {
	struct source_emu_offline wish;
	bool begun, over;
	uint64_t since_ns;
};

struct keeper_cpu {
	struct vcpu vcpu;
	uint64_t hold; /* at the last tick */
	uint64_t away_ns;
};

struct emu_keeper {
	struct emuring ring;
	uint32_t n_cpus, max_tasks;
	struct keeper_cpu *cpus;
	struct stat qemu;
	struct absence *absences;
	size_t n_absences;
	uint64_t start_ns;
	unsigned int ticks, wrong_hints;
	pthread_mutex_t lock; /* only one thread checks owners at a time */
	pthread_t thread;
	bool running;
	_Atomic bool stop;
};

static enum emu_life life_of(const struct emuring_task *t)
{
	uint32_t tid = atomic_load(&t->tid);

	return tid == 0 ? EMU_GONE : emu_task_life(tid);
}

void emu_keeper_serve(struct emu_keeper *k, uint32_t cpu)
{
	struct vcpu *v = &k->cpus[cpu].vcpu;
	uint64_t hold;

	assert(cpu < k->n_cpus);
	hold = atomic_load(&v->cpu->hold);
	if (emuring_hold_of(hold) == EMURING_OFF) {
		if (!sched_take(v->cpu, hold, EMURING_RECORDER))
			return;
		/* An offline CPU traces nothing; vcpu_come_back() obeys a request to trace. */
		atomic_store(&v->cpu->is, atomic_load(&v->cpu->want));
		atomic_store(&v->cpu->hold, hold);
		return;
	}
	if (!sched_take_at_rest(v->cpu, EMURING_RECORDER, &hold))
		return;
	emupmu_service(&v->pmu, 0);
	vcpu_serve(v, NULL);
	atomic_store(&v->cpu->hold, hold);
	/* A task that began to wait meanwhile saw the CPU in use. */
	if (emuring_hold_of(hold) == EMURING_ASLEEP)
		sched_offer(v, emuring_task_of(hold), EMURING_RECORDER);
}

/* Writes the EXIT record of a task that is dead, and frees its slot. The keeper owns the rings of
 * V. */
static void bury(struct vcpu *v, struct emuring_task *t)
{
	const struct sideband_task who = {t->pid, t->tid, t->ppid, t->ptid};

	vcpu_settle(v);
	/* The slot was empty when the CPU was given to it. */
	if (who.tid != 0)
		sideband_exit(&v->sideband, vcpu_now(v), &who);
	vcpu_settled(v);
	sched_remove_task(v->ring, t);
}

struct nudge {
	struct emuring_cpu *cpu;
	uint32_t task;
};

/* Whether the task has given its CPU away. */
static bool has_let_go(void *userdata)
{
	const struct nudge *n = userdata;
	uint64_t hold = atomic_load(&n->cpu->hold);

	return emuring_task_of(hold) != n->task ||
	       (emuring_hold_of(hold) != EMURING_USER && emuring_hold_of(hold) != EMURING_BUSY);
}

/* A stopped task owns the CPU and cannot give it away: lets the task run up to its next block. */
static void expel(struct emu_keeper *k, struct vcpu *v, uint32_t index)
{
	struct emuring_task *t = emuring_task_at(&k->ring, index);
	struct nudge n = {v->cpu, index};

	if (!emu_task_is_ours(atomic_load(&t->tid), &k->qemu))
		return;
	atomic_store(&t->expelled, 1);
	emu_task_nudge(atomic_load(&t->tid), has_let_go, &n);
	atomic_store(&t->stopped, 1);
	atomic_store(&t->expelled, 0);
	syscall(SYS_futex, &t->expelled, FUTEX_WAKE, 1, NULL, NULL, 0);
}

/* Takes a CPU back that was given to a stopped task, or to a task that no longer waits for it.
 * STOPPED: the task is stopped. */
static void take_back(struct emu_keeper *k, struct vcpu *v, uint64_t hold, bool stopped)
{
	struct emuring_task *t = emuring_task_at(&k->ring, emuring_task_of(hold));
	uint32_t given = EMURING_TASK_GIVEN | v->index << 8;

	if (!sched_take(v->cpu, hold, EMURING_RECORDER))
		return;
	if (stopped)
		atomic_store(&t->stopped, 1);
	if (atomic_compare_exchange_strong(&t->state, &given, EMURING_TASK_WAITS))
		atomic_fetch_add(&k->ring.shared->n_waiting, 1);
	sched_release(v, EMURING_RECORDER, false);
}

/* Checks whether the task that holds V is dead or stopped. SAME: the hold was the same at the last
 * tick. */
static void check_owner(struct emu_keeper *k, struct vcpu *v, uint64_t word, bool same)
{
	enum emuring_hold hold = emuring_hold_of(word);
	uint32_t index = emuring_task_of(word);
	struct emuring_task *t;

	if (index >= k->max_tasks)
		return;
	t = emuring_task_at(&k->ring, index);
	switch (life_of(t)) {
	case EMU_GONE:
		if (!sched_take(v->cpu, word, EMURING_RECORDER))
			return;
		if (hold == EMURING_USER || hold == EMURING_BUSY)
			emupmu_killed(&v->pmu, hold == EMURING_USER ? atomic_load(&v->cpu->ip) : 0);
		bury(v, t);
		vcpu_serve(v, NULL);
		sched_release(v, EMURING_RECORDER, false);
		break;
	case EMU_STOPPED:
		if (hold == EMURING_GIVEN)
			take_back(k, v, word, true);
		else if (hold == EMURING_USER || hold == EMURING_BUSY)
			expel(k, v, index);
		break;
	case EMU_LIVES:
		/* The CPU was given to a thread that died, and another thread has its slot. */
		if (same && hold == EMURING_GIVEN &&
		    atomic_load(&t->state) != (EMURING_TASK_GIVEN | v->index << 8))
			take_back(k, v, word, false);
	}
}

/* Gives the CPU to a waiting task. Otherwise a CPU whose task has been in the kernel for a tick
 * becomes ASLEEP: the system call is not a short one. */
static void offer(struct vcpu *v, uint64_t hold)
{
	if (!sched_take(v->cpu, hold, EMURING_RECORDER))
		return;
	if (sched_is_contended(v->ring) && sched_give(v, false))
		return;
	if (emuring_hold_of(hold) == EMURING_IDLE)
		sched_put(v->cpu, EMURING_IDLE, EMURING_NO_TASK);
	else
		sched_put(v->cpu, EMURING_ASLEEP, emuring_task_of(hold));
}

void emu_keeper_mend(struct emu_keeper *k, uint32_t cpu)
{
	struct vcpu *v = &k->cpus[cpu].vcpu;
	uint64_t hold;
	bool same;

	assert(cpu < k->n_cpus);
	pthread_mutex_lock(&k->lock);
	hold = atomic_load(&v->cpu->hold);
	same = k->cpus[cpu].hold == hold;
	k->cpus[cpu].hold = hold;
	switch (emuring_hold_of(hold)) {
	case EMURING_USER:
	case EMURING_ASLEEP:
	case EMURING_GIVEN: check_owner(k, v, hold, same); break;
	case EMURING_BUSY:
		if (same && emuring_task_of(hold) != EMURING_RECORDER)
			check_owner(k, v, hold, same);
		break;
	case EMURING_KERNEL:
		check_owner(k, v, hold, same);
		if (same)
			offer(v, hold);
		break;
	default: break;
	}
	hold = atomic_load(&v->cpu->hold);
	if (sched_is_contended(&k->ring) &&
	    (emuring_hold_of(hold) == EMURING_IDLE || emuring_hold_of(hold) == EMURING_ASLEEP))
		offer(v, hold);
	pthread_mutex_unlock(&k->lock);
}

/* Buries a task that has no CPU. Its EXIT record goes to the rings of its last CPU, if possible. */
static void bury_anywhere(struct emu_keeper *k, struct emuring_task *t)
{
	uint32_t last = atomic_load(&t->cpu);

	for (uint32_t i = 0; i < k->n_cpus; i++) {
		struct vcpu *v = &k->cpus[(last + i) % k->n_cpus].vcpu;
		uint64_t hold;

		if (!sched_take_at_rest(v->cpu, EMURING_RECORDER, &hold))
			continue;
		bury(v, t);
		atomic_store(&v->cpu->hold, hold);
		if (emuring_hold_of(hold) == EMURING_ASLEEP)
			sched_offer(v, emuring_task_of(hold), EMURING_RECORDER);
		return;
	}
}

static void check_tasks(struct emu_keeper *k)
{
	for (uint32_t i = 0; i < k->max_tasks; i++) {
		struct emuring_task *t = emuring_task_at(&k->ring, i);
		enum emu_life life;
		bool has_cpu = false;

		if (atomic_load(&t->tid) == 0)
			continue;
		life = life_of(t);
		for (uint32_t j = 0; life == EMU_GONE && !has_cpu && j < k->n_cpus; j++)
			has_cpu = emuring_task_of(atomic_load(&k->cpus[j].vcpu.cpu->hold)) == i;
		if (life == EMU_GONE && !has_cpu)
			bury_anywhere(k, t);
		else if (life == EMU_STOPPED && atomic_load(&t->state) == EMURING_TASK_WAITS)
			atomic_store(&t->stopped, 1);
	}
}

void emu_keeper_sweep(struct emu_keeper *k)
{
	for (uint32_t i = 0; i < k->n_cpus; i++)
		emu_keeper_mend(k, i);
	pthread_mutex_lock(&k->lock);
	check_tasks(k);
	pthread_mutex_unlock(&k->lock);
}

/* Takes the CPU offline if no user code runs there. While user code runs, its thread sees
 * emuring_cpu.offline and does it. */
static void take_off(struct vcpu *v)
{
	uint64_t hold;

	if (!sched_take_at_rest(v->cpu, EMURING_RECORDER, &hold))
		return;
	if (emuring_hold_of(hold) == EMURING_GIVEN) {
		atomic_store(&v->cpu->hold, hold);
		return;
	}
	vcpu_go_off(v);
	sched_put(v->cpu, EMURING_OFF, EMURING_NO_TASK);
}

/* Publishes for how many ns CPU was offline in total. */
static void publish_absences(struct emu_keeper *k, uint32_t cpu)
{
	struct keeper_cpu *c = &k->cpus[cpu];
	uint64_t ns = c->away_ns;

	for (size_t i = 0; i < k->n_absences; i++)
		if (k->absences[i].wish.cpu == cpu && k->absences[i].begun && !k->absences[i].over)
			ns += now_ns(CLOCK_MONOTONIC) - k->absences[i].since_ns;
	atomic_store(&c->vcpu.cpu->away_ns, ns);
}

/* Begins or ends the absence A if it is time. NOW: ns of CLOCK_MONOTONIC. */
static void keep_absence(struct emu_keeper *k, struct absence *a, uint64_t now)
{
	uint64_t usec = (now - k->start_ns) / 1000;
	struct keeper_cpu *c = &k->cpus[a->wish.cpu];
	enum emuring_hold hold = emuring_hold_of(atomic_load(&c->vcpu.cpu->hold));

	if (a->over || usec < a->wish.from_usec)
		return;
	if (!a->begun) {
		a->begun = true;
		a->since_ns = now;
		atomic_store(&c->vcpu.cpu->offline, 1);
	}
	if (usec < a->wish.to_usec) {
		if (hold != EMURING_OFF)
			take_off(&c->vcpu);
		return;
	}
	a->over = true;
	c->away_ns += now - a->since_ns;
	atomic_store(&c->vcpu.cpu->offline, 0);
	if (!sched_take(c->vcpu.cpu, emuring_hold_word(EMURING_OFF, EMURING_NO_TASK),
			EMURING_RECORDER))
		return;
	vcpu_come_back(&c->vcpu);
	sched_release(&c->vcpu, EMURING_RECORDER, false);
}

static void tick(struct emu_keeper *k)
{
	uint64_t now = now_ns(CLOCK_MONOTONIC);
	uint32_t n_waiting = 0;

	for (uint32_t i = 0; i < k->n_cpus; i++)
		emu_keeper_mend(k, i);
	for (size_t i = 0; i < k->n_absences; i++) {
		keep_absence(k, &k->absences[i], now);
		publish_absences(k, k->absences[i].wish.cpu);
	}
	if (k->ticks++ % TASKS_EVERY == 0)
		emu_keeper_sweep(k);
	/* A task that was killed while it waited still counts in head.n_waiting: correct it. */
	for (uint32_t i = 0; i < k->max_tasks; i++)
		n_waiting +=
			atomic_load(&emuring_task_at(&k->ring, i)->state) == EMURING_TASK_WAITS;
	if (atomic_load(&k->ring.shared->n_waiting) == n_waiting) {
		k->wrong_hints = 0;
	} else if (++k->wrong_hints >= HINT_PATIENCE) {
		atomic_store(&k->ring.shared->n_waiting, n_waiting);
		k->wrong_hints = 0;
	}
}

/* Waits for the next tick. When a recorder in another process rings the bell, serves its requests
 * at once. */
static void await_tick(struct emu_keeper *k, uint32_t *bell)
{
	uint64_t now = now_ns(CLOCK_MONOTONIC), end = now + TICK_NS;

	for (; now < end && !k->stop; now = now_ns(CLOCK_MONOTONIC)) {
		const struct timespec rest = {.tv_nsec = (long)(end - now)};
		uint32_t rung = atomic_load(&k->ring.shared->bell);

		if (rung != *bell) {
			*bell = rung;
			for (uint32_t i = 0; i < k->n_cpus; i++)
				emu_keeper_serve(k, i);
			continue;
		}
		syscall(SYS_futex, &k->ring.shared->bell, FUTEX_WAIT, rung, &rest, NULL, 0);
	}
}

static void *keeper_thread(void *userdata)
{
	struct emu_keeper *k = userdata;
	uint32_t bell = 0;

	prctl(PR_SET_NAME, "ptsnapd-keeper");
	while (!k->stop) {
		tick(k);
		await_tick(k, &bell);
	}
	return NULL;
}

int emu_keeper_new(struct emuring_head *head, const char *qemu,
		   const struct source_emu_offline *offline, size_t n_offline,
		   struct emu_keeper **ret)
{
	struct emu_keeper *k = calloc(1, sizeof(*k));

	assert(n_offline <= SOURCE_EMU_MAX_OFFLINE);
	if (!k)
		return -ENOMEM;
	emuring_attach(&k->ring, head);
	k->n_cpus = head->n_cpus;
	k->max_tasks = head->max_tasks;
	k->cpus = calloc(k->n_cpus, sizeof(*k->cpus));
	k->absences = calloc(n_offline + 1, sizeof(*k->absences));
	pthread_mutex_init(&k->lock, NULL);
	if (!k->cpus || !k->absences || stat(qemu, &k->qemu) < 0) {
		emu_keeper_free(k);
		return !k->cpus || !k->absences ? -ENOMEM : -errno;
	}
	for (; k->n_absences < n_offline; k->n_absences++)
		k->absences[k->n_absences].wish = offline[k->n_absences];
	for (uint32_t i = 0; i < k->n_cpus; i++) {
		vcpu_attach(&k->cpus[i].vcpu, &k->ring, i);
		emupmu_init(&k->cpus[i].vcpu.pmu, &k->ring, i);
		sched_put(k->cpus[i].vcpu.cpu, EMURING_IDLE, EMURING_NO_TASK);
		/* Start tracing now if it is requested, even if no task ever runs on the CPU. */
		emu_keeper_serve(k, i);
	}
	k->start_ns = now_ns(CLOCK_MONOTONIC);
	*ret = k;
	return 0;
}

int emu_keeper_start(struct emu_keeper *k)
{
	sigset_t all, old;
	int r;

	assert(!k->running);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	r = pthread_create(&k->thread, NULL, keeper_thread, k);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	k->running = r == 0;
	return -r;
}

void emu_keeper_free(struct emu_keeper *k)
{
	if (!k)
		return;
	k->stop = true;
	if (k->running)
		pthread_join(k->thread, NULL);
	atomic_store(&k->ring.shared->closing, 1);
	sched_wake_all(&k->ring);
	pthread_mutex_destroy(&k->lock);
	free(k->cpus);
	free(k->absences);
	free(k);
}
