/*
 * Decides which task gets which virtual CPU. A guest's thread waits here only outside of QEMU's
 * execution of guest code; the recorder's keeper never waits.
 */
#include "capture/emu/machine/vcpu.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "proto/base.h"

/* A waiting task looks from time to time, because the thread that should wake it may have been
 * killed. */
#define LOOK_NS	    20000000l
#define LOOKS_ALIVE 16u /* looks between two checks whether the recorder lives */
#define SPINS	    200u
#define NAP_NS	    50000l
#define NAPS_ALIVE  1024u
#define LAST_TRIES  16

static void wake(_Atomic uint32_t *word)
{
	syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

static bool is_given(uint32_t state)
{
	return (state & 0xff) == EMURING_TASK_GIVEN;
}

bool sched_is_contended(const struct emuring *r)
{
	return atomic_load_explicit(&r->shared->n_waiting, memory_order_relaxed) != 0;
}

bool sched_take(struct emuring_cpu *cpu, uint64_t expected, uint32_t who)
{
	return atomic_compare_exchange_strong(&cpu->hold, &expected,
					      emuring_hold_word(EMURING_BUSY, who));
}

void sched_put(struct emuring_cpu *cpu, enum emuring_hold hold, uint32_t task)
{
	atomic_store(&cpu->hold, emuring_hold_word(hold, task));
}

bool sched_take_at_rest(struct emuring_cpu *cpu, uint32_t who, uint64_t *ret)
{
	*ret = atomic_load(&cpu->hold);
	switch (emuring_hold_of(*ret)) {
	case EMURING_IDLE:
	case EMURING_KERNEL:
	case EMURING_ASLEEP:
	case EMURING_GIVEN: return sched_take(cpu, *ret, who);
	default: return false;
	}
}

/* The task that has waited longest, or EMURING_NO_TASK. */
static uint32_t longest_waiting(const struct emuring *r)
{
	uint64_t best = UINT64_MAX;
	uint32_t found = EMURING_NO_TASK;

	for (uint32_t i = 0; i < r->fixed.max_tasks; i++) {
		struct emuring_task *t = emuring_task_at(r, i);

		if (atomic_load(&t->state) != EMURING_TASK_WAITS || atomic_load(&t->stopped) ||
		    atomic_load(&t->ticket) >= best)
			continue;
		best = atomic_load(&t->ticket);
		found = i;
	}
	return found;
}

static struct sideband_task who_is(const struct emuring_task *t)
{
	return (struct sideband_task){t->pid, t->tid, t->ppid, t->ptid};
}

bool sched_give(struct vcpu *v, bool preempted)
{
	uint64_t hold = atomic_load(&v->cpu->hold);
	struct sideband_task next;
	struct emuring_task *t;
	uint32_t index, waits;

	if (atomic_load(&v->cpu->offline) != 0)
		return false;
	/* BUSY before the choice: a chosen task that looks before the switch is written must see
	 * that it has to wait. With USER, it would conclude that the CPU was taken back. */
	sched_put(v->cpu, EMURING_BUSY, emuring_task_of(hold));
	do {
		index = longest_waiting(v->ring);
		if (index == EMURING_NO_TASK) {
			atomic_store(&v->cpu->hold, hold);
			return false;
		}
		t = emuring_task_at(v->ring, index);
		waits = EMURING_TASK_WAITS;
	} while (!atomic_compare_exchange_strong(&t->state, &waits,
						 EMURING_TASK_GIVEN | v->index << 8));
	atomic_fetch_sub(&v->ring->shared->n_waiting, 1);
	next = who_is(t);
	vcpu_switch(v, &next, preempted);
	sched_put(v->cpu, EMURING_GIVEN, index);
	wake(&t->state);
	return true;
}

void sched_release(struct vcpu *v, uint32_t who, bool preempted)
{
	static const struct sideband_task nobody;

	if (sched_give(v, preempted))
		return;
	vcpu_switch(v, &nobody, preempted);
	sched_put(v->cpu, EMURING_IDLE, EMURING_NO_TASK);
	/* A task that began to wait before this store may have seen BUSY. */
	if (sched_is_contended(v->ring) &&
	    sched_take(v->cpu, emuring_hold_word(EMURING_IDLE, EMURING_NO_TASK), who) &&
	    !sched_give(v, false))
		sched_put(v->cpu, EMURING_IDLE, EMURING_NO_TASK);
}

void sched_offer(struct vcpu *v, uint32_t task, uint32_t who)
{
	uint64_t asleep = emuring_hold_word(EMURING_ASLEEP, task);

	if (sched_is_contended(v->ring) && sched_take(v->cpu, asleep, who) && !sched_give(v, false))
		sched_put(v->cpu, EMURING_ASLEEP, task);
}

/* Whether task ME may take a CPU with this HOLD: idle, or its task sleeps, or it is ME's
 * (*RET_OWN). */
static bool is_free(uint64_t hold, uint32_t me, bool *ret_own)
{
	enum emuring_hold h = emuring_hold_of(hold);

	*ret_own = emuring_task_of(hold) == me && (h == EMURING_KERNEL || h == EMURING_ASLEEP);
	return *ret_own || h == EMURING_IDLE || h == EMURING_ASLEEP;
}

/* ONLY_IDLE: leave the CPUs of other sleeping tasks alone. */
static bool try_take(struct vcpu *v, uint32_t me, bool only_idle)
{
	uint64_t hold = atomic_load(&v->cpu->hold);
	bool own;

	if (!is_free(hold, me, &own) ||
	    atomic_load_explicit(&v->cpu->offline, memory_order_relaxed))
		return false;
	if (only_idle && !own && emuring_hold_of(hold) != EMURING_IDLE)
		return false;
	return sched_take(v->cpu, hold, me);
}

/* Takes a free CPU: the LAST one, else an idle one, else one whose task sleeps. NULL: none is free.
 */
static struct vcpu *look_around(struct vcpu *cpus, uint32_t n, uint32_t me, uint32_t last)
{
	if (last < n && try_take(&cpus[last], me, true))
		return &cpus[last];
	for (uint32_t i = 0; i < n; i++)
		if (try_take(&cpus[i], me, true))
			return &cpus[i];
	for (uint32_t i = 0; i < n; i++)
		if (try_take(&cpus[(last + i) % n], me, false))
			return &cpus[(last + i) % n];
	return NULL;
}

void sched_check_recorder(const struct emuring *r)
{
	if (kill((pid_t)r->fixed.recorder_pid, 0) < 0 && errno == ESRCH)
		atomic_store(&r->shared->closing, 1);
}

/* Waits while another thread or the recorder works on the CPU, which takes only a moment. */
static void wait_while_busy(struct emuring_cpu *cpu, const struct emuring *r)
{
	static const struct timespec nap = {.tv_nsec = NAP_NS};
	unsigned int i = 0;

	while (emuring_hold_of(atomic_load(&cpu->hold)) == EMURING_BUSY && !r->shared->closing) {
		if (i++ < SPINS) {
			__builtin_ia32_pause();
			continue;
		}
		nanosleep(&nap, NULL);
		if (i % NAPS_ALIVE == 0)
			sched_check_recorder(r);
	}
}

/* Takes the CPU that was given to ME. False: the keeper took it back. The keeper may also take the
 * CPU for a moment at any time, and puts the same hold back. */
static bool accept_cpu(struct vcpu *v, uint32_t me)
{
	const uint64_t given = emuring_hold_word(EMURING_GIVEN, me);

	for (;;) {
		uint64_t hold = atomic_load(&v->cpu->hold);

		if (hold == given && sched_take(v->cpu, given, me))
			return true;
		/* BUSY: the giver has not finished yet, or the recorder works on the CPU. */
		if (hold != given &&
		    (emuring_hold_of(hold) != EMURING_BUSY || v->ring->shared->closing))
			return false;
		wait_while_busy(v->cpu, v->ring);
	}
}

/* Changes the state from WAITS to RUNS. False: the task was given a CPU meanwhile. */
static bool stop_waiting(const struct emuring *r, struct emuring_task *t)
{
	uint32_t waits = EMURING_TASK_WAITS;

	if (!atomic_compare_exchange_strong(&t->state, &waits, EMURING_TASK_RUNS))
		return false;
	atomic_fetch_sub(&r->shared->n_waiting, 1);
	return true;
}

/* One attempt to get a CPU; sleeps at most LOOK_NS. NULL: no CPU yet. */
static struct vcpu *wait_once(struct vcpu *cpus, uint32_t n, uint32_t me, struct emuring_task *t)
{
	static const struct timespec look = {.tv_nsec = LOOK_NS};
	const struct emuring *r = cpus[0].ring;
	struct vcpu *found = look_around(cpus, n, me, atomic_load(&t->cpu));
	uint32_t state, given;

	if (found && stop_waiting(r, t))
		return found;
	/* The task found one CPU and was given another: it keeps the given one. */
	if (found)
		sched_release(found, me, false);
	if (!is_given(atomic_load(&t->state)))
		syscall(SYS_futex, &t->state, FUTEX_WAIT, EMURING_TASK_WAITS, &look, NULL, 0);
	state = atomic_load(&t->state);
	if (!is_given(state))
		return NULL;
	given = state >> 8;
	atomic_store(&t->state, EMURING_TASK_RUNS);
	return given < n && accept_cpu(&cpus[given], me) ? &cpus[given] : NULL;
}

static struct vcpu *wait_for_cpu(struct vcpu *cpus, uint32_t n, uint32_t me, struct emuring_task *t)
{
	const struct emuring *r = cpus[0].ring;
	struct vcpu *v = NULL;

	atomic_store(&t->ticket, atomic_fetch_add(&r->shared->tickets, 1));
	for (unsigned int looks = 1; !v && !r->shared->closing; looks++) {
		if (atomic_load(&t->state) == EMURING_TASK_RUNS) {
			atomic_store(&t->stopped, 0);
			atomic_fetch_add(&r->shared->n_waiting, 1);
			atomic_store(&t->state, EMURING_TASK_WAITS);
		}
		atomic_store(&t->stopped, 0);
		v = wait_once(cpus, n, me, t);
		if (looks % LOOKS_ALIVE == 0)
			sched_check_recorder(r);
	}
	if (!v)
		stop_waiting(r, t);
	return v;
}

/* ME comes back from the kernel and tries to take its last CPU. If another thread or the recorder
 * works on that CPU, waits for the end of the work: the recorder leaves the CPU to ME, and another
 * thread has written the switch away from ME. */
static bool take_last(struct vcpu *v, uint32_t me)
{
	for (int i = 0; i < LAST_TRIES && !v->ring->shared->closing; i++) {
		uint64_t hold;
		bool own;

		wait_while_busy(v->cpu, v->ring);
		if (try_take(v, me, true))
			return true;
		hold = atomic_load(&v->cpu->hold);
		/* If the CPU is to go offline, take it offline here, so that the switch away from
		 * it precedes the switch to another CPU. */
		if (atomic_load(&v->cpu->offline) != 0 && is_free(hold, me, &own) && own &&
		    sched_take(v->cpu, hold, me)) {
			vcpu_go_off(v);
			sched_put(v->cpu, EMURING_OFF, EMURING_NO_TASK);
		}
		if (emuring_hold_of(atomic_load(&v->cpu->hold)) != EMURING_BUSY)
			break;
	}
	return false;
}

struct vcpu *sched_acquire(struct vcpu *cpus, uint32_t n, uint32_t me)
{
	const struct emuring *r = cpus[0].ring;
	struct emuring_task *t = emuring_task_at(r, me);
	uint32_t last = atomic_load(&t->cpu);
	struct sideband_task self = who_is(t);
	struct vcpu *v = NULL;

	if (r->shared->closing)
		return NULL;
	if (last < n && take_last(&cpus[last], me))
		v = &cpus[last];
	if (!v)
		v = wait_for_cpu(cpus, n, me, t);
	if (!v)
		return NULL;
	atomic_store(&t->cpu, v->index);
	vcpu_switch(v, &self, false);
	return v;
}

void sched_disown(struct vcpu *cpus, uint32_t n, uint32_t me)
{
	const struct emuring *r = cpus[0].ring;
	struct emuring_task *t = emuring_task_at(r, me);

	stop_waiting(r, t);
	atomic_store(&t->state, EMURING_TASK_RUNS);
	for (uint32_t i = 0; i < n; i++) {
		struct vcpu *v = &cpus[i];
		uint64_t word = atomic_load(&v->cpu->hold);
		enum emuring_hold hold = emuring_hold_of(word);

		if (emuring_task_of(word) != me ||
		    (hold != EMURING_USER && hold != EMURING_BUSY && hold != EMURING_GIVEN) ||
		    !sched_take(v->cpu, word, me))
			continue;
		if (hold != EMURING_GIVEN)
			emupmu_killed(&v->pmu, hold == EMURING_USER ? atomic_load(&v->cpu->ip) : 0);
		sched_release(v, me, false);
	}
}

void sched_remove_task(const struct emuring *r, struct emuring_task *t)
{
	stop_waiting(r, t);
	atomic_store(&t->announced, 0);
	atomic_store(&t->vfork_done, 0);
	atomic_store(&t->state, EMURING_TASK_RUNS);
	atomic_store(&t->tid, 0);
}

void sched_wake_all(const struct emuring *r)
{
	for (uint32_t i = 0; i < r->fixed.max_tasks; i++)
		wake(&emuring_task_at(r, i)->state);
}
