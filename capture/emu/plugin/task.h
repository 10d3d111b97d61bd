/*
 * The software PMU inside the emulator: one guest thread on one virtual CPU.
 *
 * This room is the TCG plugin that QEMU's user-mode emulator loads (docs/EMULATOR.md). For the
 * traced program it does what the kernel and the CPU do for an intel_pt event, and fills the same
 * rings in the same layout (capture/emu/machine/emuring.h).
 *
 * Types:
 *   task    one guest thread. It is on a virtual CPU, in the kernel, waits for a CPU, or has ended.
 *   retire  what the thread executed since the last block, for the PMU (retire.h; the hot path)
 *   block   one translated block of the program (code.h)
 *   call    the system call in which the thread is (calls.h)
 *   sig     the signal handlers of the process, and what a signal frame tells (calls.h)
 *   follow  an exec that starts the emulator again (follow.h); exec.h does it
 *   truth   the file of what really executed, for tests (truth.h)
 *
 * Each guest thread changes only its own task. Threads meet in the shared memory: by
 * compare-and-swap on a CPU's hold word (capture/emu/machine/vcpu.h), without locks, because any
 * thread may be killed at any instruction. Locks of the process protect only the table of blocks
 * and the table of signal handlers; a forked child initialises them again.
 *
 * A thread waits only in deferred work (guest_defer) and in system call callbacks. A thread that
 * waits in the callback of a block counts as running for QEMU, and exclusive sections (fork, exit)
 * would wait for it forever.
 *
 * The plugin runs inside the traced process and must not change what the program does. It keeps no
 * file descriptor open that the program could see or close, reads guest memory only through the
 * kernel (any guest pointer may be bad), and never prints, except a refusal to start. A thread or
 * child that gets no place in the machine runs untraced and is counted.
 *
 * No other room includes this one. The plugin links the machine room, perf records and Zydis, and
 * nothing else of the project.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "capture/emu/machine/vcpu.h"
#include "capture/emu/plugin/calls.h"
#include "capture/emu/plugin/retire.h"
#include "capture/emu/plugin/truth.h"

/* The emulated machine as one process sees it. */
struct machine {
	struct emuring ring;
	struct emuring_head *head; /* ring.shared */
	uint64_t size;		   /* bytes of the shared memory */
	uint32_t n_cpus;
	struct vcpu *cpus; /* this process' own structs for the virtual CPUs */
};

/* Maps the shared memory at PATH and checks it. The mapping lives as long as the process. 0;
 * -EBADMSG: not a machine of this version; -ENOMEM; -errno. */
int machine_open(struct machine *m, const char *path);

/* The state that the threads of a process share. */
struct task_group {
	struct machine *machine;
	struct sig *sig;
	const char *truth; /* directory of truth files; NULL: none */
	/* The value of head->resync up to which this process has repeated its records. */
	_Atomic uint32_t resynced;
	_Atomic uint64_t resynced_at; /* TSC */
	char comm[16];		      /* the process' name, as execve set it */
	/* Deferred work of a thread that has to give its CPU away; calls task_yield(). */
	void (*yield)(void *cpu, void *data);
};

struct task {
	struct retire retire;
	struct task_group *group;
	struct vcpu *cpu; /* NULL: the thread has no virtual CPU */
	uint32_t index;	  /* in the machine's table */
	struct emuring_task *slot;
	struct sideband_task who;
	unsigned int vcpu; /* QEMU's number of the thread's CPU */
	uint64_t quantum_end;
	uint64_t quantum_left; /* of the quantum, after a short system call; 0: a new quantum */
	struct call call;
	struct truth *truth;
	uint32_t parent; /* index of the parent in the machine's table, or EMURING_NO_TASK */
	bool deferred;	 /* group->yield has been deferred and has not run yet */
};

/* Takes the calling thread into the machine. VCPU: QEMU's number of its CPU. PARENT: index of the
 * thread that made it, or EMURING_NO_TASK. NULL: the machine's table is full or no memory; the
 * thread runs untraced. Free the result with task_free() or task_forget(). */
struct task *task_new(struct task_group *group, unsigned int vcpu, uint32_t parent);
/* Frees T and its slot in the machine's table. */
void task_free(struct task *t);
/* Call in a forked child: frees the copy of the parent's task. The slot belongs to the parent. NULL
 * is allowed. */
void task_forget(struct task *t);

/* Waits until the parent has written this thread's FORK record, which must precede all other
 * records of the thread. Gives up after a second: a parent that was killed writes none. */
void task_wait_announced(struct task *t);
/* Waits for a virtual CPU. False: the machine is closing, and the thread continues without one. */
bool task_run(struct task *t);
/* Call in the first thread of a process at its first block: writes the records of the program's
 * name and mappings. */
void task_begin_program(struct task *t);

/* The thread enters the kernel with t->call, and has no CPU until the next task_run(). */
void task_enter_kernel(struct task *t);
/* Around an exec: closes the truth file, which the next program continues; opens it again if the
 * exec failed. */
void task_pause_truth(struct task *t);
void task_resume_truth(struct task *t);
/* The thread, or its whole process, is about to end. The thread has no CPU after that. */
void task_exit(struct task *t);
/* Call between two blocks; IP: begin of the next block. If the thread has to give its CPU away,
 * gives it away and waits for a CPU. False: the machine is closing, and the thread has no CPU. */
bool task_yield(struct task *t, uint64_t ip);
/* The thread is in the kernel without a CPU, and waits until its vfork child execs or ends. */
void task_wait_vfork(struct task *t, uint32_t child);
