/*
 * All threads of a truth directory, cut to the windows of a snapshot.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "tests/support/truth.h"

#define TRUTH_FNV_BASIS 0xcbf29ce484222325ull

/* The part of one CPU that a snapshot holds: from the TSC of its first PSB to its stop. */
struct truth_span {
	uint32_t cpu;
	uint64_t from, stop;
};

struct truth_thread {
	uint32_t pid, tid;
};

/* Each callback may be NULL. */
struct truth_visitor {
	void (*begin)(void *userdata, struct truth_thread who);
	/* User code begins on CPU at TSC within a span (or is known from a PSB on). */
	void (*stretch)(void *userdata, uint32_t cpu, uint64_t tsc);
	/* Instructions executed within the stretch. */
	void (*run)(void *userdata, const struct truth_event *e);
	/* Every mark, inside and outside of spans. */
	void (*mark)(void *userdata, const struct truth_event *e);
	void (*end)(void *userdata);
	void *userdata;
};

/* Parses "N:FROM:STOP", with hexadecimal TSCs. 0 or -EINVAL. */
int truth_span_parse(const char *text, struct truth_span *ret);
/* Walks the threads of DIR in order of tid. N 0: everything that was executed. 0, or -errno and
 * *ret_bad (the caller frees it): the file that caused the error. */
int truth_walk(const char *dir, const struct truth_span *spans, size_t n,
	       const struct truth_visitor *v, char **ret_bad);
/* Continues an FNV-1a hash over the addresses that E executed. */
uint64_t truth_hash(uint64_t hash, const struct truth_event *e);
