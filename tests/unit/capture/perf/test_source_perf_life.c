/*
 * capture/perf/source_perf over a perf core in memory: the life of the CPUs' events.
 */
#include "capture/perf/source_perf.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "capture/perf/perf_event.h"
#include "proto/base.h"
#include "tests/unit/capture/fake_perf.h"
#include "tests/unit/capture/tree.h"

#define PMU "bus/event_source/devices/intel_pt/"

struct host {
	char *root;
	struct source *source;
	char why[512];
	struct source_config config;
	struct source_watch watch;
	unsigned added, removed;
};

static void on_added(void *userdata, uint32_t index, struct ring *ring, int fd)
{
	struct host *h = userdata;

	assert_true(index < h->source->n_cpus);
	assert_non_null(ring->data);
	assert_true(fd > 0);
	h->added++;
}

static void on_removed(void *userdata, uint32_t index, struct ring *ring)
{
	struct host *h = userdata;

	(void)index;
	/* The ring is still mapped. */
	assert_non_null(ring->data);
	assert_int_equal(ring->data[0], 0);
	h->removed++;
}

static void online(struct host *h, const char *list)
{
	tree_write(h->root, "devices/system/cpu/online", list);
}

static void add_pmu(struct host *h)
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
		snprintf(path, sizeof(path), PMU "%s", files[i][0]);
		tree_write(h->root, path, files[i][1]);
	}
}

static int set_up(void **state)
{
	struct host *h = calloc(1, sizeof(*h));

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
	online(h, "0-3\n");
	add_pmu(h);
	*state = h;
	return 0;
}

static int tear_down(void **state)
{
	struct host *h = *state;

	source_free(h->source);
	assert_int_equal(fake_perf_open_events(), 0);
	tree_free(h->root);
	free(h);
	return 0;
}

static int open_source(struct host *h)
{
	return source_perf_open_at(&h->config, h->root, h->root, &h->source, h->why,
				   sizeof(h->why));
}

static void must_open(struct host *h)
{
	if (open_source(h) < 0)
		fail_msg("%s", h->why);
	source_set_watch(h->source, &h->watch);
}

static enum source_cpu_state state_of(const struct host *h, uint32_t index)
{
	return h->source->cpus[index].state;
}

static size_t tend(struct host *h)
{
	fake_perf_tick();
	return h->source->ops->tend(h->source);
}

static void open_host_with_pt_traces_every_cpu(void **state)
{
	struct host *h = *state;

	must_open(h);
	assert_int_equal(h->source->n_cpus, 4);
	for (uint32_t i = 0; i < 4; i++) {
		const struct source_cpu *cpu = &h->source->cpus[i];

		assert_int_equal(cpu->cpu, i);
		assert_int_equal(cpu->state, SOURCE_CPU_TRACING);
		assert_string_equal(cpu->why, "");
		assert_int_equal(fake_perf_running(i), 1);
		assert_int_equal(cpu->pt.aux_size, 256 << 10);
		assert_int_equal(cpu->sideband.data_size, 64 << 10);
		assert_null(cpu->sideband.aux);
	}
	assert_int_equal(h->added, 8);
	assert_int_equal(fake_perf_open_events(), 8);
	assert_true(h->source->clock.valid);
	assert_int_equal(h->source->clock.time_zero, 77);
	assert_null(h->source->sizes_note);
	assert_non_null(strstr(h->source->pt_attr, "type=8"));
	assert_non_null(strstr(h->source->pt_attr, "pinned=1"));
	assert_non_null(strstr(h->source->pt_attr, "exclude_kernel=1"));
	assert_null(strstr(h->source->pt_attr, "exclude_user"));
	assert_non_null(strstr(h->source->sideband_attr, "text_poke=1"));
	assert_null(h->source->sideband_missing);
	assert_int_equal(tend(h), 0);
}

static void open_older_kernel_names_what_is_missing(void **state)
{
	struct host *h = *state;

	fake_perf.unknown_bits = PERF_ATTR_TEXT_POKE | PERF_ATTR_CGROUP;
	must_open(h);
	assert_string_equal(h->source->sideband_missing, "text_poke,cgroup");
	assert_null(strstr(h->source->sideband_attr, "cgroup"));
	assert_null(strstr(h->source->sideband_attr, "build_id"));
	assert_true(h->source->maps_by_inode);
}

static void lost_tells_what_the_kernel_counts(void **state)
{
	struct host *h = *state;
	uint64_t lost = 0;

	must_open(h);
	fake_perf.lost = 7;
	assert_int_equal(h->source->ops->lost(h->source, 1, &lost), 0);
	assert_int_equal(lost, 7);
	assert_null(h->source->sideband_missing);
}

static void lost_on_an_older_kernel_is_not_known(void **state)
{
	struct host *h = *state;
	uint64_t lost;

	fake_perf.unknown_bits = PERF_ATTR_LOST;
	must_open(h);
	assert_int_equal(h->source->ops->lost(h->source, 1, &lost), -EOPNOTSUPP);
	assert_null(h->source->sideband_missing); /* LOST is not a kind of record */
	assert_int_equal(state_of(h, 1), SOURCE_CPU_TRACING);
	assert_int_equal(tend(h), 0);
}

static void open_some_cpus_only_traces_those(void **state)
{
	struct host *h = *state;

	h->config.cpus = "1,3";
	h->config.trace = SOURCE_TRACE_BOTH;
	must_open(h);
	assert_int_equal(h->source->n_cpus, 2);
	assert_int_equal(h->source->cpus[1].cpu, 3);
	assert_int_equal(fake_perf_running(0), 0);
	assert_int_equal(fake_perf_running(3), 1);
	assert_true(h->source->trace_kernel && h->source->trace_user);
	assert_null(strstr(h->source->pt_attr, "exclude_kernel"));
}

static void open_wrong_cpus_is_refused(void **state)
{
	static const char *const wrong[] = {"4", "0-", "a", "2-1", "0,,1", "9999999"};
	struct host *h = *state;

	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		h->config.cpus = wrong[i];
		assert_int_equal(open_source(h), -EINVAL);
		assert_non_null(strstr(h->why, "CPUs="));
		assert_int_equal(fake_perf_open_events(), 0);
	}
}

static void open_small_budget_makes_rings_smaller_and_says_so(void **state)
{
	struct host *h = *state;

	h->config.aux_size = 8 << 20;
	h->config.ring_budget = 20 << 20;
	must_open(h);
	/* 4 x (2 x 2M + 64K + ...) fits into 20M, 4 x 2 x 4M does not. */
	assert_int_equal(h->source->cpus[0].pt.aux_size, 2 << 20);
	assert_string_equal(h->source->sizes_note,
			    "trace ring 2M instead of 8M a CPU: RingBudget=20M for 4 CPUs");
}

static void open_single_entry_caps_the_ring(void **state)
{
	struct host *h = *state;

	tree_write(h->root, PMU "caps/topa_multiple_entries", "0\n");
	h->config.aux_size = 8 << 20;
	must_open(h);
	assert_int_equal(h->source->cpus[0].pt.aux_size, 4 << 20);
	assert_non_null(strstr(h->source->sizes_note, "one block only"));
}

static void open_no_memory_for_the_ring_takes_a_smaller_one(void **state)
{
	struct host *h = *state;

	fake_perf.largest_aux = 64 << 10;
	must_open(h);
	assert_int_equal(h->source->cpus[2].pt.aux_size, 64 << 10);
	assert_int_equal(state_of(h, 2), SOURCE_CPU_TRACING);
	assert_non_null(strstr(h->source->sizes_note, "64 KiB instead of 256 KiB"));
}

static void open_locked_memory_for_less_takes_a_smaller_ring(void **state)
{
	struct host *h = *state;

	fake_perf.largest_aux = 128 << 10;
	fake_perf.too_large = -EPERM;
	must_open(h);
	assert_int_equal(h->source->cpus[0].pt.aux_size, 128 << 10);
	assert_int_equal(state_of(h, 0), SOURCE_CPU_TRACING);
}

static void open_locked_memory_limit_says_what_to_do(void **state)
{
	struct host *h = *state;

	fake_perf.map_aux = -EPERM;
	must_open(h);
	assert_int_equal(state_of(h, 0), SOURCE_CPU_FAILED);
	assert_non_null(strstr(h->source->cpus[0].why, "LimitMEMLOCK"));
	source_free(TAKE_PTR(h->source));
	h->config.degrade = false;
	assert_int_equal(open_source(h), -ENODEV);
	assert_non_null(strstr(h->why, "LimitMEMLOCK"));
}

static void open_no_permission_is_an_error(void **state)
{
	struct host *h = *state;

	fake_perf.open_sideband = -EACCES;
	assert_int_equal(open_source(h), -EACCES);
	assert_non_null(strstr(h->why, "perf_event_paranoid"));
}

static void open_without_pmu_degrades_or_fails(void **state)
{
	struct host *h = *state;

	tree_free(h->root);
	h->root = tree_new();
	tree_write(h->root, "devices/system/cpu/present", "0-1\n");
	tree_write(h->root, "cpuinfo", "vendor_id\t: AuthenticAMD\n");
	online(h, "0-1\n");
	must_open(h);
	for (uint32_t i = 0; i < 2; i++) {
		assert_int_equal(state_of(h, i), SOURCE_CPU_NO_PT);
		assert_non_null(strstr(h->source->cpus[i].why, "AuthenticAMD"));
		assert_null(h->source->cpus[i].pt.data);
		assert_non_null(h->source->cpus[i].sideband.data);
	}
	assert_false(h->source->clock.valid);
	assert_true(h->source->clock_is_monotonic);
	assert_non_null(strstr(h->source->sideband_attr, "use_clockid=1"));
	assert_null(h->source->pt_attr);
	assert_int_equal(tend(h), 0);
	assert_int_equal(h->source->ops->yield(h->source, true), -ENODEV);
	source_free(TAKE_PTR(h->source));
	h->config.degrade = false;
	assert_int_equal(open_source(h), -ENODEV);
	assert_non_null(strstr(h->why, "AuthenticAMD"));
}

static void open_wrong_terms_are_refused_also_when_degrading(void **state)
{
	struct host *h = *state;

	h->config.pt_terms = "mtc_period=1";
	assert_int_equal(open_source(h), -EINVAL);
	assert_non_null(strstr(h->why, "0,3,6,9"));
	h->config.pt_terms = NULL;
	h->config.preset = "custom";
	assert_int_equal(open_source(h), -EINVAL);
	assert_non_null(strstr(h->why, "needs terms"));
	h->config.preset = "best";
	assert_int_equal(open_source(h), -EINVAL);
	assert_non_null(strstr(h->why, "light"));
}

static void tend_cpu_offline_keeps_the_ring_and_online_opens_anew(void **state)
{
	struct host *h = *state;
	const uint8_t *aux;

	must_open(h);
	aux = h->source->cpus[2].pt.aux;
	fake_perf_offline(2);
	online(h, "0-1,3\n");
	assert_int_equal(tend(h), 1);
	assert_int_equal(state_of(h, 2), SOURCE_CPU_OFFLINE);
	assert_ptr_equal(h->source->cpus[2].pt.aux, aux);
	assert_int_equal(h->removed, 0);
	assert_int_equal(tend(h), 0);
	online(h, "0-3\n");
	assert_int_equal(tend(h), 1);
	assert_int_equal(state_of(h, 2), SOURCE_CPU_TRACING);
	assert_int_equal(fake_perf_running(2), 1);
	assert_int_equal(h->removed, 2);
	assert_int_equal(h->added, 10);
	assert_int_equal(fake_perf_open_events(), 8);
}

static void tend_cpu_that_was_away_unseen_is_opened_anew(void **state)
{
	struct host *h = *state;

	must_open(h);
	assert_int_equal(tend(h), 0);
	fake_perf_offline(1);
	assert_int_equal(tend(h), 0);
	assert_int_equal(state_of(h, 1), SOURCE_CPU_TRACING);
	assert_int_equal(fake_perf_running(1), 1);
	assert_int_equal(h->removed, 2);
}

static void tend_cpu_on_its_way_offline_keeps_the_ring(void **state)
{
	struct host *h = *state;
	const uint8_t *aux;

	must_open(h);
	assert_int_equal(tend(h), 0);
	aux = h->source->cpus[1].pt.aux;
	/* Perf has removed the CPU's events, and the list of online CPUs still has the CPU. */
	fake_perf_offline(1);
	fake_perf.open_pt[1] = fake_perf.open_sideband = -ENODEV;
	assert_int_equal(tend(h), 1);
	assert_int_equal(state_of(h, 1), SOURCE_CPU_OFFLINE);
	assert_non_null(strstr(h->source->cpus[1].why, "CPU 1 is offline"));
	assert_ptr_equal(h->source->cpus[1].pt.aux, aux);
	assert_int_equal(h->removed, 0);
	online(h, "0,2-3\n");
	assert_int_equal(tend(h), 0);
	assert_ptr_equal(h->source->cpus[1].pt.aux, aux);
	fake_perf.open_pt[1] = fake_perf.open_sideband = 0;
	online(h, "0-3\n");
	assert_int_equal(tend(h), 1);
	assert_int_equal(state_of(h, 1), SOURCE_CPU_TRACING);
}

static void tend_handed_back_cpu_on_its_way_offline_is_offline(void **state)
{
	struct host *h = *state;

	must_open(h);
	assert_int_equal(h->source->ops->yield(h->source, true), 0);
	assert_int_equal(tend(h), 0);
	fake_perf_offline(3);
	fake_perf.open_sideband = -ENODEV;
	assert_int_equal(tend(h), 1);
	assert_int_equal(state_of(h, 3), SOURCE_CPU_OFFLINE);
	fake_perf.open_sideband = 0;
	assert_int_equal(tend(h), 1);
	assert_int_equal(state_of(h, 3), SOURCE_CPU_YIELDED);
}

static void tend_cpu_offline_at_the_start_is_opened_when_it_comes(void **state)
{
	struct host *h = *state;

	online(h, "0\n");
	must_open(h);
	assert_int_equal(state_of(h, 3), SOURCE_CPU_OFFLINE);
	assert_non_null(strstr(h->source->cpus[3].why, "offline"));
	assert_null(h->source->cpus[3].sideband.data);
	assert_int_equal(h->added, 2);
	online(h, "0-3\n");
	assert_int_equal(tend(h), 3);
	assert_int_equal(state_of(h, 3), SOURCE_CPU_TRACING);
}

static void tend_busy_cpu_is_tried_until_it_is_free(void **state)
{
	struct host *h = *state;

	fake_perf.open_pt[1] = -EBUSY;
	must_open(h);
	assert_int_equal(state_of(h, 1), SOURCE_CPU_BUSY);
	assert_non_null(strstr(h->source->cpus[1].why, "another user of Intel PT has CPU 1"));
	assert_null(h->source->cpus[1].pt.data);
	assert_non_null(h->source->cpus[1].sideband.data);
	assert_int_equal(tend(h), 0);
	fake_perf.open_pt[1] = 0;
	assert_int_equal(tend(h), 1);
	assert_int_equal(state_of(h, 1), SOURCE_CPU_TRACING);
	assert_int_equal(h->removed, 0);
}

static void tend_error_state_is_mended_by_enabling(void **state)
{
	struct host *h = *state;
	unsigned opened;

	must_open(h);
	opened = fake_perf.opened;
	fake_perf_fail(0, false);
	assert_int_equal(fake_perf_running(0), 0);
	assert_int_equal(tend(h), 0);
	assert_int_equal(fake_perf_running(0), 1);
	assert_int_equal(fake_perf.opened, opened);
}

static void tend_error_state_that_stays_is_told(void **state)
{
	struct host *h = *state;

	must_open(h);
	fake_perf_fail(0, true);
	fake_perf.open_pt[0] = -EBUSY;
	assert_int_equal(tend(h), 1);
	assert_int_equal(state_of(h, 0), SOURCE_CPU_BUSY);
	fake_perf.open_pt[0] = 0;
	assert_int_equal(tend(h), 1);
	assert_int_equal(fake_perf_running(0), 1);
}

static void yield_hands_all_cpus_back_and_takes_them_again(void **state)
{
	struct host *h = *state;

	must_open(h);
	assert_int_equal(h->source->ops->yield(h->source, true), 0);
	for (uint32_t i = 0; i < 4; i++) {
		assert_int_equal(fake_perf_running(i), 0);
		assert_int_equal(state_of(h, i), SOURCE_CPU_YIELDED);
		assert_null(h->source->cpus[i].pt.aux);
	}
	assert_int_equal(fake_perf_open_events(), 4);
	assert_int_equal(tend(h), 0);
	assert_int_equal(fake_perf_open_events(), 4);
	assert_int_equal(h->source->ops->yield(h->source, false), 0);
	assert_int_equal(fake_perf_running(3), 1);
	assert_int_equal(h->removed, 4);
	assert_int_equal(h->added, 12);
}

static void yield_cpu_that_comes_back_meanwhile_stays_handed_back(void **state)
{
	struct host *h = *state;

	must_open(h);
	fake_perf_offline(3);
	online(h, "0-2\n");
	tend(h);
	assert_int_equal(h->source->ops->yield(h->source, true), 0);
	assert_int_equal(state_of(h, 3), SOURCE_CPU_OFFLINE);
	assert_null(h->source->cpus[3].pt.data);
	online(h, "0-3\n");
	assert_int_equal(tend(h), 1);
	assert_int_equal(state_of(h, 3), SOURCE_CPU_YIELDED);
	assert_int_equal(fake_perf_running(3), 0);
	assert_int_equal(h->source->ops->yield(h->source, false), 0);
	assert_int_equal(state_of(h, 3), SOURCE_CPU_TRACING);
}

static char *holder_root;

/* The holder has exited when CPU 2 is tried. */
static void on_open(uint32_t cpu)
{
	char from[512], to[512];

	snprintf(from, sizeof(from), "%s/12", holder_root);
	snprintf(to, sizeof(to), "%s/gone", holder_root);
	if (cpu == 2)
		assert_int_equal(rename(from, to), 0);
}

static void tend_busy_cpus_are_explained_by_one_look_at_all_processes(void **state)
{
	struct host *h = *state;

	tree_write(h->root, "12/comm", "perf\n");
	tree_symlink(h->root, "12/fd/3", "anon_inode:[perf_event]");
	for (uint32_t i = 0; i < 4; i++)
		fake_perf.open_pt[i] = -EBUSY;
	holder_root = h->root;
	fake_perf.on_open = on_open;
	must_open(h);
	fake_perf.on_open = NULL;
	for (uint32_t i = 0; i < 4; i++)
		assert_non_null(strstr(h->source->cpus[i].why, "perf (pid 12)"));
	assert_int_equal(tend(h), 0);
	assert_non_null(strstr(h->source->cpus[3].why, "no process that can be seen"));
}

static void tend_busy_cpu_that_was_away_unseen_gets_its_sideband_back(void **state)
{
	struct host *h = *state;

	fake_perf.open_pt[1] = -EBUSY;
	must_open(h);
	fake_perf_tick();
	fake_perf_offline(1);
	fake_perf.open_pt[1] = 0;
	assert_int_equal(tend(h), 1);
	assert_int_equal(state_of(h, 1), SOURCE_CPU_TRACING);
	assert_int_equal(fake_perf_running(1), 1);
	assert_int_equal(h->removed, 1);
	assert_int_equal(h->added, 9);
}

static void yield_cpu_that_was_away_unseen_gets_its_sideband_back(void **state)
{
	struct host *h = *state;

	must_open(h);
	assert_int_equal(h->source->ops->yield(h->source, true), 0);
	fake_perf_tick();
	fake_perf_offline(2);
	assert_int_equal(h->source->ops->yield(h->source, false), 0);
	assert_int_equal(state_of(h, 2), SOURCE_CPU_TRACING);
	assert_int_equal(h->removed, 5);
	assert_int_equal(h->added, 13);
}

static void tend_after_a_sleep_that_stopped_the_tsc_traces_into_new_rings(void **state)
{
	struct host *h = *state;

	must_open(h);
	fake_perf.clock_zero = 77 - UINT64_C(3600000000000);
	tend(h);
	assert_int_equal(h->source->clock.time_zero, fake_perf.clock_zero);
	for (uint32_t i = 0; i < 4; i++) {
		assert_int_equal(state_of(h, i), SOURCE_CPU_TRACING);
		assert_int_equal(fake_perf_running(i), 1);
	}
	/* Only the PT rings were removed. */
	assert_int_equal(h->removed, 4);
	assert_int_equal(h->added, 12);
	assert_int_equal(tend(h), 0);
	assert_int_equal(h->removed, 4);
}

static void tend_after_such_a_sleep_cpus_that_were_away_get_their_sideband_back(void **state)
{
	struct host *h = *state;

	must_open(h);
	fake_perf_tick();
	fake_perf.clock_zero = 77 + UINT64_C(3600000000000);
	for (uint32_t i = 1; i < 4; i++)
		fake_perf_offline(i);
	tend(h);
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(fake_perf_running(i), 1);
	assert_int_equal(h->removed, 7);
	assert_int_equal(h->added, 15);
}

static void tend_after_such_a_sleep_a_cpu_that_is_away_has_no_ring(void **state)
{
	struct host *h = *state;

	must_open(h);
	fake_perf_offline(2);
	online(h, "0-1,3\n");
	assert_int_equal(tend(h), 1);
	assert_non_null(h->source->cpus[2].pt.aux);
	fake_perf.clock_zero = 77 + UINT64_C(3600000000000);
	tend(h);
	assert_int_equal(state_of(h, 2), SOURCE_CPU_OFFLINE);
	assert_null(h->source->cpus[2].pt.aux);
}

static void tend_clock_of_other_rounding_keeps_the_rings(void **state)
{
	struct host *h = *state;

	must_open(h);
	fake_perf.clock_zero = 75;
	assert_int_equal(tend(h), 0);
	assert_int_equal(h->source->clock.time_zero, 75);
	assert_int_equal(h->removed, 0);
}

static void open_clock_page_that_seems_to_be_written_for_ever_is_read(void **state)
{
	struct host *h = *state;

	fake_perf.page_lock = 3;
	must_open(h);
	assert_true(h->source->clock.valid);
	assert_int_equal(h->source->clock.time_zero, 77);
}

static void disable_all_stops_the_first_then_all_and_enable_restarts(void **state)
{
	struct host *h = *state;
	int ret[4] = {1, 1, 1, 1};

	must_open(h);
	h->source->ops->disable_all(h->source, 2, ret);
	assert_int_equal(fake_perf.first_disabled, 2);
	assert_int_equal(fake_perf.disabled_all, 1);
	for (uint32_t i = 0; i < 4; i++) {
		assert_int_equal(ret[i], 0);
		assert_int_equal(fake_perf_running(i), 0);
		assert_int_equal(h->source->ops->enable(h->source, i), 0);
		assert_int_equal(fake_perf_running(i), 1);
	}
	h->source->ops->disable_all(h->source, UINT32_MAX, ret);
	assert_int_equal(fake_perf_running(0), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(open_host_with_pt_traces_every_cpu),
		TEST(open_older_kernel_names_what_is_missing),
		TEST(lost_tells_what_the_kernel_counts),
		TEST(lost_on_an_older_kernel_is_not_known),
		TEST(open_some_cpus_only_traces_those),
		TEST(open_wrong_cpus_is_refused),
		TEST(open_small_budget_makes_rings_smaller_and_says_so),
		TEST(open_single_entry_caps_the_ring),
		TEST(open_no_memory_for_the_ring_takes_a_smaller_one),
		TEST(open_locked_memory_for_less_takes_a_smaller_ring),
		TEST(open_locked_memory_limit_says_what_to_do),
		TEST(open_no_permission_is_an_error),
		TEST(open_without_pmu_degrades_or_fails),
		TEST(open_wrong_terms_are_refused_also_when_degrading),
		TEST(tend_cpu_offline_keeps_the_ring_and_online_opens_anew),
		TEST(tend_cpu_that_was_away_unseen_is_opened_anew),
		TEST(tend_cpu_on_its_way_offline_keeps_the_ring),
		TEST(tend_handed_back_cpu_on_its_way_offline_is_offline),
		TEST(tend_cpu_offline_at_the_start_is_opened_when_it_comes),
		TEST(tend_busy_cpu_is_tried_until_it_is_free),
		TEST(tend_error_state_is_mended_by_enabling),
		TEST(tend_error_state_that_stays_is_told),
		TEST(yield_hands_all_cpus_back_and_takes_them_again),
		TEST(yield_cpu_that_comes_back_meanwhile_stays_handed_back),
		TEST(tend_busy_cpus_are_explained_by_one_look_at_all_processes),
		TEST(tend_busy_cpu_that_was_away_unseen_gets_its_sideband_back),
		TEST(yield_cpu_that_was_away_unseen_gets_its_sideband_back),
		TEST(tend_after_a_sleep_that_stopped_the_tsc_traces_into_new_rings),
		TEST(tend_after_such_a_sleep_cpus_that_were_away_get_their_sideband_back),
		TEST(tend_after_such_a_sleep_a_cpu_that_is_away_has_no_ring),
		TEST(tend_clock_of_other_rounding_keeps_the_rings),
		TEST(open_clock_page_that_seems_to_be_written_for_ever_is_read),
		TEST(disable_all_stops_the_first_then_all_and_enable_restarts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
