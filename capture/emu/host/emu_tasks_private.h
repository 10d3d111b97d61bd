/*
 * The emulator's threads, as the host's kernel sees them: whether they live, and how to make a
 * stopped thread give its CPU away.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

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
