/*
 * A perf core for tests, in place of capture/perf/perf_sys.c.
 *
 * Events are memory. The test makes happen what happens by itself in a real kernel: a CPU goes
 * offline, or another program takes PT.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define FAKE_PERF_CPUS	  8u
#define FAKE_PERF_PT_TYPE 8u

struct fake_perf {
	/* The results of opening a PT event on a CPU, and of mapping its AUX ring. */
	int open_pt[FAKE_PERF_CPUS];
	int map_aux;
	uint64_t largest_aux; /* bytes; 0: any */
	int too_large;	      /* the result for a larger one; 0: -ENOMEM */
	int open_sideband;
	int open_lbr; /* the result of opening an event with branch records */
	bool mute;    /* trace units write nothing */
	/* How many times enabling the CPU's PT event returns 0 and leaves the event in error. */
	unsigned refuse[FAKE_PERF_CPUS];
	uint32_t unknown_bits;	       /* PERF_ATTR_*: flags for which this kernel is too old */
	uint64_t lost;		       /* of every sideband event */
	bool time_zero;		       /* cap_user_time_zero */
	uint64_t clock_zero;	       /* time_zero, as IOC_RESET writes it */
	uint32_t page_lock;	       /* of every page that is mapped */
	uint64_t later;		       /* ns that have passed beside the TSC's */
	void (*on_read)(void);	       /* called when an event's time was read; may be NULL */
	void (*on_open)(uint32_t cpu); /* called before a PT event is opened; may be NULL */
	/* Counters. */
	unsigned opened, disabled_all;
	uint32_t first_disabled; /* CPU of the last single PERF_EVENT_IOC_DISABLE of a PT event */
};
extern struct fake_perf fake_perf;

void fake_perf_reset(void);
/* The number of PT events that run on CPU now. */
unsigned fake_perf_running(uint32_t cpu);
/* Ends the events of CPU, as when the CPU goes offline. */
void fake_perf_offline(uint32_t cpu);
/* Puts the PT event of CPU into the error state, which ENABLE ends unless FOR_EVER. */
void fake_perf_fail(uint32_t cpu, bool for_ever);
/* The number of open events. */
unsigned fake_perf_open_events(void);
