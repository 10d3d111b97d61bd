/*
 * Declares what the three files of the intel_pt source share: the source, its owner thread, and its
 * CPUs.
 */
#pragma once

#include "capture/perf/perf_event.h"
#include "capture/perf/pmu.h"
#include "capture/proc/budget.h"
#include "capture/proc/number.h"
#include "capture/ring/source.h"
#include "proto/base.h"

struct perf_cpu {
	struct perf_event pt, sideband;
	/* Perf clock when pt.running_ns was read, and when the event was told to stop last; ABSENT:
	 * no clock. */
	uint64_t seen_ns, stopped_ns;
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
	uint8_t *scratch; /* shared by all rings, as one thread reads them */
	char no_pt[SOURCE_WHY_SIZE];
	char holders[SOURCE_WHY_SIZE / 2]; /* who holds perf events; "": not looked up yet */
	char terms[256], pt_text[512], sideband_text[512], missing[64];
	bool lbr_excludes_pt; /* cpuid.h */
	bool lbr_is_used;     /* while holders are known: LBR keeps PT from us */
	/* The note about the budget, and the note that also names the rings. */
	char budget_note[SOURCE_WHY_SIZE], note[4 * SOURCE_WHY_SIZE];
};

/* --- source_perf.c: a thread that executes functions for other threads, one at a time --- */

struct owner;

/* The thread gets real-time priority 1 if that is permitted: its functions are short, and CPUs that
 * are to stop at a certain moment wait for it. 0 or -errno. */
int owner_new(struct owner **ret);
/* Ends the thread. The events that the thread opened stay open. */
void owner_free(struct owner *o);
/* Runs FN(ARG) in the thread and waits for its end. May be called from any thread; concurrent calls
 * wait for each other. */
void owner_run(struct owner *o, void (*fn)(void *arg), void *arg);

/* --- source_perf_choose.c --- */

/* Chooses CPUs (none open yet), sizes, attributes and notes. 0; or -errno with WHY. */
int perf_choose(struct source_perf *s, const struct source_config *config,
		struct cpulist *ret_online, char *why, size_t why_size);
int perf_read_online(const struct source_perf *s, struct cpulist *ret);
/* Reads the clock of the sideband's records from the page of an open event. Returns whether the
 * clock's zero has changed since the last call, as it does when the host slept so deeply that its
 * CPUs had no power. */
bool perf_read_clock(struct source_perf *s);
/* Makes the source's one-line note about sizes anew, with all CPUs whose ring is smaller than
 * chosen. */
void perf_note_sizes(struct source_perf *s);

/* --- source_perf_cpu.c. INDEX is an index into base.cpus --- */

/* Opens and enables the sideband event. 0 or -errno. */
int perf_cpu_open_sideband(struct source_perf *s, uint32_t index);
/* Opens and enables the PT event (in the owner's thread), and sets the CPU's state and why. */
void perf_cpu_open_pt(struct source_perf *s, uint32_t index);
/* Makes the PT event, which was stopped, run again. If the event had not run up to its stop, lists
 * the time in which it had not. 0; or -errno, and the event does not run. Several threads may call,
 * each for another CPU. */
int perf_cpu_restart(struct source_perf *s, uint32_t index);
void perf_cpu_close_pt(struct source_perf *s, uint32_t index);
/* Closes the PT event because the recorder gives Intel PT up. */
void perf_cpu_yield_pt(struct source_perf *s, uint32_t index);
/* Tries to trace a CPU that has no PT event. Opens the sideband event anew if the CPU was offline.
 */
void perf_cpu_take_pt(struct source_perf *s, uint32_t index);
/* After a deep sleep: closes the PT event and drops its trace. A CPU that was tracing becomes
 * FAILED, for perf_cpu_tend() to open anew. */
void perf_cpu_drop_pt(struct source_perf *s, uint32_t index);
void perf_cpu_close(struct source_perf *s, uint32_t index);
/* Opens, repairs or leaves the CPU's events, according to its state and whether it is ONLINE.
 * Returns whether the state has changed. */
bool perf_cpu_tend(struct source_perf *s, uint32_t index, bool online);
