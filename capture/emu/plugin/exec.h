/*
 * The begin and the end of a program under the emulator.
 *
 * A program that begins must not see the emulator: changed variables of its environment, the
 * descriptor of its file, the emulator's name, core files and messages on stderr. When a guest
 * thread replaces its program, the emulator starts the new program (follow.h), the kernel runs it
 * untraced, or it is refused.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "capture/emu/plugin/follow.h"
#include "capture/emu/plugin/task.h"

/* Hides the emulator; call at the program's first block. COMM: the process' name, as execve would
 * have set it. RSP: the guest's stack pointer at its first instruction. */
void exec_begin(const char *comm, uint64_t rsp);
/* NATIVE: the next exec runs without the emulator, and gets the limit of core files that the
 * program was given. Not NATIVE: that exec failed; the emulator must write no core file. */
void exec_native(bool native);

/* The facts that a process knows about itself and that an exec needs. */
struct exec {
	struct follow_self self;
	const struct emuring *ring;
	uint32_t parent; /* index of the parent in the machine's table, or EMURING_NO_TASK */
};

/* T enters execve or execveat. Does not return if the emulator starts the program, or if the
 * program is refused. Otherwise T is in the kernel, and QEMU's own execve decides. */
void exec_enter(struct exec *e, struct task *t);
/* The execve of the calling thread, traced or not, failed. */
void exec_failed(struct exec *e);
/* Lets a parent that waits since vfork continue. */
void exec_tell_parent(const struct exec *e);
