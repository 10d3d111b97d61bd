/*
 * All threads of a truth directory, cut to the windows of a snapshot.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "tests/support/truth.h"

#define TRUTH_FNV_BASIS 0xcbf29ce484222325ull

/* What a snapshot holds of one CPU: from the TSC of its first PSB to when it was stopped. */
struct truth_span {
	uint32_t cpu;
	uint64_t from, stop;
};

struct truth_thread {
	uint32_t pid, tid;
};

/* Any of them may be NULL. */
struct truth_visitor {
	void (*begin)(void *userdata, struct truth_thread who);
	/* User code begins (or is known from a PSB on) on CPU, at TSC, within a span. */
	void (*stretch)(void *userdata, uint32_t cpu, uint64_t tsc);
	/* Executed within the stretch. */
	void (*run)(void *userdata, const struct truth_event *e);
	/* Every mark, within a span or not. */
	void (*mark)(void *userdata, const struct truth_event *e);
	void (*end)(void *userdata);
	void *userdata;
};

/* "N:FROM:STOP", hexadecimal TSCs. 0 or -EINVAL. */
int truth_span_parse(const char *text, struct truth_span *ret);
/* The threads of DIR in order of tid. N 0: all that was executed. 0; -errno: *ret_bad (freed by the
 * caller) is the file that is to blame. */
int truth_walk(const char *dir, const struct truth_span *spans, size_t n,
	       const struct truth_visitor *v, char **ret_bad);
/* FNV-1a over the addresses that E executed, carried on. */
uint64_t truth_hash(uint64_t hash, const struct truth_event *e);
