/*
 * What a kernel does for CPUs and tasks that cannot do it themselves: in the emulated machine the
 * recorder's keeper, a thread. It serves the recorder's wishes on CPUs that run no user code, finds
 * who was killed or stopped and takes their CPUs away, takes CPUs out of the machine and puts them
 * back.
 *
 * The shared memory is also the guests': tids in it are believed only as far as they belong to the
 * emulator.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "capture/emu/machine/emuring.h"
#include "capture/ring/source.h"

struct emu_keeper;

/* HEAD stays the caller's, its CPUs are laid out and their encoders reset by this. QEMU: the
 * emulator's program. OFFLINE is copied. 0 or -errno. */
int emu_keeper_new(struct emuring_head *head, const char *qemu,
		   const struct source_emu_offline *offline, size_t n_offline,
		   struct emu_keeper **ret);
/* Starts the thread, all signals blocked. 0 or -errno. */
int emu_keeper_start(struct emu_keeper *k);
/* Ends the machine: guests go on without virtual CPUs. */
void emu_keeper_free(struct emu_keeper *k);

/* Does what is wanted on CPU if it runs no user code. Any thread. */
void emu_keeper_serve(struct emu_keeper *k, uint32_t cpu);
/* Looks whether who has CPU still lives, and mends it. Any thread. */
void emu_keeper_mend(struct emu_keeper *k, uint32_t cpu);
/* Looks after all tasks at once, so that the records tell of every death up to now. Any thread. */
void emu_keeper_sweep(struct emu_keeper *k);
