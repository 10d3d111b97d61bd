/*
 * What the kernel would tell of tasks: perf records into a virtual CPU's DATA ring. The caller owns
 * the CPU's rings.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "capture/emu/machine/emuring.h"
#include "proto/perf/perfrecord.h"

struct sideband {
	const struct emuring *ring;
	uint32_t cpu;
};

/* A thread; of the idle task all is 0. */
struct sideband_task {
	uint32_t pid, tid, ppid, ptid; /* ptid: of the thread that made it */
};

/* The perf clock at TSC (include/uapi/linux/perf_event.h, cap_user_time_zero). */
uint64_t sideband_time(const struct emuring_head *head, uint64_t tsc);

/* All at time TSC, of thread WHO. */
void sideband_comm(struct sideband *s, uint64_t tsc, const struct sideband_task *who,
		   const char *comm, bool exec);
struct sideband_mapping {
	uint64_t addr, len, pgoff; /* bytes */
	uint32_t maj, min;
	uint64_t ino;
	uint32_t prot, flags; /* PROT_*, MAP_* */
	const char *name;
	uint8_t build_id_size; /* 0: device and inode say which file */
	uint8_t build_id[20];
};
void sideband_mmap(struct sideband *s, uint64_t tsc, const struct sideband_task *who,
		   const struct sideband_mapping *m);
/* WHO, as parent, made CHILD. */
void sideband_fork(struct sideband *s, uint64_t tsc, const struct sideband_task *who,
		   const struct sideband_task *child);
void sideband_exit(struct sideband *s, uint64_t tsc, const struct sideband_task *who);
/* The namespaces of thread WHO, which the record is about; BY caused it. */
struct sideband_namespaces {
	uint64_t dev[7], ino[7]; /* in the order of NET_NS_INDEX and so on */
};
void sideband_namespaces(struct sideband *s, uint64_t tsc, const struct sideband_task *by,
			 const struct sideband_task *who, const struct sideband_namespaces *n);
/* OUT: WHO leaves the CPU and OTHER comes (PREEMPTED: it would go on); else WHO comes after OTHER.
 */
void sideband_switch_out(struct sideband *s, uint64_t tsc, const struct sideband_task *who,
			 const struct sideband_task *other, bool preempted);
void sideband_switch_in(struct sideband *s, uint64_t tsc, const struct sideband_task *who,
			const struct sideband_task *other);
/* By the PT event: tracing began, for the first time; was stopped, AUX offset HEAD. */
void sideband_itrace_start(struct sideband *s, uint64_t tsc, const struct sideband_task *who);
void sideband_aux(struct sideband *s, uint64_t tsc, const struct sideband_task *who, uint64_t head);
