/*
 * Signal frames. QEMU tells a plugin nothing about signals: they show as a block that begins at a
 * registered handler while [RSP] is a registered restorer; then the frame says what was
 * interrupted.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "capture/emu/plugin/code.h"

struct sig;

/* Lives as long as the process. NULL: no memory. */
struct sig *sig_new(struct code *code);
/* In a forked child: another thread of the parent may have held the lock. */
void sig_forked(struct sig *s);
/* rt_sigaction succeeded. HANDLER 0 and 1 (default, ignore) are none. Thread safe. */
void sig_add(struct sig *s, uint64_t handler, uint64_t restorer);

struct sig_frame {
	uint64_t rsp; /* where it lies */
	uint64_t ip;  /* what was interrupted, beneath all handlers that have not begun yet */
	bool fault;   /* a fault of the instruction at ip, or of fetching it */
};
/* A block begins at handler IP with the stack pointer RSP: true when a signal brought it here. */
bool sig_entered(struct sig *s, uint64_t rsp, struct sig_frame *ret);
