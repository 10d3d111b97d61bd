/*
 * Interprets system calls and signals for the software PMU.
 *
 * System calls tell of mappings, names, children, namespaces, signal handlers and the end of a
 * thread, and whether they may block.
 *
 * QEMU tells a plugin nothing about signals. A signal shows as a block that begins at a
 * registered handler while [RSP] is a registered restorer; the signal frame then has the address of
 * the interrupted instruction.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "capture/emu/plugin/code.h"

struct task;

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

/* The system call in which a guest thread is. */
struct call {
	int64_t number;
	uint64_t args[6];
	uint64_t handler, restorer; /* of rt_sigaction, as they were at the entry */
};

/* A guest thread, traced or not, enters call C: reads what the call can overwrite. */
void calls_enter(struct call *c);
/* execve or execveat: replaces the program, or fails and returns. */
bool calls_is_exec(const struct call *c);
/* exit or exit_group: ends the calling thread or its process. */
bool calls_is_end(const struct call *c);
/* Children will be in a new pid namespace. The recorder does not know the thread IDs there, so that
 * they run untraced. */
bool calls_is_new_pid_namespace(const struct call *c);
/* Changes the user or the group. The shared memory cannot be opened again with the new rights. */
bool calls_is_change_of_user(const struct call *c);
/* The parent waits until its child execs or ends. */
bool calls_is_vfork(const struct call *c);
/* Whether call C would block if it were made now, or takes long in any case: another thread may
 * then have the virtual CPU. A wrong "no" costs the waiting threads a few ms, a wrong "yes" costs
 * two context switches. */
bool calls_would_block(const struct call *c);
/* Call C of any guest thread, traced or not, has returned RET. Registers the signal handler of
 * rt_sigaction in SIG. */
void calls_leave_any(const struct call *c, int64_t ret, struct sig *sig);
/* The call of T returned RET, and T has a CPU again. Writes the records that the kernel would
 * write. */
void calls_leave(struct task *t, int64_t ret);
/* Writes MMAP2 records of the executable mappings in [BEGIN, END), guest addresses. T has a CPU;
 * the records have the time of its last look at the clock. */
void calls_tell_mappings(struct task *t, uint64_t begin, uint64_t end);
