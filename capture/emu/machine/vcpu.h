/*
 * The emulated machine: its virtual CPUs, the packets and records that they write, and who may use
 * them.
 *
 * The plugin (in the emulator's processes) and the recorder's keeper share this room. Both work on
 * the same shared memory, with structs of their own:
 *
 *   emuring   the shared memory: head, table of tasks, and a control page and rings for each CPU.
 *             The rings have the kernel's own layout, so that readers cannot tell the difference.
 *             emuoffer: what the process with the machine tells a recorder in another process
 *   vcpu      one virtual CPU as its present owner sees it: tracing, and the task on the CPU.
 *             sideband: the perf records that the kernel would write about tasks
 *   pmu       when which packet is due; encode writes the packets
 *   sched     which task gets which CPU (declared in this header)
 *   emustart  how the emulator starts a program
 *   execplan  what execve(2) would do with a file; execfile reads the file's beginning
 *
 * Only the owner of a CPU (hold USER or BUSY, see emuring.h) may use a struct vcpu. The hold
 * changes only by compare-and-swap. There is no lock, because a killed process would keep the lock
 * forever; for the same reason all state of the encoder lies in shared memory, and the recorder
 * finishes the trace of a killed thread from there.
 *
 * Everything that the program under the emulator can write, it may write: the shared memory is
 * hostile. Sizes and offsets come from a copy (emuring.fixed), positions are used modulo their
 * ring, and loops are bounded.
 *
 * The times of a CPU's records never run backwards. The machine learns only later that a task
 * slept, and the record of the task's switch has the time at which the sleep began; therefore
 * vcpu_settle() must precede any other record.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "capture/emu/machine/emuring.h"
#include "capture/emu/machine/pmu.h"
#include "proto/perf/perfrecord.h"

/* Perf records about tasks, as the kernel would write them, into a virtual CPU's DATA ring. The
 * caller owns the CPU's rings. */
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

struct vcpu {
	const struct emuring *ring;
	struct emuring_cpu *cpu; /* shared */
	uint32_t index;
	struct emupmu pmu;
	struct sideband sideband;
	/* Called when tracing stops in user code; NULL: no callback. */
	void (*on_stop)(void *userdata, uint64_t tsc, uint64_t pos, uint32_t generation);
	void *userdata;
};

/* RING is borrowed. */
void vcpu_attach(struct vcpu *v, const struct emuring *ring, uint32_t index);

/* Reads the clock and writes the time packets that are due. Returns the TSC that the next packets
 * and records have. */
uint64_t vcpu_now(struct vcpu *v);
/* The task on the CPU has just entered the kernel. */
void vcpu_enter_kernel(struct vcpu *v);
/* Call before writing a record while no user code runs. If the task on the CPU has been in the
 * kernel for long, it sleeps: writes the switch to the idle task, with the time at which it
 * entered. */
void vcpu_settle(struct vcpu *v);
/* Call after such records. The task on the CPU counts as having entered the kernel now, so that a
 * later switch does not precede them. */
void vcpu_settled(struct vcpu *v);
/* NEXT (all members 0: the idle task) is on the CPU from now on; writes the switch. PREEMPTED: the
 * last task could have continued. */
void vcpu_switch(struct vcpu *v, const struct sideband_task *next, bool preempted);
/* Starts or stops tracing if the recorder requested it. IP: the next user instruction; NULL: no
 * user code runs. */
void vcpu_serve(struct vcpu *v, const uint64_t *ip);
/* The CPU goes offline: stops tracing and writes the switch to the idle task. The caller then sets
 * the hold to OFF. */
void vcpu_go_off(struct vcpu *v);
/* The CPU comes back online; the caller then sets the hold to IDLE. */
void vcpu_come_back(struct vcpu *v);

/*
 * These functions decide which task gets which virtual CPU. The guest's threads and the recorder's
 * keeper use them on the holds and the table of tasks in shared memory, without a lock that a
 * killed process could keep.
 *
 * The task that has waited longest is served first. A task that was given a CPU finds its state
 * GIVEN with the CPU's number, and takes the CPU by changing the hold from GIVEN to BUSY. If that
 * fails, the keeper took the CPU back because the task was stopped, and the task waits again.
 */

/* Changes CPU's hold from EXPECTED to BUSY of task WHO (EMURING_RECORDER: the recorder). False: the
 * hold is not EXPECTED. */
bool sched_take(struct emuring_cpu *cpu, uint64_t expected, uint32_t who);
/* The owner releases the CPU: its hold becomes HOLD of TASK. */
void sched_put(struct emuring_cpu *cpu, enum emuring_hold hold, uint32_t task);
/* Takes a CPU that is not in use. *RET: the old hold word, which the caller puts back. False: the
 * CPU is in use (USER, BUSY) or OFF. */
bool sched_take_at_rest(struct emuring_cpu *cpu, uint32_t who, uint64_t *ret);

/* The owner gives the CPU to the task that has waited longest, and writes the switch. PREEMPTED:
 * the last task could have continued. False: no task waits, or the CPU goes offline; the caller
 * still owns the CPU. */
bool sched_give(struct vcpu *v, bool preempted);
/* The owner WHO gives the CPU to a waiting task, or to none, and then writes the switch to the idle
 * task. */
void sched_release(struct vcpu *v, uint32_t who, bool preempted);
/* Call after TASK's hold on CPU became ASLEEP: gives the CPU to a task that began to wait meanwhile
 * and may have seen the old hold. WHO: the caller, which is TASK or EMURING_RECORDER. */
void sched_offer(struct vcpu *v, uint32_t task, uint32_t who);

/* Task ME waits for one of the N CPUs in CPUS, preferably the one that it had last. Returns the CPU
 * with hold BUSY of ME, after writing the switch. NULL: the machine is closing. */
struct vcpu *sched_acquire(struct vcpu *cpus, uint32_t n, uint32_t me);
/* Thread ME begins in a slot that another thread of the same ID may have had: an exec in another
 * thread kills the first thread of a process and takes over its ID. If the killed thread owned a
 * CPU, takes the CPU back; the keeper cannot know. */
void sched_disown(struct vcpu *cpus, uint32_t n, uint32_t me);
/* Whether a task waits for a CPU. */
bool sched_is_contended(const struct emuring *r);
/* Frees the task's slot. */
void sched_remove_task(const struct emuring *r, struct emuring_task *t);
/* Closes the machine if the recorder has died without closing it. */
void sched_check_recorder(const struct emuring *r);
/* Wakes all waiting tasks, so that they look at the shared memory again. */
void sched_wake_all(const struct emuring *r);
