/*
 * The shared memory between the recorder and the software PMU, one memfd:
 *
 *   page 0            struct emuring_head
 *   from head_size    for each virtual CPU, cpu_stride bytes:
 *                       struct emuring_cpu (EMURING_CPU_SIZE bytes)
 *                       perf_event_mmap_page (4096), DATA (data_size), AUX (aux_size)
 *
 * From the perf_event_mmap_page on it is the kernel's own layout, with data_offset, data_size,
 * aux_offset and aux_size relative to that page. What precedes it stands for the syscalls
 * (IOC_ENABLE, IOC_DISABLE) and registers (MSRs) that a real PMU has.
 *
 * The software PMU opens the memfd by path (/proc/RECORDER/fd/N), so a guest that closes all its
 * fds does it no harm.
 *
 * ENABLE/DISABLE: the recorder stores emuring_cpu.want (a new even/odd generation: bit 0 set =
 * trace) and wakes it; the software PMU makes it so at the next opportunity (a block boundary when
 * the CPU runs user code, at once when it is in the kernel or idle), stores the same value in .is
 * and wakes that. When the traced process is gone or stopped nobody answers: after its time-out the
 * recorder takes aux_pos as it stands and updates aux_head itself.
 */
#pragma once

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define EMURING_MAGIC	  0x554d50656d755450ull
#define EMURING_VERSION	  1u
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

/* Variables of COMMAND's environment that would act on the emulator itself (its dynamic linker, its
 * malloc) travel under this prefix: the launcher puts it on, the plugin takes it off before the
 * program's first instruction. No real name begins with a control character. */
#define EMURING_ENV_PREFIX	"\001pt:"
#define EMURING_ENV_PREFIX_SIZE 4u

/* What a CPU is doing (emuring_cpu.where). */
enum emuring_where {
	EMURING_KERNEL = 0, /* no traced code runs; whoever sets BUSY may write the rings */
	EMURING_USER = 1,   /* the guest thread runs user code and owns the rings */
	EMURING_BUSY = 2,   /* somebody else writes the rings on the CPU's behalf */
};

struct emuring_head {
	uint64_t magic;
	uint32_t version;
	uint32_t n_cpus;
	uint64_t data_size; /* bytes of a DATA ring, power of two */
	uint64_t aux_size;  /* bytes of an AUX ring, power of two */
	uint64_t cpu_stride;
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
	_Atomic uint32_t attached; /* the plugin is loaded and the first block has run */
	_Atomic uint32_t guest_pid;
	_Atomic uint32_t exited; /* the traced process ended by itself */
	/* What the emulator could not follow; each becomes a gap in the report. */
	_Atomic uint32_t untraced_threads;
	_Atomic uint32_t untraced_children;
	_Atomic uint32_t untraced_execs;
	_Atomic uint32_t decode_failures; /* instructions whose class the plugin could not tell */
	/* The thread that answers while the guest is in the kernel; 0: none. When it is gone and
	 * the process is not, the program was replaced by exec and nobody answers any more. */
	_Atomic uint32_t helper_tid;
};

struct emuring_cpu {
	_Atomic uint32_t want;
	_Atomic uint32_t is;
	_Atomic uint32_t where; /* enum emuring_where */
	_Atomic uint32_t owner_tid;
	_Atomic uint64_t aux_pos;      /* bytes written since the start, not wrapped */
	_Atomic uint64_t data_lost;    /* records that found no room and are not yet reported */
	_Atomic uint64_t instructions; /* executed, traced or not; for status only */
	/* Branches not yet written: newest in bit 0, below a stop bit; 0 or 1: none. Of a process
	 * that died the recorder writes them, or the last branches before a crash were lost. */
	_Atomic uint64_t tnt;
	_Atomic uint64_t tsc; /* of the last event; with the virtual clock the time there is */
	/* The encoder's own state (last IP, clocks, return stack) lies here, so that it outlives
	 * the process: capture/emu defines it, nobody else reads it. */
	uint8_t encoder[EMURING_CPU_SIZE - 64];
};

_Static_assert(sizeof(struct emuring_head) <= EMURING_HEAD_SIZE, "head fits its page");
_Static_assert(sizeof(struct emuring_cpu) <= EMURING_CPU_SIZE, "cpu fits its page");

struct perf_event_mmap_page;

/* Bytes of the whole memfd and of one CPU's part. -EINVAL unless both sizes are powers of two of
 * at least a page, N_CPUS is 1..EMURING_MAX_CPUS and all of it fits in 64 bits. */
int emuring_layout(uint32_t n_cpus, uint64_t data_size, uint64_t aux_size, uint64_t *ret_stride,
		   uint64_t *ret_total);
struct emuring_cpu *emuring_cpu_at(struct emuring_head *head, uint32_t cpu);
struct perf_event_mmap_page *emuring_page_at(struct emuring_head *head, uint32_t cpu);
uint8_t *emuring_data_at(struct emuring_head *head, uint32_t cpu);
uint8_t *emuring_aux_at(struct emuring_head *head, uint32_t cpu);

/* The kernel's half of a DATA ring (kernel/events/ring_buffer.c, perf_output_begin/end): appends
 * RECORD (SIZE bytes, multiple of 8), or counts it as lost when it finds no room; a LOST record
 * precedes the first one that fits again. data_head is stored with release. The caller owns the
 * CPU's rings at that moment. 0, or EMURING_LOST. */
#define EMURING_LOST 1
int emuring_write_record(struct emuring_head *head, uint32_t cpu, const void *record, size_t size);

/* Of a writer that died: the branches that it had not written yet, as one TNT packet at byte POS of
 * the trace in the ring AUX of SIZE bytes (a power of two). Returns the new POS. */
uint64_t emuring_finish(struct emuring_cpu *cpu, uint8_t *aux, uint64_t size, uint64_t pos);
