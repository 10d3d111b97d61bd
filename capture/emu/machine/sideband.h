/*
 * Perf records about tasks, as the kernel would write them, into a virtual CPU's DATA ring. The
 * caller owns the CPU's rings.
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

/* A thread. All members are 0 for the idle task. */
struct sideband_task {
	uint32_t pid, tid, ppid, ptid; /* ptid: the thread that created it */
};

/* The perf clock at TSC (include/uapi/linux/perf_event.h, cap_user_time_zero). */
uint64_t sideband_time(const struct emuring_head *head, uint64_t tsc);

/* Each function below writes one record with time TSC. WHO: the thread that caused the record,
 * unless the comment says otherwise. A record that finds no room is lost and counted. */

/* WHO has the name COMM (15 bytes and a NUL). EXEC: by execve. */
void sideband_comm(struct sideband *s, uint64_t tsc, const struct sideband_task *who,
		   const char *comm, bool exec);
struct sideband_mapping {
	uint64_t addr, len, pgoff; /* bytes */
	uint32_t maj, min;
	uint64_t ino;
	uint32_t prot, flags; /* PROT_*, MAP_* */
	const char *name;
	uint8_t build_id_size; /* 0: the record has device and inode instead */
	uint8_t build_id[20];
};
void sideband_mmap(struct sideband *s, uint64_t tsc, const struct sideband_task *who,
		   const struct sideband_mapping *m);
/* WHO created CHILD. */
void sideband_fork(struct sideband *s, uint64_t tsc, const struct sideband_task *who,
		   const struct sideband_task *child);
void sideband_exit(struct sideband *s, uint64_t tsc, const struct sideband_task *who);
/* The namespaces of thread WHO. BY caused the record. */
struct sideband_namespaces {
	uint64_t dev[7], ino[7]; /* in the order of NET_NS_INDEX and so on */
};
void sideband_namespaces(struct sideband *s, uint64_t tsc, const struct sideband_task *by,
			 const struct sideband_task *who, const struct sideband_namespaces *n);
/* Out: WHO leaves the CPU and OTHER follows. PREEMPTED: WHO could have continued. In: WHO follows
 * OTHER. */
void sideband_switch_out(struct sideband *s, uint64_t tsc, const struct sideband_task *who,
			 const struct sideband_task *other, bool preempted);
void sideband_switch_in(struct sideband *s, uint64_t tsc, const struct sideband_task *who,
			const struct sideband_task *other);
/* Records of the PT event: tracing started for the first time; tracing stopped at AUX offset HEAD.
 */
void sideband_itrace_start(struct sideband *s, uint64_t tsc, const struct sideband_task *who);
void sideband_aux(struct sideband *s, uint64_t tsc, const struct sideband_task *who, uint64_t head);
