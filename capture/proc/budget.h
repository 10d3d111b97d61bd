/*
 * The sizes of rings: what was asked for, reduced until it fits the host's budget.
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
/* The largest block of physical memory: 2^10 pages, include/linux/mmzone.h MAX_ORDER. */
#define BUDGET_SINGLE_ENTRY (4u << 20)

/* The bytes that N_CPUS CPUs need: their rings with header pages, and an area that all AUX rings
 * are copied to. */
uint64_t budget_need(const struct budget_sizes *sizes, size_t n_cpus);
/* Halves the AUX rings of ASKED, then its DATA rings, until everything fits BUDGET bytes or has its
 * smallest size. SINGLE: the PMU writes to one contiguous block only (caps/topa_multiple_entries
 * 0). NOTE (SIZE bytes) becomes a line for the user that says what was reduced and why, or "". */
void budget_fit(const struct budget_sizes *asked, size_t n_cpus, uint64_t budget, bool single,
		struct budget_sizes *ret, char *note, size_t size);
/* A sixteenth of the host's memory, at least 64 MiB. MEMINFO is "/proc/meminfo". */
uint64_t budget_default(const char *meminfo);
