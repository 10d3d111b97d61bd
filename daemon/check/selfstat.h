/*
 * What the recorder itself costs: its CPU time and memory, and how many records come.
 */
#pragma once

#include <stdint.h>

struct selfstat {
	uint64_t cpu_usec;	     /* of all threads, since the start */
	uint64_t rss_bytes;	     /* resident now; ENTRY_ABSENT: not known */
	uint64_t records_per_second; /* over the last whole time between two looks */
	uint64_t metrics_skipped; /* files of metrics, as the one before was still being written */
	/* Of the look before. */
	uint64_t seen_usec, seen_records;
};

/* At the start: NOW_USEC is CLOCK_MONOTONIC. */
void selfstat_init(struct selfstat *s, uint64_t now_usec);
/* A look: RECORDS came so far. Looks that are less than a second apart keep the rate. STATM is
 * "/proc/self/statm", or a test's. */
void selfstat_look(struct selfstat *s, uint64_t now_usec, uint64_t records, const char *statm);
