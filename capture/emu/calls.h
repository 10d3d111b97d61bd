/*
 * What system calls mean to the software PMU: mappings, names, children, signal handlers, the end.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "capture/emu/machine.h"
#include "capture/emu/sig.h"

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
/* Ends the calling thread. */
bool calls_is_end(const struct call *c);
/* Any guest thread's call C has returned RET. */
void calls_leave_any(const struct call *c, int64_t ret, struct sig *sig);
/* The traced thread: before the rings are given away; after they are its own again. */
void calls_enter_traced(const struct call *c, struct machine *m);
void calls_leave_traced(const struct call *c, int64_t ret, struct machine *m);
/* The same for an untraced thread, which never owns the rings. */
void calls_enter_untraced(const struct call *c, struct machine *m);
void calls_leave_untraced(const struct call *c, int64_t ret, struct machine *m);
