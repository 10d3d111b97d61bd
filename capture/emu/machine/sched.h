/*
 * Who gets which virtual CPU: the holds and the tasks that wait, in shared memory, without a lock
 * that a killed process could keep. Used by the guest's threads (task.c) and by the recorder's
 * keeper.
 *
 * The longest waiting task is served first. A task that is given a CPU finds its state GIVEN with
 * the CPU's number, and takes the CPU by turning its hold from GIVEN to BUSY; should that fail, the
 * CPU was taken back (the keeper found the task stopped) and it waits again.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "capture/emu/machine/vcpu.h"

/* Turns CPU's hold from EXPECTED to BUSY of task WHO (EMURING_RECORDER: the recorder). */
bool sched_take(struct emuring_cpu *cpu, uint64_t expected, uint32_t who);
/* The owner lets go of it: HOLD of TASK from now on. */
void sched_put(struct emuring_cpu *cpu, enum emuring_hold hold, uint32_t task);
/* Takes a CPU on which no user code runs and which nobody works on; *RET: what it held, to be put
 * back. False: it is in use (USER, BUSY), or OFF. */
bool sched_take_at_rest(struct emuring_cpu *cpu, uint32_t who, uint64_t *ret);

/* The owner gives the CPU to the task that waits longest and writes the switch. PREEMPTED: who was
 * there would have gone on. False: nobody waits, the CPU is still the caller's. */
bool sched_give(struct vcpu *v, bool preempted);
/* The owner WHO does not need it any more: to who waits, or nobody (and the idle task is told to be
 * there). */
void sched_release(struct vcpu *v, uint32_t who, bool preempted);
/* After TASK fell asleep on CPU (its hold is ASLEEP): who began to wait meanwhile may not have
 * seen it. WHO: the caller, TASK itself or EMURING_RECORDER. */
void sched_offer(struct vcpu *v, uint32_t task, uint32_t who);

/* Task ME gets one of the N CPUs in CPUS, the one it had last if possible; waits until there is
 * one. Its hold is BUSY of ME then, and the switch is written. NULL: the machine is closing. */
struct vcpu *sched_acquire(struct vcpu *cpus, uint32_t n, uint32_t me);
/* Thread ME begins in a place where another may have been: exec in another thread has killed the
 * one that had the same tid, maybe with a CPU in its hands, which no keeper can tell. */
void sched_disown(struct vcpu *cpus, uint32_t n, uint32_t me);
/* Whether anybody waits for a CPU. */
bool sched_is_contended(const struct emuring *r);
/* The task's place is free again. */
void sched_remove_task(const struct emuring *r, struct emuring_task *t);
/* Closes the machine if the recorder is gone without having done so. */
void sched_check_recorder(const struct emuring *r);
/* Whoever waits looks again. */
void sched_wake_all(const struct emuring *r);
