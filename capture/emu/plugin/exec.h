/*
 * A guest thread replaces its program: the emulator starts the new program, the kernel runs it
 * untraced, or it is refused.
 */
#pragma once

#include "capture/emu/plugin/follow.h"
#include "capture/emu/plugin/task.h"

/* What a process knows about itself for an exec. */
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
