/*
 * Between the files of the software PMU: pmu.c has time and user code, pmu_system.c what only whole
 * machines have.
 */
#pragma once

#include "capture/emu/machine/pmu.h"

/* The clock's value, and the machine's clock at that value. Returns the new time. */
uint64_t emupmu_read_clock(const struct emupmu *p);
uint64_t emupmu_advance(struct emupmu *p, uint64_t now);
/* Call in front of a packet at the time of the last look: pending branches, and a CYC. */
void emupmu_flush(struct emupmu *p);
/* Call behind a packet. */
void emupmu_after_packet(struct emupmu *p);
/* TSC, TMA and CBR, because MTCs are missing before TSC. */
void emupmu_time_anew(struct emupmu *p, uint64_t tsc);
void emupmu_write_mode(struct emupmu *p);
/* PacketEn becomes 0. INTERRUPTED: the address of an interrupt, NULL: an instruction did it.
 * TARGET: the IP of the TIP.PGD, NULL: none. The return stack becomes empty: real processors
 * compress no RET whose CALL precedes the last TIP.PGE. */
void emupmu_end(struct emupmu *p, const uint64_t *interrupted, const uint64_t *target);
/* The overflow is over. IP: NULL while PacketEn is clear. */
void emupmu_resolve_overflow(struct emupmu *p, uint64_t tsc, const uint64_t *ip);
/* Whether the next occasion for ERRATUM (EMUPMU_*) meets it: the processor has it, and every
 * third occasion counts. */
bool emupmu_errs(struct emupmu *p, uint32_t erratum);
