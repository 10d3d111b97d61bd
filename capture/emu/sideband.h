/*
 * What the kernel would tell of the traced task: perf records into a virtual CPU's DATA ring. The
 * caller owns the CPU's rings.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "proto/emuring.h"
#include "proto/perfrecord.h"

struct sideband {
	struct emuring_head *head;
	uint32_t cpu;
	uint32_t pid, tid, ppid;
};

/* The perf clock at TSC (include/uapi/linux/perf_event.h, cap_user_time_zero). */
uint64_t sideband_time(const struct emuring_head *head, uint64_t tsc);

/* All at time TSC. */
void sideband_comm(struct sideband *s, uint64_t tsc, const char *comm, bool exec);
struct sideband_mapping {
	uint64_t addr, len, pgoff; /* bytes */
	uint32_t maj, min;
	uint64_t ino;
	uint32_t prot, flags; /* PROT_*, MAP_* */
	const char *name;
};
void sideband_mmap(struct sideband *s, uint64_t tsc, const struct sideband_mapping *m);
void sideband_fork(struct sideband *s, uint64_t tsc, uint32_t pid, uint32_t tid);
void sideband_exit(struct sideband *s, uint64_t tsc);
/* The task goes onto the CPU or off it; before and after it the CPU is idle. */
void sideband_switch(struct sideband *s, uint64_t tsc, bool out);
/* By the PT event: tracing began, for the first time; was stopped, AUX offset HEAD. */
void sideband_itrace_start(struct sideband *s, uint64_t tsc);
void sideband_aux(struct sideband *s, uint64_t tsc, uint64_t head);
