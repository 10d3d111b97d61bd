/*
 * How large rings may be: what was asked for, cut to the host's budget.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes, powers of two of at least BUDGET_MIN_RING. */
struct budget_sizes {
	uint64_t aux, data; /* of each CPU */
};
#define BUDGET_MIN_RING (64u << 10)
#define BUDGET_PT_DATA	(16u << 10) /* DATA ring of a PT event: AUX, ITRACE_START, LOST only */
#define BUDGET_PAGE	4096u
/* One block of physical memory at most: 2^10 pages, include/linux/mmzone.h MAX_ORDER. */
#define BUDGET_SINGLE_ENTRY (4u << 20)

/* What N_CPUS CPUs need: their rings with header pages, and one area to copy all AUX rings to. */
uint64_t budget_need(const struct budget_sizes *sizes, size_t n_cpus);
/* ASKED, its AUX rings halved, then its DATA rings, until they fit BUDGET bytes or are as small as
 * can be. SINGLE: the PMU writes to one contiguous block only (caps/topa_multiple_entries 0). Fills
 * NOTE (SIZE bytes) with one line for the user that says what became smaller and why, or "". */
void budget_fit(const struct budget_sizes *asked, size_t n_cpus, uint64_t budget, bool single,
		struct budget_sizes *ret, char *note, size_t size);
/* A sixteenth of the host's memory (MEMINFO: /proc/meminfo), at least 64 MiB. */
uint64_t budget_default(const char *meminfo);
