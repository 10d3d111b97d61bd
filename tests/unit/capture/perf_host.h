/*
 * A host with four CPUs and an intel_pt PMU over the perf core of fake_perf.h, and the source that
 * is opened on it.
 */
#pragma once

#include "capture/perf/source_perf.h"
#include "tests/unit/capture/fake_perf.h"
#include "tests/unit/capture/tree.h"

#define PERF_HOST_PMU "bus/event_source/devices/intel_pt/"

struct perf_host {
	char *root;
	struct source *source;
	char why[512];
	struct source_config config;
	struct source_watch watch;
	unsigned added, removed;
};

/* For cmocka; the state is the host. Tearing down expects that no event is left open. */
int perf_host_set_up(void **state);
int perf_host_tear_down(void **state);
/* Writes the kernel's list of online CPUs. */
void perf_host_online(struct perf_host *h, const char *list);
/* Opens the source; must: fails the test if that fails, and counts rings in added and removed. */
int perf_host_open(struct perf_host *h);
void perf_host_must_open(struct perf_host *h);
enum source_cpu_state perf_host_state(const struct perf_host *h, uint32_t index);
size_t perf_host_tend(struct perf_host *h);
