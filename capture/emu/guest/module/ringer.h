/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The trace unit behind the PMU, where the emulator has one (ptsnap-syspmu.so): starts and stops
 * that unit by its bell (bell.h).
 */
#pragma once

#include <linux/types.h>

#include "bell.h"

/* An AUX buffer as the trace unit knows it. */
struct ringer_buf {
	u64 *pages; /* physical addresses */
	u64 n_pages, number;
};

struct ringer; /* one a CPU */

/* NULL: no memory. */
struct ringer *ringer_new(void);
void ringer_free(struct ringer *r);
/* Whether the machine has a trace unit. */
bool ringer_has_unit(struct ringer *r);

/* 0 or -ENOMEM. PAGES: N virtual addresses. */
int ringer_buf_init(struct ringer_buf *b, void **pages, int n);
void ringer_buf_done(struct ringer_buf *b);

/* On the CPU of R, with interrupts off. CTL: IA32_RTIT_CTL. RANGES: BELL_RANGES of them. FIRST: the
 * event was never started. False: the unit refuses. */
bool ringer_start(struct ringer *r, const struct ringer_buf *b, u64 ctl,
		  const struct bell_range *ranges, u64 offset, bool first);
/* The output offset. *TOTAL: bytes written so far. *STOPPED, unless NULL:
 * IA32_RTIT_STATUS.Stopped. */
u64 ringer_stop(struct ringer *r, u64 *total, bool *stopped);

/* TSC frequency in units of 100 MHz. */
u32 ringer_ratio(void);
#define RINGER_ART_NUM 216u
#define RINGER_ART_DEN 2u
