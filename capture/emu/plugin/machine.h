/*
 * The emulated machine as one process of it sees it: the shared memory, its virtual CPUs, its table
 * of tasks.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "capture/emu/machine/vcpu.h"

struct machine {
	struct emuring ring;
	struct emuring_head *head; /* ring.shared */
	uint64_t size;
	uint32_t n_cpus;
	struct vcpu *cpus; /* this process' view of them */
};

/* Maps PATH and checks it. 0; -EBADMSG: not a machine of ours; -ENOMEM; -errno. */
int machine_open(struct machine *m, const char *path);

/* A place in the table for thread TID: its own if it was exec'ed, else a free one. EMURING_NO_TASK:
 * the table is full. */
uint32_t machine_add_task(struct machine *m, const struct sideband_task *who);
