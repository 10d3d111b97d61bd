/*
 * One virtual CPU as its present owner sees it (hold USER or BUSY, capture/emu/machine/emuring.h):
 * tracing on and off as the recorder wants it, and which task is on it. In the emulator's processes
 * and in the recorder, each with structs of its own over the same shared memory.
 *
 * Times of records never run backwards on a CPU. That a task slept is told when it is known, with
 * the time at which it began to; therefore vcpu_settle comes before any other record.
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
	/* Tracing was stopped in user code; NULL: nobody wants to know. */
	void (*on_stop)(void *userdata, uint64_t tsc, uint64_t pos, uint32_t generation);
	void *userdata;
};

/* RING stays the caller's. */
void vcpu_attach(struct vcpu *v, const struct emuring *ring, uint32_t index);

/* The time, as packets and records of this CPU have it. */
uint64_t vcpu_now(struct vcpu *v);
/* The task that is on the CPU (all 0: none) entered the kernel, just now. */
void vcpu_enter_kernel(struct vcpu *v);
/* Before a record that is written now while no user code runs: if the task has been asleep it left
 * the CPU when it fell asleep. */
void vcpu_settle(struct vcpu *v);
/* After such records: what happens from now on comes behind them. */
void vcpu_settled(struct vcpu *v);
/* NEXT (all 0: nobody) is on the CPU from now on. PREEMPTED: who was there would have gone on. */
void vcpu_switch(struct vcpu *v, const struct sideband_task *next, bool preempted);
/* Does what the recorder wants. IP: of the next user instruction; NULL: no user code runs. */
void vcpu_serve(struct vcpu *v, const uint64_t *ip);
/* The CPU is taken away: tracing stops, nobody is on it. And comes back. The owner's hold becomes
 * OFF or IDLE afterwards. */
void vcpu_go_off(struct vcpu *v);
void vcpu_come_back(struct vcpu *v);
