/*
 * The spans of time in which a CPU was not traced although it was to be traced.
 *
 * Each CPU of a source has one list, whatever made the CPU dark: the start, a snapshot's copy, an
 * event that the kernel stopped or refused, another user of Intel PT, a lease, a CPU that was
 * offline. A snapshot takes the lists into its manifest, so that a report never spans a hole
 * silently. The list is bounded: the oldest spans are forgotten and counted.
 *
 * Times are of the perf clock; MANIFEST_ABSENT: unknown. A list belongs to whoever has the events
 * of its source: a job while it captures, else the loop.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DARK_SPANS    32u
#define DARK_WHY_SIZE 128

/* Kinds that no state of a CPU has (source_cpu_state_fault()): names of decoder/packet/fault.h. */
#define DARK_START    "pt-starting"
#define DARK_COPY     "snapshot-copy"
#define DARK_UNLISTED "dark-unlisted" /* spans that were forgotten */

struct dark_span {
	const char *kind;	     /* the name of a fault; static text */
	char why[DARK_WHY_SIZE];     /* one line, cut to this size; "": nothing to add */
	bool open;		     /* the CPU is still dark */
	uint64_t since_ns, until_ns; /* until_ns: ABSENT while the span is open */
};

/* A value; all zero is an empty list. */
struct dark {
	struct dark_span spans[DARK_SPANS];
	size_t first, n;
	uint64_t count,
		total_ns; /* of all spans that have ended; total: of those with known times */
	/* The number of spans that were forgotten, and the end of the last one. */
	uint64_t forgotten, forgotten_until_ns;
};

/* The CPU is dark since NS. If a span of that kind is open, it goes on; a span of another kind ends
 * at NS, and is replaced if it began then. WHY may be NULL. */
void dark_begin(struct dark *d, const char *kind, const char *why, uint64_t ns);
/* The CPU is traced again since NS. Does nothing if no span is open. */
void dark_end(struct dark *d, uint64_t ns);
/* Adds a span that has ended. No span may be open. */
void dark_add(struct dark *d, const char *kind, const char *why, uint64_t since_ns,
	      uint64_t until_ns);
/* Span INDEX (below d->n), the oldest first. */
const struct dark_span *dark_at(const struct dark *d, size_t index);
/* The span that is open; NULL: none. */
const struct dark_span *dark_open(const struct dark *d);
