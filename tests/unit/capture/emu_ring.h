/*
 * Rings for tests of the software PMU: the shared memory laid out as the recorder does, on the
 * virtual clock, and the trace as text: one word a packet.
 */
#pragma once

#include <stddef.h>

#include "proto/emuring.h"

/* attr.config bits of the terms that tests use. */
#define RING_CYC     (1ull << 1)
#define RING_MTC     (1ull << 9)
#define RING_TSC     (1ull << 10)
#define RING_DISRETC (1ull << 11)
#define RING_BRANCH  (1ull << 13)

#define RING_AUX 4096u

/* One CPU, 4 KiB of DATA and of AUX, TSC = ART * 4, CBR 10; freed by free(). */
struct emuring_head *emu_ring_new(uint64_t config);
/* Time goes on by TICKS. */
void emu_ring_pass(struct emuring_head *head, uint64_t ticks);
/* The published bytes from FROM on: "PSB TSC(1000) TMA(250,0) CBR(10) PSBEND MODE PGE(401000)
 * TNT(110) TIP(..) FUP(..) PGD MTC(1) CYC(5)". IPs are whole. Static storage, good until the next
 * call. */
const char *emu_ring_text(struct emuring_head *head, uint64_t from);
