/*
 * The recorder's side of the emulated machine, and the keeper.
 *
 * This room runs in ptsnapd. It finds QEMU and COMMAND (emu_qemu.h, emu_command_private.h), starts
 * COMMAND under QEMU with the software PMU, and offers the machine as a source of the recorder
 * (source_emu.c, declared in capture/ring/source.h). Behind the rings, nothing differs from the
 * source that hardware fills.
 *
 * The keeper is a thread that does what a kernel does for CPUs and tasks that cannot do it
 * themselves:
 *   - It serves the recorder's requests on CPUs that run no user code.
 *   - It finds threads that were killed or stopped, and takes their CPUs away: no process tells it.
 * It looks every 10 ms.
 *   - It takes CPUs offline and brings them back (--emu-offline).
 *
 * The keeper takes a CPU as all others do, by its hold (capture/emu/machine/vcpu.h), and never
 * waits for a guest. Its lock is only among threads of the recorder.
 *
 * The traced processes can write to the shared memory. The keeper therefore uses a thread ID from
 * there only for a thread that runs the emulator's program, bounds all indexes, and uses its own
 * copy of the layout.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "capture/emu/machine/emuring.h"
#include "capture/ring/source.h"

struct emu_keeper;

/* HEAD is borrowed; its CPUs become idle and their encoders are cleared. QEMU: path of the
 * emulator's program. OFFLINE is copied. 0 or -errno. */
int emu_keeper_new(struct emuring_head *head, const char *qemu,
		   const struct source_emu_offline *offline, size_t n_offline,
		   struct emu_keeper **ret);
/* Starts the keeper's thread with all signals blocked. 0 or -errno. */
int emu_keeper_start(struct emu_keeper *k);
/* Closes the machine: guests continue without virtual CPUs. Joins the thread and frees K. NULL is
 * allowed. */
void emu_keeper_free(struct emu_keeper *k);

/* Serves the recorder's request on CPU if no user code runs there. Any thread may call this. */
void emu_keeper_serve(struct emu_keeper *k, uint32_t cpu);
/* Checks whether the owner of CPU still lives, and takes the CPU away if the owner is dead or
 * stopped. Any thread may call this. */
void emu_keeper_mend(struct emu_keeper *k, uint32_t cpu);
/* Checks all CPUs and tasks, so that every death up to now has its EXIT record. Any thread may call
 * this. */
void emu_keeper_sweep(struct emu_keeper *k);
