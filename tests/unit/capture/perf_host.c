/*
 * The host of the tests of capture/perf/source_perf.
 */
#include "tests/unit/capture/perf_host.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "proto/base.h"

static void on_added(void *userdata, uint32_t index, struct ring *ring, int fd)
{
	struct perf_host *h = userdata;

	assert_true(index < h->source->n_cpus);
	assert_non_null(ring->data);
	assert_true(fd > 0);
	h->added++;
}

static void on_removed(void *userdata, uint32_t index, struct ring *ring)
{
	struct perf_host *h = userdata;

	(void)index;
	/* The ring is still mapped. */
	assert_non_null(ring->data);
	assert_int_equal(ring->data[0], 0);
	h->removed++;
}

void perf_host_online(struct perf_host *h, const char *list)
{
	tree_write(h->root, "devices/system/cpu/online", list);
}

static void add_pmu(struct perf_host *h)
{
	static const char *const files[][2] = {
		{"type", "8\n"},
		{"format/pt", "config:0\n"},
		{"format/cyc", "config:1\n"},
		{"format/mtc", "config:9\n"},
		{"format/tsc", "config:10\n"},
		{"format/noretcomp", "config:11\n"},
		{"format/branch", "config:13\n"},
		{"format/mtc_period", "config:14-17\n"},
		{"format/cyc_thresh", "config:19-22\n"},
		{"format/psb_period", "config:24-27\n"},
		{"caps/mtc", "1\n"},
		{"caps/psb_cyc", "1\n"},
		{"caps/topa_output", "1\n"},
		{"caps/topa_multiple_entries", "1\n"},
		{"caps/mtc_periods", "249\n"},
		{"caps/cycle_thresholds", "3fff\n"},
		{"caps/psb_periods", "3f\n"},
		{"max_nonturbo_ratio", "27\n"},
		{"tsc_art_ratio", "216:2\n"},
	};
	char path[256];

	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		snprintf(path, sizeof(path), PERF_HOST_PMU "%s", files[i][0]);
		tree_write(h->root, path, files[i][1]);
	}
}

int perf_host_set_up(void **state)
{
	struct perf_host *h = calloc(1, sizeof(*h));

	fake_perf_reset();
	h->root = tree_new();
	h->config = (struct source_config){.data_size = 64 << 10,
					   .aux_size = 256 << 10,
					   .ring_budget = 64 << 20,
					   .degrade = true};
	h->watch = (struct source_watch){h, on_added, on_removed};
	tree_write(h->root, "devices/system/cpu/present", "0-3\n");
	tree_write(h->root, "meminfo", "MemTotal:       16000000 kB\n");
	tree_write(h->root, "cpuinfo", "vendor_id\t: AuthenticAMD\n");
	perf_host_online(h, "0-3\n");
	add_pmu(h);
	*state = h;
	return 0;
}

int perf_host_tear_down(void **state)
{
	struct perf_host *h = *state;

	source_free(h->source);
	assert_int_equal(fake_perf_open_events(), 0);
	tree_free(h->root);
	free(h);
	return 0;
}

int perf_host_open(struct perf_host *h)
{
	return source_perf_open_at(&h->config, h->root, h->root, &h->source, h->why,
				   sizeof(h->why));
}

void perf_host_must_open(struct perf_host *h)
{
	if (perf_host_open(h) < 0)
		fail_msg("%s", h->why);
	source_set_watch(h->source, &h->watch);
}

enum source_cpu_state perf_host_state(const struct perf_host *h, uint32_t index)
{
	return h->source->cpus[index].state;
}

size_t perf_host_tend(struct perf_host *h)
{
	return h->source->ops->tend(h->source);
}
