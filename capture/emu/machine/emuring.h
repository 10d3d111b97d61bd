/*
 * The shared memory between the recorder and the software PMU, one memfd:
 *
 *   page 0            struct emuring_head
 *   from tasks_at     struct emuring_task[max_tasks], one a guest thread
 *   from cpus_at      for each virtual CPU, cpu_stride bytes:
 *                       struct emuring_cpu (EMURING_CPU_SIZE bytes)
 *                       perf_event_mmap_page (4096), DATA (data_size), AUX (aux_size)
 *
 * From the perf_event_mmap_page on, the layout is the kernel's own, with data_offset, data_size,
 * aux_offset and aux_size relative to that page. The parts before it stand for what a real host has
 * instead: system calls (IOC_ENABLE, IOC_DISABLE), registers (MSRs) and the scheduler.
 *
 * The software PMU opens the memfd by its path (/proc/RECORDER/fd/N), so that a guest may close all
 * its descriptors.
 *
 * HOLD says who may use a CPU's rings and encoder. It is one word, changed only by
 * compare-and-swap:
 *
 *   IDLE           no task is on the CPU
 *   USER, task     the task runs user code
 *   KERNEL, task   the task is in a short system call and still on the CPU
 *   ASLEEP, task   the task may be blocked: it is on the CPU until another task takes the CPU
 *   GIVEN, task    the CPU was given to the task, which has not noticed yet
 *   BUSY, task     the task (EMURING_RECORDER: the recorder) works on the rings for a moment
 *   OFF            the CPU is offline
 *
 * USER and BUSY own the rings. A CPU in another state belongs to the first one that makes it BUSY.
 *
 * ENABLE/DISABLE: the recorder stores emuring_cpu.want (a new generation; bit 0 set = trace). A CPU
 * in USER obeys at its next block, stores the same value in .is and wakes its waiters; the
 * recorder's keeper does this for a CPU in any other state. A recorder whose keeper is in another
 * process (struct emuoffer) increments and wakes head.bell.
 *
 * Death: no process is told when a thread is killed. The keeper (capture/emu/host/emu_keeper.c)
 * looks from time to time; only the keeper takes a CPU away from a dead or stopped thread.
 */
#pragma once

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define EMURING_MAGIC	  0x554d50656d755450ull
#define EMURING_VERSION	  4u
#define EMURING_HEAD_SIZE 4096u
#define EMURING_CPU_SIZE  4096u
#define EMURING_MAX_CPUS  256u

/* The virtual clock: ticks a second, and the TSC before the first instruction. */
#define EMURING_VIRTUAL_HZ   1000000000ull
#define EMURING_VIRTUAL_BASE 1000000000ull

enum emuring_clock {
	EMURING_CLOCK_HOST = 0,	   /* the host's TSC */
	EMURING_CLOCK_VIRTUAL = 1, /* one tick an executed instruction; executions are repeatable */
};

enum emuring_hold {
	EMURING_IDLE = 0,
	EMURING_USER,
	EMURING_KERNEL,
	EMURING_ASLEEP,
	EMURING_GIVEN,
	EMURING_BUSY,
	EMURING_OFF,
};

/* emuring_task.state, a futex word. */
enum emuring_task_state {
	EMURING_TASK_RUNS = 0, /* the task has a CPU or is in the kernel */
	EMURING_TASK_WAITS,    /* the task waits for a CPU */
	EMURING_TASK_GIVEN,    /* the CPU whose index is state >> 8 was given to the task */
};

#define EMURING_NO_TASK	 0xffffffu
#define EMURING_RECORDER 0xfffffeu

#define EMURING_MIN_TASKS   16u
#define EMURING_MAX_TASKS   4096u
#define EMURING_TASK_SIZE   128u
#define EMURING_MAX_REASONS 8u
#define EMURING_REASON_SIZE 192u

/* head.flags */
#define EMURING_BUILD_ID 1u /* MMAP2 records carry build ids (attr.build_id) */

struct emuring_head {
	uint64_t magic;
	uint32_t version;
	uint32_t n_cpus;
	uint64_t data_size; /* bytes of a DATA ring, power of two */
	uint64_t aux_size;  /* bytes of an AUX ring, power of two */
	uint64_t cpu_stride, cpus_at, tasks_at;
	uint32_t max_tasks, flags;
	uint64_t quantum;	 /* instructions */
	uint64_t overflow_bytes; /* bytes of trace between two overflows; 0: no overflows */
	uint32_t lose_every;	 /* every Nth record is lost; 0: none */
	uint32_t recorder_pid;
	uint32_t clock;	    /* enum emuring_clock */
	uint64_t pt_config; /* perf_event_attr.config of intel_pt: bits as in format/ of this PMU */
	uint64_t sample_id[2]; /* IDs of the PT event and of the dummy event of CPU 0; CPU n has
				* sample_id + n */
	uint64_t tsc_hz;
	uint32_t tsc_art_num, tsc_art_den; /* TSC = ART * num / den (CPUID 0x15 EBX, EAX) */
	uint32_t max_nonturbo_ratio;	   /* TSC in units of 100 MHz; also CBR */
	uint16_t time_shift, reserved;
	uint32_t time_mult;
	uint64_t time_zero;
	/* The software PMU writes these. */
	_Atomic uint32_t attached;  /* COMMAND has reached its first block under the plugin */
	_Atomic uint32_t guest_pid; /* of COMMAND */
	/* The recorder ends: all tasks continue untraced, without virtual CPUs. */
	_Atomic uint32_t closing;
	_Atomic uint32_t n_waiting; /* tasks in EMURING_TASK_WAITS; a hint */
	_Atomic uint64_t tickets;   /* the order in which tasks wait */
	/* Number of LOST records. After each, every process repeats its name and mappings, as if
	 * the recorder had scanned /proc again. */
	_Atomic uint32_t resync;
	_Atomic uint32_t bell; /* number of requests to the keeper; a futex word */
	/* Numbers of what could not be traced; each becomes a gap in the report. */
	_Atomic uint32_t untraced_threads;
	_Atomic uint32_t untraced_children;
	_Atomic uint32_t untraced_execs;
	_Atomic uint32_t decode_failures; /* instructions that the plugin does not know, and
					   * transfers of control that it could not explain */
	/* The first untraced programs and why, "/usr/bin/sudo: set-user-ID program". */
	_Atomic uint32_t n_reasons;
	char reasons[EMURING_MAX_REASONS][EMURING_REASON_SIZE];
};

struct emuring_task {
	_Atomic uint32_t tid;	/* 0: the slot is free */
	_Atomic uint32_t state; /* enum emuring_task_state */
	_Atomic uint32_t cpu;	/* the last one */
	_Atomic uint32_t pid, ppid, ptid;
	_Atomic uint64_t ticket;
	/* The last child whose FORK record this thread has written; a futex word. */
	_Atomic uint32_t announced;
	/* The last vfork child that has exec'ed or ended; a futex word. */
	_Atomic uint32_t vfork_done;
	_Atomic uint32_t expelled; /* must give its CPU away at the next block */
	_Atomic uint32_t stopped;  /* stopped by a signal: must not be given a CPU */
};

struct emuring_cpu {
	_Atomic uint32_t want;
	_Atomic uint32_t is;
	_Atomic uint64_t hold;	       /* enum emuring_hold | task << 8 */
	_Atomic uint64_t aux_pos;      /* bytes written since the start, not wrapped */
	_Atomic uint64_t data_lost;    /* lost records that no LOST record has reported yet */
	_Atomic uint64_t instructions; /* executed, traced or not */
	/* Branches not yet written: the newest in bit 0, below a stop bit. 0 or 1: none. */
	_Atomic uint64_t tnt;
	_Atomic uint64_t tsc; /* of the last look at the clock */
	/* Begin of the block that the USER task executes, if all branches that led there were
	 * reported. 0: the task is between two blocks. Tells where a killed thread was. */
	_Atomic uint64_t ip;
	_Atomic uint32_t offline; /* must go offline at the next block */
	_Atomic uint32_t itrace_started;
	_Atomic uint32_t records; /* for lose_every */
	/* How often the CPU went offline; the TSC when it last did, and when it last came back (0:
	 * never). The keeper counts for how long it was away in total. */
	_Atomic uint32_t absences;
	_Atomic uint64_t gone_tsc, back_tsc;
	_Atomic uint64_t away_ns;
	/* The rest belongs to the owner of the rings. */
	uint32_t pid, tid; /* of the task on the CPU, as in the SWITCH records; 0: idle */
	uint64_t
		kernel_since; /* TSC at which this task entered the kernel; 0: it is in user code */
	/* struct emupmu_state (pmu.h): state of the encoder, which must outlive the process. */
	uint8_t encoder[EMURING_CPU_SIZE - 128];
};

_Static_assert(sizeof(struct emuring_head) <= EMURING_HEAD_SIZE, "head fits its page");
_Static_assert(sizeof(struct emuring_cpu) <= EMURING_CPU_SIZE, "cpu fits its page");
_Static_assert(sizeof(struct emuring_task) <= EMURING_TASK_SIZE, "task fits its slot");

static inline uint64_t emuring_hold_word(enum emuring_hold hold, uint32_t task)
{
	return (uint64_t)hold | (uint64_t)task << 8;
}

static inline enum emuring_hold emuring_hold_of(uint64_t word)
{
	return (enum emuring_hold)(word & 0xff);
}

static inline uint32_t emuring_task_of(uint64_t word)
{
	return (uint32_t)(word >> 8);
}

struct perf_event_mmap_page;

/* Sizes of the parts, and the offsets that follow from them. */
struct emuring_layout {
	uint32_t n_cpus, max_tasks;
	uint64_t data_size, aux_size;
	/* results, bytes */
	uint64_t tasks_at, cpus_at, cpu_stride, total;
};
/* -EINVAL unless both sizes are powers of two of at least a page, n_cpus is 1..EMURING_MAX_CPUS,
 * max_tasks EMURING_MIN_TASKS..EMURING_MAX_TASKS and all of it fits in 64 bits. */
int emuring_layout(struct emuring_layout *l);
/* 0; -EBADMSG: the SIZE bytes at HEAD are not a shared memory of this version. */
int emuring_check(const struct emuring_head *head, uint64_t size);

/* The shared memory as one process sees it. Sizes and offsets come from a copy that was checked,
 * because other processes can change the shared head at any time. */
struct emuring {
	struct emuring_head *shared; /* for members that change */
	struct emuring_head fixed;   /* copy, for all other members */
};
/* HEAD has passed emuring_check() and is borrowed. */
void emuring_attach(struct emuring *r, struct emuring_head *head);
/* CPU below n_cpus, TASK below max_tasks. */
struct emuring_cpu *emuring_cpu_at(const struct emuring *r, uint32_t cpu);
struct emuring_task *emuring_task_at(const struct emuring *r, uint32_t task);
struct perf_event_mmap_page *emuring_page_at(const struct emuring *r, uint32_t cpu);
uint8_t *emuring_data_at(const struct emuring *r, uint32_t cpu);
uint8_t *emuring_aux_at(const struct emuring *r, uint32_t cpu);
/* Adds WHY to the reasons of untraced programs, unless it is there already or there is no room. */
void emuring_add_reason(struct emuring_head *head, const char *why);

/* Appends RECORD (SIZE bytes, a multiple of 8) to the CPU's DATA ring as the kernel does
 * (kernel/events/ring_buffer.c, perf_output_begin/end). A record without room is counted as lost,
 * and a LOST record precedes the next record that fits. data_head is stored with release semantics.
 * The caller owns the CPU's rings. 0, or EMURING_LOST. */
#define EMURING_LOST 1
int emuring_write_record(const struct emuring *r, uint32_t cpu, const void *record, size_t size);

/*
 * The daemon-emulator channel: messages of the process that keeps an emulated machine to the
 * recorder that traces the machine, over a SOCK_SEQPACKET socket (proto/channel.h).
 *
 * The first message is the offer, together with the descriptor of the shared memory. When COMMAND
 * ends, a second message follows, and the peer hangs up. The recorder sends nothing: its requests
 * go through the shared memory. Both processes run on one host, so numbers are in its byte order.
 */

#define EMUOFFER_MAGIC	   0x726566664f756d45ull
#define EMUOFFER_END_MAGIC 0x646e45756d45ull
#define EMUOFFER_VERSION   1u
/* Limits of what a peer may offer. */
#define EMUOFFER_MAX_CPUS 64u
#define EMUOFFER_MAX_RING (512ull << 20)

/* The message. Members up to time_zero have the meaning that they have in struct emuring_head; the
 * recorder does not read them there, because guests can write to the shared memory. */
struct emuoffer {
	uint64_t magic;
	uint32_t version, flags;
	uint32_t n_cpus, max_tasks;
	uint64_t data_size, aux_size;
	uint64_t pt_config, tsc_hz;
	uint32_t clock, tsc_art_num, tsc_art_den, max_nonturbo_ratio;
	uint32_t time_shift, time_mult;
	uint64_t time_zero;
	uint32_t pid;	 /* of COMMAND */
	char preset[20]; /* name of the trace preset, "std" */
	char name[256];	 /* name of COMMAND */
	char qemu[4096]; /* absolute path of the emulator */
};

/* How COMMAND ended. */
struct emuoffer_end {
	uint64_t magic;
	int32_t exit_status; /* 0..255 */
	int32_t killed_by;   /* the signal; 0: COMMAND exited */
};

/* Reads an offer of SIZE bytes at DATA and checks that every number is in range and every text
 * ends. *RET_L: the layout of the shared memory. 0; -EBADMSG: *RET_WHY (static) completes "the
 * offer is refused: ...". */
int emuoffer_read(const void *data, size_t size, struct emuoffer *ret, struct emuring_layout *ret_l,
		  const char **ret_why);
/* Reads and checks the message about the end of COMMAND. 0 or -EBADMSG. */
int emuoffer_read_end(const void *data, size_t size, struct emuoffer_end *ret);
/* Composes the head of the shared memory from a checked offer, for emuring.fixed. */
void emuoffer_head(const struct emuoffer *o, const struct emuring_layout *l,
		   struct emuring_head *ret);
