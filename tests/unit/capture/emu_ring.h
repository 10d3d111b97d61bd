/*
 * Rings for tests of the software PMU: the shared memory laid out as the recorder does, on the
 * virtual clock, and the trace as text: one word a packet.
 */
#pragma once

#include <stddef.h>

#include "capture/emu/machine/emuring.h"

/* attr.config bits of the terms that tests use. */
#define RING_CYC     (1ull << 1)
#define RING_MTC     (1ull << 9)
#define RING_TSC     (1ull << 10)
#define RING_DISRETC (1ull << 11)
#define RING_BRANCH  (1ull << 13)

#define RING_AUX 4096u

/* N_CPUS CPUs, 4 KiB of DATA and of AUX each, TSC = ART * 4, CBR 10. */
struct emuring *emu_ring_new_machine(uint64_t config, uint32_t n_cpus);
/* One CPU. */
struct emuring *emu_ring_new(uint64_t config);
void emu_ring_free(struct emuring *r);
/* Time goes on by TICKS. */
void emu_ring_pass(struct emuring *r, uint64_t ticks);
/* The published bytes from FROM on: "PSB TSC(1000) TMA(250,0) CBR(10) PSBEND MODE PGE(401000)
 * TNT(110) TIP(..) FUP(..) PGD MTC(1) CYC(5) PIP(1000)"; MODE is 64-bit mode, MODE32 32-bit,
 * MODEIF 64-bit with interrupts enabled; TSX is MODE.TSX outside of transactions; STOP TraceStop;
 * CFE(TYPE,VECTOR), CFEIP with a FUP of its own; CR2(..) an EVD; EXSTOP, EXSTOPIP, PWRE(..),
 * PWRX(..). IPs are whole. Static storage, good until the next call. */
const char *emu_ring_text(struct emuring *r, uint64_t from);
