/*
 * The shared memory between the recorder and the software PMU, one memfd:
 *
 *   page 0            struct emuring_head
 *   from tasks_at     struct emuring_task[max_tasks], one a guest thread
 *   from cpus_at      for each virtual CPU, cpu_stride bytes:
 *                       struct emuring_cpu (EMURING_CPU_SIZE bytes)
 *                       perf_event_mmap_page (4096), DATA (data_size), AUX (aux_size)
 *
 * From the perf_event_mmap_page on it is the kernel's own layout, with data_offset, data_size,
 * aux_offset and aux_size relative to that page. What precedes it stands for the syscalls
 * (IOC_ENABLE, IOC_DISABLE), the registers (MSRs) and the scheduler that a real host has.
 *
 * The software PMU opens the memfd by path (/proc/RECORDER/fd/N), so a guest that closes all its
 * fds does it no harm.
 *
 * HOLD: who may touch a CPU's rings and encoder. One word, changed by compare-and-swap only:
 *   IDLE           nobody is on the CPU
 *   USER, task     that thread runs user code
 *   KERNEL, task   that thread is in a short system call and still on the CPU
 *   ASLEEP, task   that thread may be blocked: the CPU is its own until somebody else takes it
 *   GIVEN, task    that thread is to go on there, and has not noticed yet
 *   BUSY, task     that thread (EMURING_RECORDER: the recorder) works on the rings, for a moment
 *   OFF            the CPU was taken away
 * USER and BUSY own the rings. All else is anybody's who makes it BUSY.
 *
 * ENABLE/DISABLE: the recorder stores emuring_cpu.want (a new even/odd generation: bit 0 set =
 * trace). A CPU in USER does so at its next opportunity (a block boundary), stores the same value
 * in .is and wakes that; of all others the recorder's keeper does it. A recorder that has no
 * keeper, for that is in another process (capture/emu/machine/emuoffer.h), rings for it: head.bell.
 *
 * Death: nobody is told when a thread is killed. The recorder looks
 * (capture/emu/host/emu_keeper.c), and takes a dead or stopped thread's CPU away; only the recorder
 * does.
 */
#pragma once

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define EMURING_MAGIC	  0x554d50656d755450ull
#define EMURING_VERSION	  3u
#define EMURING_HEAD_SIZE 4096u
#define EMURING_CPU_SIZE  4096u
#define EMURING_MAX_CPUS  256u

/* The virtual clock: ticks a second, and the TSC before the first instruction. */
#define EMURING_VIRTUAL_HZ   1000000000ull
#define EMURING_VIRTUAL_BASE 1000000000ull

enum emuring_clock {
	EMURING_CLOCK_HOST = 0,	   /* the host's TSC */
	EMURING_CLOCK_VIRTUAL = 1, /* one tick an executed instruction; runs repeat */
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

/* What a task waits for (emuring_task.state, a futex word). */
enum emuring_task_state {
	EMURING_TASK_RUNS = 0, /* for nothing: it has a CPU, or sleeps in the kernel */
	EMURING_TASK_WAITS,    /* for a CPU */
	EMURING_TASK_GIVEN,    /* for nothing more: emuring_task.cpu is GIVEN to it */
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
	uint64_t overflow_bytes; /* an overflow each so many bytes of trace; 0: none */
	uint32_t lose_every;	 /* each such record finds no room; 0: none */
	uint32_t recorder_pid;
	uint32_t clock;	    /* enum emuring_clock */
	uint64_t pt_config; /* perf_event_attr.config of intel_pt: bits as in format/ of this PMU */
	uint64_t sample_id[2]; /* identifiers of the PT event and of the dummy event of CPU 0; CPU n
				* has sample_id + n */
	uint64_t tsc_hz;
	uint32_t tsc_art_num, tsc_art_den; /* TSC = ART * num / den (CPUID 0x15 EBX, EAX) */
	uint32_t max_nonturbo_ratio;	   /* TSC in units of 100 MHz; also CBR */
	uint16_t time_shift, reserved;
	uint32_t time_mult;
	uint64_t time_zero;
	/* Filled by the software PMU. */
	_Atomic uint32_t attached;  /* the plugin is loaded and the first block has run */
	_Atomic uint32_t guest_pid; /* of COMMAND */
	/* The recorder is going: everything runs on, untraced and without virtual CPUs. */
	_Atomic uint32_t closing;
	_Atomic uint32_t n_waiting; /* tasks in EMURING_TASK_WAITS; a hint */
	_Atomic uint64_t tickets;   /* the order in which tasks wait */
	/* Counts the LOST records: each process then tells its mappings anew, as a recorder that
	 * scans /proc again would find them. */
	_Atomic uint32_t resync;
	_Atomic uint32_t bell; /* counts wishes that wait for the keeper; a futex word */
	/* What the emulator could not follow; each becomes a gap in the report. */
	_Atomic uint32_t untraced_threads;
	_Atomic uint32_t untraced_children;
	_Atomic uint32_t untraced_execs;
	_Atomic uint32_t decode_failures; /* instructions whose class the plugin could not tell, and
					   * ways that it could not explain */
	/* Which programs, "/usr/bin/sudo: set-user-ID program": the first ones. */
	_Atomic uint32_t n_reasons;
	char reasons[EMURING_MAX_REASONS][EMURING_REASON_SIZE];
};

struct emuring_task {
	_Atomic uint32_t tid;	/* 0: free */
	_Atomic uint32_t state; /* enum emuring_task_state */
	_Atomic uint32_t cpu;	/* given, or the last one */
	_Atomic uint32_t pid, ppid, ptid;
	_Atomic uint64_t ticket;
	/* The last child whose FORK record this thread has written; a futex word. */
	_Atomic uint32_t announced;
	/* The last vfork child that has exec'ed or gone; a futex word. */
	_Atomic uint32_t vfork_done;
	_Atomic uint32_t expelled; /* to give its CPU away at the next opportunity */
	_Atomic uint32_t stopped;  /* by a signal: not to be given a CPU */
};

struct emuring_cpu {
	_Atomic uint32_t want;
	_Atomic uint32_t is;
	_Atomic uint64_t hold;	       /* enum emuring_hold | task << 8 */
	_Atomic uint64_t aux_pos;      /* bytes written since the start, not wrapped */
	_Atomic uint64_t data_lost;    /* records that found no room and are not yet reported */
	_Atomic uint64_t instructions; /* executed, traced or not */
	/* Branches not yet written: newest in bit 0, below a stop bit; 0 or 1: none. */
	_Atomic uint64_t tnt;
	_Atomic uint64_t tsc; /* of the last event; with the virtual clock the time there is */
	/* Of the block that the USER task executes, all that led there having been told; 0: just
	 * between two. What is known of a thread that was killed. */
	_Atomic uint64_t ip;
	_Atomic uint32_t offline; /* to be taken away at the next opportunity */
	_Atomic uint32_t itrace_started;
	_Atomic uint32_t records; /* for lose_every */
	/* What the keeper tells of the CPU's being away: how often, and for how long in all. */
	_Atomic uint32_t absences;
	_Atomic uint64_t away_ns;
	/* The rest belongs to whoever owns the rings. */
	uint32_t pid, tid;     /* on the CPU, as SWITCH records have told; 0: idle */
	uint64_t kernel_since; /* TSC at which that one entered the kernel; 0: it did not */
	/* The encoder's own state (last IP, clocks, return stack) lies here, so that it outlives
	 * the process: capture/emu defines it, nobody else reads it. */
	uint8_t encoder[EMURING_CPU_SIZE - 128];
};

_Static_assert(sizeof(struct emuring_head) <= EMURING_HEAD_SIZE, "head fits its page");
_Static_assert(sizeof(struct emuring_cpu) <= EMURING_CPU_SIZE, "cpu fits its page");
_Static_assert(sizeof(struct emuring_task) <= EMURING_TASK_SIZE, "task fits its place");

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

/* What a layout is made of, and what comes of it. */
struct emuring_layout {
	uint32_t n_cpus, max_tasks;
	uint64_t data_size, aux_size;
	/* results, bytes */
	uint64_t tasks_at, cpus_at, cpu_stride, total;
};
/* -EINVAL unless both sizes are powers of two of at least a page, n_cpus is 1..EMURING_MAX_CPUS,
 * max_tasks EMURING_MIN_TASKS..EMURING_MAX_TASKS and all of it fits in 64 bits. */
int emuring_layout(struct emuring_layout *l);
/* 0; -EBADMSG: SIZE bytes at HEAD are no shared memory of ours. */
int emuring_check(const struct emuring_head *head, uint64_t size);

/* The shared memory as one process sees it. What tells where things lie was copied when it was
 * good: the others may write there what they like. */
struct emuring {
	struct emuring_head *shared; /* for what changes */
	struct emuring_head fixed;   /* for what does not */
};
void emuring_attach(struct emuring *r, struct emuring_head *head);
/* CPU below n_cpus, TASK below max_tasks. */
struct emuring_cpu *emuring_cpu_at(const struct emuring *r, uint32_t cpu);
struct emuring_task *emuring_task_at(const struct emuring *r, uint32_t task);
struct perf_event_mmap_page *emuring_page_at(const struct emuring *r, uint32_t cpu);
uint8_t *emuring_data_at(const struct emuring *r, uint32_t cpu);
uint8_t *emuring_aux_at(const struct emuring *r, uint32_t cpu);
/* Remembers why something is not followed, if there is room and it is not there yet. */
void emuring_add_reason(struct emuring_head *head, const char *why);

/* The kernel's half of a DATA ring (kernel/events/ring_buffer.c, perf_output_begin/end): appends
 * RECORD (SIZE bytes, multiple of 8), or counts it as lost when it finds no room; a LOST record
 * precedes the first one that fits again. data_head is stored with release. The caller owns the
 * CPU's rings at that moment. 0, or EMURING_LOST. */
#define EMURING_LOST 1
int emuring_write_record(const struct emuring *r, uint32_t cpu, const void *record, size_t size);
