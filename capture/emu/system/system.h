/*
 * The software PMU of a whole virtual machine: what executed on one virtual CPU, user code and
 * kernel code, as packets in the AUX buffer that the guest's kernel gave.
 *
 * QEMU's system emulator (TCG) loads ptsnap-syspmu.so, and the guest's kernel module rings the bell
 * (bell.h) where the driver of a real PMU would write IA32_RTIT_CTL.
 *
 *   plugin.c   QEMU's callbacks, and the bell
 *   system.c   from blocks to branches, system calls, interrupts and faults
 *   models.h   what the processors differ in
 *   vm.h       the machine's registers, memory and clock
 *
 * The packet writer, the PMU and the classes of blocks are those of the emulated machine
 * (capture/emu/machine, capture/emu/plugin).
 *
 * Decisions that govern the room:
 * - One callback a block. Two successive blocks tell what happened between them, as retire.h says;
 *   the first block of an interrupt's or exception's handler has the interrupted instruction in the
 *   frame that the processor pushed (SDM volume 3, "64-Bit Mode Stack Frame").
 * - The addresses of handlers are those of the guest's IDT when tracing starts.
 * - An address with the sign bit is kernel code.
 * - A fault of the plugin is never silent: transfers that nothing explains are counted and reported
 *   at the end, because the trace is wrong there.
 * - The guest can write to its RAM at any time: positions are those of the PMU's own state, modulo
 *   the buffer's size.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "capture/emu/machine/emuring.h"
#include "capture/emu/machine/pmu.h"
#include "capture/emu/plugin/code.h"
#include "capture/emu/plugin/retire.h"
#include "capture/emu/system/bell.h"

#define SYSTEM_VECTORS 256u
/* In struct system_cpu, watched: every block. Not among the BLOCK_* flags. */
#define SYSTEM_EVERY_BLOCK 0x100u

/* The guest's interrupt descriptor table. */
struct system_idt {
	uint64_t handler[SYSTEM_VECTORS];
};

struct system_cpu {
	unsigned int vcpu;
	bool on;		    /* TraceEn */
	uint32_t watched;	    /* BLOCK_* of blocks that system_unusual() must see */
	uint64_t overflow_bytes;    /* an overflow after each so many bytes; 0: none */
	struct emuring_cpu *memory; /* of this process only */
	struct emuring_head config;
	struct emupmu pmu;
	struct retire retire; /* only the members that retire_usual() needs */
	const struct system_idt *idt;
	uint8_t *aux; /* mapped; NULL: no buffer yet */
	uint64_t aux_size, buffer;
	uint64_t unexplained, first_from, first_to;
};

/* 0 or -ENOMEM. */
int system_cpu_init(struct system_cpu *c, unsigned int vcpu, const struct system_idt *idt);
/* The bell: BELL_START with BELL's buffer, which is mapped already, and BELL_STOP, where the next
 * instruction is IP. */
void system_start(struct system_cpu *c, const struct bell *bell, uint64_t ip);
void system_stop(struct system_cpu *c, struct bell *bell, uint64_t ip);
/* The CPU goes to sleep (HLT), and wakes up. */
void system_idle(struct system_cpu *c);
void system_awake(struct system_cpu *c);

/* B is about to run behind PREV; handles all that retire_usual() does not. */
void system_unusual(struct system_cpu *c, struct block *prev, struct block *b);
/* The budget is spent, or a PSB is due. */
void system_service(struct system_cpu *c, const struct block *b);

/* Whether the last block matters for what the next one means. With address ranges, code that is not
 * traced may lead to traced code. */
static inline bool system_follows(const struct system_cpu *c)
{
	return c->on && (c->pmu.s->flowing || c->pmu.with_ranges);
}

/* Call before each block. */
static inline __attribute__((always_inline)) void system_before(struct system_cpu *c,
								struct block *b)
{
	struct block *p = c->retire.prev;

	if (!c->on)
		return;
	c->retire.prev = b;
	if (__builtin_expect(((p->flags | b->flags | SYSTEM_EVERY_BLOCK) & c->watched) != 0 ||
				     !retire_usual(&c->retire, p, b->ip),
			     0))
		system_unusual(c, p, b);
	if (__builtin_expect(--c->pmu.budget < 0, 0))
		system_service(c, b);
}
