/*
 * What system calls mean to the software PMU: mappings, names, children, namespaces, signal
 * handlers, the end.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "capture/emu/plugin/sig.h"

struct task;

/* The call a guest thread is in. */
struct call {
	int64_t number;
	uint64_t args[6];
	uint64_t handler, restorer; /* rt_sigaction's, read at the entry */
};

/* Any guest thread enters call C. */
void calls_enter(struct call *c);
/* Replaces the program, unless it returns. */
bool calls_is_exec(const struct call *c);
/* Ends the calling thread, or its process. */
bool calls_is_end(const struct call *c);
/* Makes a child, in a new pid namespace where we would not know it again. */
bool calls_is_new_pid_namespace(const struct call *c);
/* Takes another user's or group's rights, with which the shared memory cannot be opened again. */
bool calls_is_change_of_user(const struct call *c);
/* A parent that waits until its child execs or goes. */
bool calls_is_vfork(const struct call *c);
/* Call C has returned RET to thread T, traced or not. */
void calls_leave_any(const struct call *c, int64_t ret, struct sig *sig);
/* T has a CPU again after its call returned RET: what the kernel would have told of it. */
void calls_leave(struct task *t, int64_t ret);
