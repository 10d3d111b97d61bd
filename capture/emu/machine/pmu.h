/*
 * The software PMU of one virtual CPU: when which packet is due. User code only (OS=0): what the
 * kernel does is out of context, only time goes on there. The caller owns the CPU's rings
 * (machine.h says when) and tells the truth about what was executed, in order.
 *
 * Names begin with emupmu_; capture/perf/pmu.h is about what a PMU offers.
 *
 * Time: the machine's clock goes on when it is looked at, and stands still in between. Whatever a
 * CPU executes between two looks it executes at the time of the first one; at the second one the
 * packets that the time between makes due are written, behind all that was before and in front of
 * all that comes. So what a packet says of time is exactly true, however seldom the host's clock is
 * read. The truth of an execution's time is the clock's then.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "capture/emu/machine/emuring.h"
#include "capture/emu/machine/encode.h"

/* What a system call costs on the virtual clock, in ticks. */
#define EMUPMU_VIRTUAL_SYSCALL 1000u

/* In emuring_cpu.encoder: outlives the process. */
struct emupmu_state {
	struct encode_state encode;
	uint64_t now;	      /* the clock: TSC of the last look */
	uint64_t tnt_tsc;     /* of the first pending branch, or now */
	uint64_t psb_at;      /* a PSB is due when encode.pos reaches it */
	uint64_t mtc;	      /* CTC >> period of the last MTC */
	uint64_t mtc_tsc;     /* TSC at which the next one is due */
	uint64_t cyc_tsc;     /* TSC of the last CYC */
	uint64_t extra_ticks; /* virtual clock: time that was not instructions */
	uint32_t enabled;     /* TraceEn */
	uint32_t flowing;     /* PacketEn: between TIP.PGE and TIP.PGD */
	uint32_t mode_known;  /* MODE.Exec was sent since the last PSB */
	uint32_t ever_enabled;
	uint64_t overflow_at; /* one begins when encode.pos reaches it */
	uint32_t drop_left;   /* opportunities to resolve it that are let pass */
	uint32_t n_overflows;
};
_Static_assert(sizeof(struct emupmu_state) <= sizeof(((struct emuring_cpu *)0)->encoder),
	       "state fits the shared page");

/* A PSB was begun at byte POS at time TSC; USER: it has a FUP. */
typedef void (*emupmu_psb_fn)(void *userdata, uint64_t tsc, uint64_t pos, bool user);
/* Packets begin to be lost; RESOLVED: an OVF was written. */
typedef void (*emupmu_overflow_fn)(void *userdata, uint64_t tsc, uint64_t pos, bool resolved);

struct emupmu {
	struct encoder encoder;
	struct emupmu_state *s; /* shared */
	struct emuring_cpu *cpu;
	bool virtual_clock;
	/* attr.config, taken apart */
	bool branches, with_tsc, with_mtc, with_cyc, retcomp;
	unsigned int mtc_period;
	uint64_t cyc_threshold, psb_bytes, overflow_bytes;
	uint8_t cbr;
	uint64_t held_up; /* after so many ticks without a look the CPU was interrupted */
	uint32_t art_num, art_den;
	/* The caller's count of blocks until its next emupmu_service; set to 0 here when a PSB is
	 * due. */
	int budget;
	emupmu_psb_fn on_psb; /* NULL: nobody */
	emupmu_overflow_fn on_overflow;
	void *userdata;
};

/* Takes the configuration from R; everything off. The recorder does it once a CPU. */
void emupmu_init(struct emupmu *p, const struct emuring *r, uint32_t cpu);
/* The same for everybody else, who finds the CPU's state as it is. */
void emupmu_attach(struct emupmu *p, const struct emuring *r, uint32_t cpu);

/* Looks at the clock, which never runs backwards, and writes the MTCs up to then. All that was
 * executed must have been told. */
uint64_t emupmu_now(struct emupmu *p);
/* The same on the way out of user code, unless the host took its own CPU away for long meanwhile:
 * false, that time passes out of user code. */
bool emupmu_pass(struct emupmu *p);
/* Makes what was written so far visible to the recorder. */
void emupmu_publish(struct emupmu *p);

/* TraceEn. Start in the kernel; code flows from the next emupmu_enter on. Stop: IP is where user
 * code was interrupted, if it was. */
void emupmu_start(struct emupmu *p);
void emupmu_stop(struct emupmu *p, uint64_t ip);

/* What follows happens at the time of the last look, which the caller may want to be now. With CYC
 * the clock is looked at behind each packet. */

/* A conditional branch or compressed return filled the TNT bits. */
void emupmu_tnt_full(struct emupmu *p);
void emupmu_tip(struct emupmu *p, uint64_t ip);
/* From the kernel to user code at IP, now. */
void emupmu_enter(struct emupmu *p, uint64_t ip);
/* To the kernel by an instruction that says so (SYSCALL, INT n). */
void emupmu_leave(struct emupmu *p);
/* To the kernel by an interrupt or a fault before the instruction at IP. */
void emupmu_interrupt(struct emupmu *p, uint64_t ip);

/* Whoever ran code was killed. IP: of the block it was in, 0: between two, so that nothing certain
 * can be said of the last branches. */
void emupmu_killed(struct emupmu *p, uint64_t ip);

/* To be called now and then between two instructions: the MTCs up to now, and a PSB where one is
 * due. IP: the next user instruction, if code flows. When the host took its own CPU away for long
 * this one was interrupted: code flows no more, the caller is to enter anew. */
void emupmu_service(struct emupmu *p, uint64_t ip);
