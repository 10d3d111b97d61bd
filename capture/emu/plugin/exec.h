/*
 * A guest thread replaces its program: followed, left to the kernel, or refused.
 */
#pragma once

#include "capture/emu/plugin/follow.h"
#include "capture/emu/plugin/task.h"

/* What a process knows of itself for that. */
struct exec {
	struct follow_self self;
	const struct emuring *ring;
	uint32_t parent; /* of this process, as a place in the table; EMURING_NO_TASK: none */
};

/* T enters execve or execveat. Does not return when the program could be started under the emulator
 * or is refused; else T is in the kernel, and QEMU's own execve says what comes of it. */
void exec_enter(struct exec *e, struct task *t);
/* Which failed. Also of a thread that is not traced. */
void exec_failed(struct exec *e);
/* A parent that waits since vfork goes on. */
void exec_tell_parent(const struct exec *e);
