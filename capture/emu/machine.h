/*
 * One virtual CPU in the shared memory: who owns its rings, what the recorder wants, what the
 * kernel would tell of the task on it. "where" in proto/emuring.h is the lock: while it is USER the
 * guest thread owns the rings; in KERNEL whoever turns it to BUSY does, for a moment.
 *
 * No wish is missed: the recorder stores "want", then wakes the helper thread; the helper reads
 * "want", then tries to turn KERNEL to BUSY; a guest thread that enters the kernel stores KERNEL,
 * then reads "want". Whichever comes later sees the other. The guest thread waits for nobody but a
 * helper that is BUSY, which waits for nobody.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "capture/emu/pmu.h"
#include "capture/emu/sideband.h"
#include "capture/emu/truth.h"

struct machine {
	struct emuring_head *head;
	uint64_t size;
	struct emuring_cpu *cpu;
	struct emupmu pmu;
	struct sideband sideband;
	struct truth *truth; /* NULL: none */
	/* Of the time in the kernel; under the same ownership. */
	uint64_t kernel_since; /* TSC */
	bool switched_out;
	bool itrace_started;
	_Atomic uint32_t rescan; /* other threads mapped code while the rings were not theirs */
	bool task_known;	 /* the first block was reached, the task exited not yet */
};

/* Maps PATH, checks it, takes virtual CPU 0. 0; -EBADMSG: not a ring of ours; -errno. */
int machine_open(struct machine *m, const char *path);
void machine_close(struct machine *m);
/* Starts the thread that answers while the guest is in the kernel, all signals blocked. */
int machine_start_helper(struct machine *m);

/* The guest thread at its first block: the task is on the CPU from now on. COMM: its name. The
 * rings are the caller's from now on. */
void machine_begin(struct machine *m, const char *comm);
/* The guest thread enters or leaves the kernel; between the two the rings are not its own. */
void machine_enter_kernel(struct machine *m);
void machine_leave_kernel(struct machine *m);
/* The task exits; before machine_enter_kernel. */
void machine_exit(struct machine *m);
/* Another guest thread ends the process; made pages of [BEGIN, BEGIN + SIZE) executable. */
void machine_exit_by_other(struct machine *m);
void machine_mapped_by_other(struct machine *m, uint64_t begin, uint64_t size);
/* The rings' owner: tells of the executable mappings in [BEGIN, BEGIN + SIZE). */
void machine_mapped(struct machine *m, uint64_t begin, uint64_t size);
/* The process is about to end: the truth file is complete. */
void machine_close_truth(struct machine *m);
/* Between two blocks, IP the next one's: does what the recorder wants. */
void machine_service(struct machine *m, uint64_t ip);
