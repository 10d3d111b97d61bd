/*
 * What the host's kernel knows of the emulator's threads: whether they live, and how to get a
 * stopped one out of the way.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

enum emu_life { EMU_LIVES, EMU_STOPPED, EMU_GONE };

enum emu_life emu_task_life(uint32_t tid);
/* Whether TID runs the emulator's program QEMU (device and inode). */
bool emu_task_is_ours(uint32_t tid, const struct stat *qemu);
/* Lets the stopped thread TID run until DONE says so, at most about a tenth of a second; it is
 * stopped as before then. Nobody sees that: job control knows nothing of it. False: not possible
 * (somebody else traces it), or not done in time. */
bool emu_task_nudge(uint32_t tid, bool (*done)(void *userdata), void *userdata);
