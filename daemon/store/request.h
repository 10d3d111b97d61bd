/*
 * Somebody wants a snapshot: who, why, of how much, and when it was said.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/store/entry.h"

#define ENTRY_NO_CPU UINT32_MAX

/* A value. Filled in by whoever fires (control, signal, exit); trigger.c adds the times. */
struct request {
	char kind[16];		    /* "control", "signal", "exit", "unit" */
	char name[ENTRY_NAME_SIZE]; /* which one of that kind: of a trigger that has one, its own */
	/* The trigger of the configuration that was chosen (trigger_choose); "": the built-in one
	 * of that kind. */
	char trigger[ENTRY_NAME_SIZE];
	char reason[ENTRY_REASON_SIZE];
	char unit[ENTRY_UNIT_SIZE]; /* that it is about, as one that failed; "" */
	struct labels labels;
	uint64_t pid, uid;		   /* of the sender; ENTRY_ABSENT */
	char sender_unit[ENTRY_UNIT_SIZE]; /* that the sender runs in, "" where that is not known */
	uint64_t last_bytes, last_ns;	   /* ENTRY_ABSENT: everything */
	bool decode;
	uint64_t deadline_ns; /* the newest part that can be decoded in that time; ENTRY_ABSENT: all
			       */
	uint32_t cpu;	      /* where the sender ran last; ENTRY_NO_CPU: not known */
	uint64_t realtime_ns, monotonic_ns, perf_ns, tsc; /* perf_ns ENTRY_ABSENT: no clock */
};
