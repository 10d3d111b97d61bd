/*
 * What source_perf.c (opening, the source's operations) and source_perf_cpu.c (the life of one
 * CPU's events) share.
 */
#pragma once

#include "capture/perf/owner.h"
#include "capture/perf/perf_attr.h"
#include "capture/perf/perf_event.h"
#include "capture/perf/pmu.h"
#include "capture/proc/budget.h"
#include "capture/proc/cpulist.h"
#include "capture/ring/source.h"
#include "proto/base.h"

struct perf_cpu {
	struct perf_event pt, sideband;
};

struct source_perf {
	struct source base;
	struct perf_cpu *cpus;	/* as many as base has */
	struct owner *owner;	/* of all PT events */
	const char *sys, *proc; /* borrowed */
	struct pmu pmu;
	bool have_pmu;
	bool yielded;
	struct perf_event_attr pt_attr, sideband_attr;
	struct budget_sizes sizes;
	uint8_t *scratch; /* of all rings: one thread reads them */
	char no_pt[SOURCE_WHY_SIZE];
	char holders[SOURCE_WHY_SIZE / 2]; /* of perf events, as this look found them; "" */
	char terms[256], pt_text[512], sideband_text[512], missing[64], note[SOURCE_WHY_SIZE];
};

/* source_perf_choose.c: CPUs (none open yet), sizes, attrs, notes. 0 or -errno with WHY. */
int perf_choose(struct source_perf *s, const struct source_config *config,
		struct cpulist *ret_online, char *why, size_t why_size);
int perf_read_online(const struct source_perf *s, struct cpulist *ret);
/* The clock of the sideband's records, from the page of one that is open. True: it was set anew
 * since the last call, as it is when the host slept so deeply that its CPUs had no power. */
bool perf_read_clock(struct source_perf *s);

/* One line for the user about sizes, in place of the one before. */
void perf_note(struct source_perf *s, const char *format, ...) PRINTF_LIKE(2, 3);

/* source_perf_cpu.c. INDEX is into base.cpus. */

/* Opens and enables the sideband event. 0 or -errno. */
int perf_cpu_open_sideband(struct source_perf *s, uint32_t index);
/* Opens and enables the PT event (in the owner's thread) and sets state and why. */
void perf_cpu_open_pt(struct source_perf *s, uint32_t index);
void perf_cpu_close_pt(struct source_perf *s, uint32_t index);
/* PT is to be had, or may be: the same, with a new sideband event where the CPU was away. */
void perf_cpu_take_pt(struct source_perf *s, uint32_t index);
/* After a deep sleep: what was traced goes; a CPU that traces is left FAILED, for perf_cpu_tend to
 * open anew. */
void perf_cpu_drop_pt(struct source_perf *s, uint32_t index);
void perf_cpu_close(struct source_perf *s, uint32_t index);
/* Brings the CPU's events into the state that is right for a CPU that is ONLINE or not. True: its
 * state has changed. */
bool perf_cpu_tend(struct source_perf *s, uint32_t index, bool online);
