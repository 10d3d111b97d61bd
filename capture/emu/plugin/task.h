/*
 * One guest thread: on a virtual CPU while it runs user code, in the kernel, waiting for a CPU,
 * gone. All by the thread itself, outside of QEMU's guest code except for what task.c's callbacks
 * of retirement do at block boundaries.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "capture/emu/plugin/calls.h"
#include "capture/emu/plugin/machine.h"
#include "capture/emu/plugin/retire.h"
#include "capture/emu/plugin/sig.h"
#include "capture/emu/plugin/truth.h"

/* What the threads of a process share. */
struct task_group {
	struct machine *machine;
	struct sig *sig;
	const char *truth; /* directory; NULL: none */
	/* head->resync as this process has answered it. */
	_Atomic uint32_t resynced;
	_Atomic uint64_t resynced_at; /* TSC */
	char comm[16];		      /* as execve set it */
	/* The deferred work of a thread that is to give its CPU away. */
	void (*yield)(void *cpu, void *data);
};

struct task {
	struct retire retire;
	struct task_group *group;
	struct vcpu *cpu; /* NULL: has none */
	uint32_t index;	  /* in the machine's table */
	struct emuring_task *slot;
	struct sideband_task who;
	unsigned int vcpu; /* QEMU's number of its CPU */
	uint64_t quantum_end;
	uint64_t quantum_left; /* after a short system call; 0: a whole one */
	struct call call;
	struct truth *truth;
	uint32_t parent; /* its place in the table, EMURING_NO_TASK: none */
	bool deferred;	 /* group->yield is on its way */
};

/* The calling thread, on QEMU's CPU VCPU, made by the thread in place PARENT. NULL: it cannot be
 * taken into the machine, and runs untraced. */
struct task *task_new(struct task_group *group, unsigned int vcpu, uint32_t parent);
/* Its slot is free again. */
void task_free(struct task *t);
/* In a forked child: of the parent's thread, whose slot is not the child's. */
void task_forget(struct task *t);

/* Waits until the parent has told of it: FORK comes before all else. */
void task_wait_announced(struct task *t);
/* Gets a CPU. False: the machine is closing, the thread runs on without. */
bool task_run(struct task *t);
/* The process' first thread at its first block: tells the program's name and its mappings. */
void task_begin_program(struct task *t);

/* The thread enters the kernel by t->call; it has no CPU after that, until task_run. */
void task_enter_kernel(struct task *t);
/* Around an exec: the file is the next program's, and the thread's own again if that failed. */
void task_pause_truth(struct task *t);
void task_resume_truth(struct task *t);
/* The thread, or with it its process, is about to end. */
void task_exit(struct task *t);
/* Between two blocks, IP the next one's: others get the CPU for a time. False: closing. */
bool task_yield(struct task *t, uint64_t ip);
/* The thread, in the kernel and without a CPU, waits for its vfork child to exec or to go. */
void task_wait_vfork(struct task *t, uint32_t child);
