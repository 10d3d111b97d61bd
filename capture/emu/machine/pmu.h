/*
 * The software PMU of one virtual CPU: when which packet is due. The caller owns the CPU's rings,
 * and reports what executed completely and in order.
 *
 * On an emulated machine (vcpu.h) the trace has user code only (OS=0), and in the kernel only time
 * passes: emupmu_enter(), emupmu_leave(), emupmu_interrupt(). Where a whole virtual machine is
 * traced (capture/emu/system), emupmu_transfer() stands for these three, and the trace has user
 * code, kernel code or both.
 *
 * Names begin with emupmu_, because pmu_ (capture/perf/pmu.h) is about what a PMU of the host
 * offers.
 *
 * Time: the machine's clock stands still between two looks. All that a CPU executes between two
 * looks executes at the time of the first look. At the second look the clock jumps, and the packets
 * that became due are written after all earlier packets and before all later ones. The times in the
 * packets are therefore exactly the machine's times, however seldom the host's clock is read; the
 * truth files have the same times.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "capture/emu/machine/emuring.h"
#include "capture/emu/machine/encode.h"

/* The cost of a system call on the virtual clock, in ticks. */
#define EMUPMU_VIRTUAL_SYSCALL 1000u

/* In emuring_cpu.encoder: outlives the process. */
struct emupmu_state {
	struct encode_state encode;
	uint64_t now;	      /* the clock: TSC of the last look */
	uint64_t tnt_tsc;     /* TSC of the first pending branch, or of the last look */
	uint64_t psb_at;      /* a PSB is due when encode.pos reaches it */
	uint64_t mtc;	      /* CTC >> period of the last MTC */
	uint64_t mtc_tsc;     /* TSC at which the next one is due */
	uint64_t cyc_tsc;     /* TSC of the last CYC */
	uint64_t extra_ticks; /* virtual clock: ticks besides those of instructions */
	uint32_t enabled;     /* TraceEn */
	uint32_t flowing;     /* PacketEn: between TIP.PGE and TIP.PGD */
	uint32_t mode_known;  /* MODE.Exec was sent since the last PSB */
	uint32_t ever_enabled;
	uint64_t overflow_at; /* an overflow begins when encode.pos reaches it */
	uint32_t drop_left;   /* calls of emupmu_service() until the overflow ends */
	uint32_t n_overflows;
	uint64_t psb_pos; /* a PSB+ is being written that begins before this byte; 0: none is */
	uint64_t cr3;
	uint32_t not_64bit; /* bits of MODE.Exec that differ from those of 64-bit mode */
	uint32_t context;   /* ContextEn, where address ranges or events need it */
	uint32_t stopped;   /* IA32_RTIT_STATUS.Stopped */
	uint32_t asleep;    /* a PWRE without its PWRX */
	uint32_t occasions; /* for errata */
};
_Static_assert(sizeof(struct emupmu_state) <= sizeof(((struct emuring_cpu *)0)->encoder),
	       "state fits the shared page");

/* A PSB begins at byte POS at time TSC. USER: it has a FUP. */
typedef void (*emupmu_psb_fn)(void *userdata, uint64_t tsc, uint64_t pos, bool user);
/* Packets are lost from now on; RESOLVED: an OVF was written, and packets are complete again. */
typedef void (*emupmu_overflow_fn)(void *userdata, uint64_t tsc, uint64_t pos, bool resolved);

/* An address range: IA32_RTIT_ADDRn_A and _B (inclusive), and ADDRn_CFG (SDM volume 3, "Filtering
 * by IP"). */
#define EMUPMU_RANGES 4u
enum emupmu_range_kind { EMUPMU_UNUSED = 0, EMUPMU_FILTER = 1, EMUPMU_TRACESTOP = 2 };
struct emupmu_range {
	uint64_t from, to;
	uint32_t kind;
};

/* Errata of processors, by the names of decoder/packet/errata.h, which says what they are. Those of
 * transactions and of virtual machines are missing, which the emulator has not. */
enum emupmu_erratum {
	EMUPMU_BDM70 = 1,
	EMUPMU_SKD007 = 2,
	EMUPMU_SKD010 = 4,
	EMUPMU_SKL014 = 8,
	EMUPMU_SKL168 = 0x10,
	EMUPMU_APL11 = 0x20,
};

struct emupmu {
	struct encoder encoder;
	struct emupmu_state *s; /* shared */
	struct emuring_cpu *cpu;
	bool virtual_clock;
	/* from attr.config */
	bool branches, with_tsc, with_mtc, with_cyc, retcomp;
	bool os, user; /* which code is traced; without emupmu_attach_cpu(): user code only */
	bool events, power_events; /* Event Trace and Power Event Trace, likewise */
	/* Set by the caller behind emupmu_attach_cpu(). */
	bool tsx;	 /* a PSB+ has MODE.TSX */
	uint32_t errata; /* EMUPMU_* */
	struct emupmu_range ranges[EMUPMU_RANGES];
	bool with_ranges;      /* some are in use */
	uint64_t (*tsc)(void); /* the machine's TSC; NULL: the host's */
	unsigned int mtc_period;
	uint64_t cyc_threshold, psb_bytes, overflow_bytes;
	uint8_t cbr;
	uint64_t held_up; /* after this many ticks without a look, the CPU counts as interrupted */
	uint32_t art_num, art_den;
	/* The caller counts here the blocks until its next emupmu_service(). The PMU sets it to 0
	 * when a PSB is due. */
	int budget;
	emupmu_psb_fn on_psb; /* callbacks may be NULL */
	emupmu_overflow_fn on_overflow;
	void *userdata;
};

/* Takes the configuration from R (borrowed) and clears the state of the CPU. The recorder calls
 * this once for each CPU. */
void emupmu_init(struct emupmu *p, const struct emuring *r, uint32_t cpu);
/* The same without clearing the state, for all others. */
void emupmu_attach(struct emupmu *p, const struct emuring *r, uint32_t cpu);

/* The same for a CPU that is no part of an emulated machine. HEAD: pt_config, clock and ratios; the
 * rest is not read. CPU, and AUX with AUX_SIZE bytes (a power of two), are borrowed. Sets os and
 * user as the bits of pt_config say (RTIT_CTL.OS and .User, arch/x86/include/asm/msr-index.h). */
void emupmu_attach_cpu(struct emupmu *p, const struct emuring_head *head, struct emuring_cpu *cpu,
		       uint8_t *aux, uint64_t aux_size);

/* Reads the clock, which never runs backwards, and writes the MTCs up to that time. All that
 * executed must have been reported before. Returns the TSC. */
uint64_t emupmu_now(struct emupmu *p);
/* The same when user code ends, unless the host took its own CPU away for long: then returns false
 * without reading the time, so that it passes outside of user code. */
bool emupmu_pass(struct emupmu *p);
/* Makes the packets visible to the recorder. */
void emupmu_publish(struct emupmu *p);

/* Sets and clears TraceEn. Tracing starts in the kernel; user code begins at the next
 * emupmu_enter(). IP: where user code is interrupted, if it runs. */
void emupmu_start(struct emupmu *p);
void emupmu_stop(struct emupmu *p, uint64_t ip);

/* The following events happen at the time of the last look at the clock; call emupmu_now() first
 * for an event that must happen now. With CYC, the PMU reads the clock after each packet. */

/* A conditional branch or compressed return filled the TNT bits. */
void emupmu_tnt_full(struct emupmu *p);
void emupmu_tip(struct emupmu *p, uint64_t ip);
/* User code at IP begins, now. */
void emupmu_enter(struct emupmu *p, uint64_t ip);
/* An instruction (SYSCALL, INT n) entered the kernel. */
void emupmu_leave(struct emupmu *p);
/* An interrupt or a fault before the instruction at IP entered the kernel. */
void emupmu_interrupt(struct emupmu *p, uint64_t ip);

/* --- Whole machines (pmu_system.c) --- */

/* Where a transfer leads. MODE: PT_MODE_EXEC_CSL, _CSD or 0, and with Event Trace _IFLAG. */
struct emupmu_place {
	uint64_t ip;
	bool kernel;
	uint8_t mode;
};
/* What Event Trace says of a transfer. */
struct emupmu_cause {
	uint8_t type; /* enum pt_cfe */
	uint8_t vector;
	bool page_fault;
	uint64_t cr2; /* of a page fault */
	uint64_t at;  /* the address that a FUP of the CFE has */
};
/* A far transfer leads to TO: a system call, the return from one, an interrupt or a fault. FROM:
 * the instruction in front of which an interrupt or fault happened; NULL: an instruction did it.
 * CAUSE: NULL: no event. */
void emupmu_transfer(struct emupmu *p, const uint64_t *from, const struct emupmu_place *to,
		     const struct emupmu_cause *cause);
/* With address ranges: a near branch was taken to IP. NAMED: TIP.PGD has its target, as for all but
 * conditional branches and compressed returns; DIRECT: the target is in the code. True: tracing
 * ended or began with the branch, or is off; false: report the branch as ever. SDM volume 3,
 * "Filtering by IP": taken branches and events, but no sequential code, enter and leave ranges. */
bool emupmu_crosses(struct emupmu *p, uint64_t ip, bool named, bool direct);
/* An instruction wrote CR3. */
void emupmu_cr3(struct emupmu *p, uint64_t cr3);
/* With Event Trace: the instruction before IP wrote RFLAGS. MODE: as in struct emupmu_place, after
 * it. */
void emupmu_iflag(struct emupmu *p, uint8_t mode, uint64_t ip);
/* The CPU halts in front of IP (HLT). Call before the CPU sleeps. */
void emupmu_halt(struct emupmu *p, uint64_t ip);
/* The CPU was halted since the last look at the clock, and executes again: no MTCs were written
 * meanwhile (SDM "Mini Time Counter": not in deep C-states), and TSC, TMA and CBR give the time. */
void emupmu_awake(struct emupmu *p);

/* --- Emulated machines --- */

/* The thread on the CPU was killed. IP: the block that it executed. 0: it was between two blocks;
 * the last branches are unknown, and an OVF says so. */
void emupmu_killed(struct emupmu *p, uint64_t ip);

/* Call from time to time between two instructions: writes the MTCs up to now, and a PSB if it is
 * due. IP: the next user instruction, if user code runs. If the host took its own CPU away for
 * long, reports an interrupt: user code has ended then, and the caller must call emupmu_enter(). */
void emupmu_service(struct emupmu *p, uint64_t ip);
