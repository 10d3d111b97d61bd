/*
 * The recorder's side of the emulated machine, and the keeper.
 *
 * This room runs in ptsnapd. It finds QEMU and COMMAND (emu_qemu.h), starts COMMAND under QEMU with
 * the software PMU, and offers the machine as a source of the recorder (source_emu.c, declared in
 * capture/ring/source.h). Behind the rings, nothing differs from the source that hardware fills.
 *
 * The keeper is a thread that does what a kernel does for CPUs and tasks that cannot do it
 * themselves:
 *   - It serves the recorder's requests on CPUs that run no user code.
 *   - It finds threads that were killed or stopped, and takes their CPUs away. No process tells the
 *     keeper about them; it looks every 10 ms.
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
#include <sys/stat.h>
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

/* For the keeper and its tests: the emulator's threads, as the host's kernel sees them
 * (emu_tasks.c). */

enum emu_life { EMU_LIVES, EMU_STOPPED, EMU_GONE };

/* Whether thread TID lives. A zombie is EMU_GONE, unless it is the first thread of a process with
 * other threads that live. EMU_LIVES if /proc does not tell. */
enum emu_life emu_task_life(uint32_t tid);
/* Whether thread TID runs the emulator's program QEMU (compares device and inode). */
bool emu_task_is_ours(uint32_t tid, const struct stat *qemu);
/* Lets the stopped thread TID run until DONE returns true, at most about a tenth of a second. The
 * thread is stopped again then; its parent is not notified. False: another process traces the
 * thread, or not done in time. */
bool emu_task_nudge(uint32_t tid, bool (*done)(void *userdata), void *userdata);
