/*
 * Signal frames. QEMU tells a plugin nothing about signals. A signal shows as a block that begins
 * at a registered handler while [RSP] is a registered restorer; the signal frame then has the
 * address of the interrupted instruction.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "capture/emu/plugin/code.h"

struct sig;

/* CODE is borrowed. The result lives as long as the process. NULL: no memory. */
struct sig *sig_new(struct code *code);
/* Call in a forked child: another thread of the parent may have held the lock. */
void sig_forked(struct sig *s);
/* rt_sigaction installed HANDLER. Values 0 and 1 (SIG_DFL, SIG_IGN) are ignored. At most 256
 * handlers and 256 restorers. Thread safe. */
void sig_add(struct sig *s, uint64_t handler, uint64_t restorer);

struct sig_frame {
	uint64_t rsp; /* address of the frame */
	uint64_t ip;  /* the interrupted instruction of the program */
	bool fault;   /* the instruction at ip, or its fetch, raised the signal */
};
/* A block begins at a handler with stack pointer RSP. True: a signal entered the handler, and *RET
 * is its frame. If several signals were delivered at once, *RET has the ip and fault of the first.
 */
bool sig_entered(struct sig *s, uint64_t rsp, struct sig_frame *ret);
