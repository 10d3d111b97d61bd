/*
 * A perf core for tests: stands in for capture/perf/perf_sys.c. Events are memory; what a real
 * kernel does of itself (a CPU goes away, somebody else takes PT) a test does here.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define FAKE_PERF_CPUS	  8u
#define FAKE_PERF_PT_TYPE 8u

struct fake_perf {
	/* What opening a PT event, or mapping its AUX ring, on a CPU says; 0: it works. */
	int open_pt[FAKE_PERF_CPUS];
	int map_aux;
	uint64_t largest_aux; /* bytes; 0: any */
	int too_large;	      /* what a larger one is; 0: -ENOMEM */
	int open_sideband;
	uint32_t unknown_bits; /* of attr's flags that this kernel is too old for: PERF_ATTR_* */
	uint64_t lost;	       /* of every sideband event */
	bool time_zero;	       /* cap_user_time_zero */
	uint64_t clock_zero;   /* time_zero, as IOC_RESET writes it */
	uint32_t page_lock;    /* of every page that is mapped */
	void (*on_open)(uint32_t cpu); /* a PT event is to be opened; NULL: nothing */
	/* Counted. */
	unsigned opened, disabled_all;
	uint32_t first_disabled; /* CPU of the last single PERF_EVENT_IOC_DISABLE of a PT event */
};
extern struct fake_perf fake_perf;

void fake_perf_reset(void);
/* PT events that run now on CPU. */
unsigned fake_perf_running(uint32_t cpu);
/* The events of CPU end with it, as when it goes offline. */
void fake_perf_offline(uint32_t cpu);
/* The PT event of CPU falls into the error state; ENABLE mends it unless FOR_EVER. */
void fake_perf_fail(uint32_t cpu, bool for_ever);
/* Time goes on for what runs. */
void fake_perf_tick(void);
/* The fds of events that are open. */
unsigned fake_perf_open_events(void);
