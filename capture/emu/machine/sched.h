/*
 * Which task gets which virtual CPU. The guest's threads and the recorder's keeper use these
 * functions on the holds and the table of tasks in shared memory, without a lock that a killed
 * process could keep.
 *
 * The task that has waited longest is served first. A task that was given a CPU finds its state
 * GIVEN with the CPU's number, and takes the CPU by changing the hold from GIVEN to BUSY. If that
 * fails, the keeper took the CPU back because the task was stopped, and the task waits again.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "capture/emu/machine/vcpu.h"

/* Changes CPU's hold from EXPECTED to BUSY of task WHO (EMURING_RECORDER: the recorder). False: the
 * hold is not EXPECTED. */
bool sched_take(struct emuring_cpu *cpu, uint64_t expected, uint32_t who);
/* The owner releases the CPU: its hold becomes HOLD of TASK. */
void sched_put(struct emuring_cpu *cpu, enum emuring_hold hold, uint32_t task);
/* Takes a CPU that is not in use. *RET: the old hold word, which the caller puts back. False: the
 * CPU is in use (USER, BUSY) or OFF. */
bool sched_take_at_rest(struct emuring_cpu *cpu, uint32_t who, uint64_t *ret);

/* The owner gives the CPU to the task that has waited longest, and writes the switch. PREEMPTED:
 * the last task could have continued. False: no task waits, or the CPU goes offline; the caller
 * still owns the CPU. */
bool sched_give(struct vcpu *v, bool preempted);
/* The owner WHO gives the CPU to a waiting task, or to none, and then writes the switch to the idle
 * task. */
void sched_release(struct vcpu *v, uint32_t who, bool preempted);
/* Call after TASK's hold on CPU became ASLEEP: gives the CPU to a task that began to wait meanwhile
 * and may have seen the old hold. WHO: the caller, which is TASK or EMURING_RECORDER. */
void sched_offer(struct vcpu *v, uint32_t task, uint32_t who);

/* Task ME waits for one of the N CPUs in CPUS, preferably the one that it had last. Returns the CPU
 * with hold BUSY of ME, after writing the switch. NULL: the machine is closing. */
struct vcpu *sched_acquire(struct vcpu *cpus, uint32_t n, uint32_t me);
/* Thread ME begins in a slot that another thread of the same ID may have had: an exec in another
 * thread kills the first thread of a process and takes over its ID. If the killed thread owned a
 * CPU, takes the CPU back; the keeper cannot know. */
void sched_disown(struct vcpu *cpus, uint32_t n, uint32_t me);
/* Whether a task waits for a CPU. */
bool sched_is_contended(const struct emuring *r);
/* Frees the task's slot. */
void sched_remove_task(const struct emuring *r, struct emuring_task *t);
/* Closes the machine if the recorder has died without closing it. */
void sched_check_recorder(const struct emuring *r);
/* Wakes all waiting tasks, so that they look at the shared memory again. */
void sched_wake_all(const struct emuring *r);
