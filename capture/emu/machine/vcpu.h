/*
 * The emulated machine: its virtual CPUs, the packets and records that they write, and who may use
 * them.
 *
 * The plugin (in the emulator's processes) and the recorder's keeper share this room. Both work on
 * the same shared memory, with structs of their own:
 *
 *   emuring   the shared memory: head, table of tasks, and a control page and rings for each CPU.
 *             The rings have the kernel's own layout, so that readers cannot tell the difference.
 *   vcpu      one virtual CPU as its present owner sees it: tracing, and the task on the CPU
 *   pmu       when which packet is due; encode writes the packets
 *   sideband  the perf records that the kernel would write about tasks
 *   sched     which task gets which CPU
 *   emuoffer  what the process with the machine tells a recorder in another process
 *   emustart  how the emulator starts a program
 *   execplan  what execve(2) would do with a file; execfile reads the file's beginning
 *
 * Only the owner of a CPU (hold USER or BUSY, see emuring.h) may use a struct vcpu. The hold
 * changes only by compare-and-swap. There is no lock, because a killed process would keep the lock
 * forever; for the same reason all state of the encoder lies in shared memory, and the recorder
 * finishes the trace of a killed thread from there.
 *
 * Everything that the program under the emulator can write, it may write: the shared memory is
 * hostile. Sizes and offsets come from a copy (emuring.fixed), positions are used modulo their
 * ring, and loops are bounded.
 *
 * The times of a CPU's records never run backwards. That a task slept is known only later, and its
 * switch has the time at which it began to sleep; therefore vcpu_settle() must precede any other
 * record.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "capture/emu/machine/pmu.h"
#include "capture/emu/machine/sideband.h"

struct vcpu {
	const struct emuring *ring;
	struct emuring_cpu *cpu; /* shared */
	uint32_t index;
	struct emupmu pmu;
	struct sideband sideband;
	/* Called when tracing stops in user code; NULL: no callback. */
	void (*on_stop)(void *userdata, uint64_t tsc, uint64_t pos, uint32_t generation);
	void *userdata;
};

/* RING is borrowed. */
void vcpu_attach(struct vcpu *v, const struct emuring *ring, uint32_t index);

/* Reads the clock and writes the time packets that are due. Returns the TSC that the next packets
 * and records have. */
uint64_t vcpu_now(struct vcpu *v);
/* The task on the CPU has just entered the kernel. */
void vcpu_enter_kernel(struct vcpu *v);
/* Call before writing a record while no user code runs. If the task on the CPU has been in the
 * kernel for long, it sleeps: writes the switch to the idle task, with the time at which it
 * entered. */
void vcpu_settle(struct vcpu *v);
/* Call after such records. The task on the CPU counts as having entered the kernel now, so that a
 * later switch does not precede them. */
void vcpu_settled(struct vcpu *v);
/* NEXT (all members 0: the idle task) is on the CPU from now on; writes the switch. PREEMPTED: the
 * last task could have continued. */
void vcpu_switch(struct vcpu *v, const struct sideband_task *next, bool preempted);
/* Starts or stops tracing if the recorder requested it. IP: the next user instruction; NULL: no
 * user code runs. */
void vcpu_serve(struct vcpu *v, const uint64_t *ip);
/* The CPU goes offline: stops tracing and writes the switch to the idle task. The caller then sets
 * the hold to OFF. */
void vcpu_go_off(struct vcpu *v);
/* The CPU comes back online; the caller then sets the hold to IDLE. */
void vcpu_come_back(struct vcpu *v);
