/*
 * capture/perf/source_perf over a perf core in memory: the life of the CPUs' events.
 */
#include "capture/perf/source_perf.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "capture/perf/perf_event.h"
#include "proto/base.h"
#include "tests/unit/capture/perf_host.h"

static void open_host_with_pt_traces_every_cpu(void **state)
{
	struct perf_host *h = *state;

	perf_host_must_open(h);
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
	assert_int_equal(perf_host_tend(h), 0);
}

/* How many pages of [AT, AT + SIZE) are in the page tables
 * (Documentation/admin-guide/mm/pagemap.rst, bit 63). */
static size_t pages_present(const uint8_t *at, uint64_t size)
{
	int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	uint64_t first = (uintptr_t)at / 4096, entry;
	size_t n = 0;

	for (uint64_t i = 0; i < size / 4096; i++) {
		assert_int_equal(pread(fd, &entry, 8, (off_t)((first + i) * 8)), 8);
		n += entry >> 63;
	}
	close(fd);
	return n;
}

/* The first snapshot reads the rings while the CPUs are stopped. */
static void open_has_the_pages_of_all_rings_mapped(void **state)
{
	struct perf_host *h = *state;

	perf_host_must_open(h);
	for (uint32_t i = 0; i < h->source->n_cpus; i++) {
		const struct ring *r = &h->source->cpus[i].pt;

		assert_int_equal(pages_present(r->aux, r->aux_size), r->aux_size / 4096);
	}
}

static void open_older_kernel_names_what_is_missing(void **state)
{
	struct perf_host *h = *state;

	fake_perf.unknown_bits = PERF_ATTR_TEXT_POKE | PERF_ATTR_CGROUP;
	perf_host_must_open(h);
	assert_string_equal(h->source->sideband_missing, "text_poke,cgroup");
	assert_null(strstr(h->source->sideband_attr, "cgroup"));
	assert_null(strstr(h->source->sideband_attr, "build_id"));
	assert_true(h->source->maps_by_inode);
}

static void lost_tells_what_the_kernel_counts(void **state)
{
	struct perf_host *h = *state;
	uint64_t lost = 0;

	perf_host_must_open(h);
	fake_perf.lost = 7;
	assert_int_equal(h->source->ops->lost(h->source, 1, SOURCE_RING_SIDEBAND, &lost), 0);
	assert_int_equal(lost, 7);
	lost = 0;
	assert_int_equal(h->source->ops->lost(h->source, 1, SOURCE_RING_PT, &lost), 0);
	assert_int_equal(lost, 7);
	assert_null(h->source->sideband_missing);
}

static void lost_on_an_older_kernel_is_not_known(void **state)
{
	struct perf_host *h = *state;
	uint64_t lost;

	fake_perf.unknown_bits = PERF_ATTR_LOST;
	perf_host_must_open(h);
	assert_int_equal(h->source->ops->lost(h->source, 1, SOURCE_RING_SIDEBAND, &lost),
			 -EOPNOTSUPP);
	assert_null(h->source->sideband_missing); /* LOST is not a kind of record */
	assert_int_equal(perf_host_state(h, 1), SOURCE_CPU_TRACING);
	assert_int_equal(perf_host_tend(h), 0);
}

static void open_some_cpus_only_traces_those(void **state)
{
	struct perf_host *h = *state;

	h->config.cpus = "1,3";
	h->config.trace = SOURCE_TRACE_BOTH;
	perf_host_must_open(h);
	assert_int_equal(h->source->n_cpus, 2);
	assert_int_equal(h->source->cpus[1].cpu, 3);
	assert_int_equal(h->source->ops->unrecorded(h->source), 2);
	assert_int_equal(fake_perf_running(0), 0);
	assert_int_equal(fake_perf_running(3), 1);
	assert_true(h->source->trace_kernel && h->source->trace_user);
	assert_null(strstr(h->source->pt_attr, "exclude_kernel"));
}

static void open_wrong_cpus_is_refused(void **state)
{
	static const char *const wrong[] = {"4", "0-", "a", "2-1", "0,,1", "9999999"};
	struct perf_host *h = *state;

	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		h->config.cpus = wrong[i];
		assert_int_equal(perf_host_open(h), -EINVAL);
		assert_non_null(strstr(h->why, "CPUs="));
		assert_int_equal(fake_perf_open_events(), 0);
	}
}

static void open_small_budget_makes_rings_smaller_and_says_so(void **state)
{
	struct perf_host *h = *state;

	h->config.aux_size = 8 << 20;
	h->config.ring_budget = 20 << 20;
	perf_host_must_open(h);
	/* 4 x (2 x 2M + 64K + ...) fits into 20M, 4 x 2 x 4M does not. */
	assert_int_equal(h->source->cpus[0].pt.aux_size, 2 << 20);
	assert_string_equal(h->source->sizes_note,
			    "trace ring 2M instead of 8M a CPU: RingBudget=20M for 4 CPUs");
}

static void open_single_entry_caps_the_ring(void **state)
{
	struct perf_host *h = *state;

	tree_write(h->root, PERF_HOST_PMU "caps/topa_multiple_entries", "0\n");
	h->config.aux_size = 8 << 20;
	perf_host_must_open(h);
	assert_int_equal(h->source->cpus[0].pt.aux_size, 4 << 20);
	assert_non_null(strstr(h->source->sizes_note, "one block only"));
}

static void open_no_memory_for_the_ring_takes_a_smaller_one(void **state)
{
	struct perf_host *h = *state;

	fake_perf.largest_aux = 64 << 10;
	perf_host_must_open(h);
	assert_int_equal(h->source->cpus[2].pt.aux_size, 64 << 10);
	assert_int_equal(perf_host_state(h, 2), SOURCE_CPU_TRACING);
	assert_string_equal(h->source->sizes_note,
			    "trace ring 64 KiB instead of 256 KiB on 4 CPUs (0-3): no more memory "
			    "could be allocated or locked");
}

/* The note names all of them, keeps what the budget says, and is over with the rings. */
static void open_rings_of_several_sizes_are_all_named(void **state)
{
	struct perf_host *h = *state;

	h->config.aux_size = 8 << 20;
	h->config.ring_budget = 20 << 20;
	perf_host_must_open(h);
	fake_perf.largest_aux = 1 << 20;
	for (int away = 1; away >= 0; away--)
		assert_int_equal(h->source->ops->yield(h->source, away), 0);
	assert_string_equal(
		h->source->sizes_note,
		"trace ring 2M instead of 8M a CPU: RingBudget=20M for 4 CPUs; "
		"trace ring 1024 KiB instead of 2048 KiB on 4 CPUs (0-3): no more memory "
		"could be allocated or locked");
	assert_int_equal(h->source->ops->yield(h->source, true), 0);
	assert_string_equal(h->source->sizes_note,
			    "trace ring 2M instead of 8M a CPU: RingBudget=20M for 4 CPUs");
}

static void open_locked_memory_for_less_takes_a_smaller_ring(void **state)
{
	struct perf_host *h = *state;

	fake_perf.largest_aux = 128 << 10;
	fake_perf.too_large = -EPERM;
	perf_host_must_open(h);
	assert_int_equal(h->source->cpus[0].pt.aux_size, 128 << 10);
	assert_int_equal(perf_host_state(h, 0), SOURCE_CPU_TRACING);
}

static void open_locked_memory_limit_says_what_to_do(void **state)
{
	struct perf_host *h = *state;

	fake_perf.map_aux = -EPERM;
	perf_host_must_open(h);
	assert_int_equal(perf_host_state(h, 0), SOURCE_CPU_FAILED);
	assert_non_null(strstr(h->source->cpus[0].why, "LimitMEMLOCK"));
	source_free(TAKE_PTR(h->source));
	h->config.degrade = false;
	assert_int_equal(perf_host_open(h), -ENODEV);
	assert_non_null(strstr(h->why, "LimitMEMLOCK"));
}

static void open_no_permission_is_an_error(void **state)
{
	struct perf_host *h = *state;

	fake_perf.open_sideband = -EACCES;
	assert_int_equal(perf_host_open(h), -EACCES);
	assert_non_null(strstr(h->why, "perf_event_paranoid"));
}

static void open_without_pmu_degrades_or_fails(void **state)
{
	struct perf_host *h = *state;

	tree_free(h->root);
	h->root = tree_new();
	tree_write(h->root, "devices/system/cpu/present", "0-1\n");
	tree_write(h->root, "cpuinfo", "vendor_id\t: AuthenticAMD\n");
	perf_host_online(h, "0-1\n");
	perf_host_must_open(h);
	for (uint32_t i = 0; i < 2; i++) {
		assert_int_equal(perf_host_state(h, i), SOURCE_CPU_NO_PT);
		assert_non_null(strstr(h->source->cpus[i].why, "AuthenticAMD"));
		assert_null(h->source->cpus[i].pt.data);
		assert_non_null(h->source->cpus[i].sideband.data);
	}
	assert_false(h->source->clock.valid);
	assert_true(h->source->clock_is_monotonic);
	assert_non_null(strstr(h->source->sideband_attr, "use_clockid=1"));
	assert_null(h->source->pt_attr);
	assert_int_equal(perf_host_tend(h), 0);
	assert_int_equal(h->source->ops->yield(h->source, true), -ENODEV);
	source_free(TAKE_PTR(h->source));
	h->config.degrade = false;
	assert_int_equal(perf_host_open(h), -ENODEV);
	assert_non_null(strstr(h->why, "AuthenticAMD"));
}

static void open_wrong_terms_are_refused_also_when_degrading(void **state)
{
	struct perf_host *h = *state;

	h->config.pt_terms = "mtc_period=1";
	assert_int_equal(perf_host_open(h), -EINVAL);
	assert_non_null(strstr(h->why, "0,3,6,9"));
	h->config.pt_terms = NULL;
	h->config.preset = "custom";
	assert_int_equal(perf_host_open(h), -EINVAL);
	assert_non_null(strstr(h->why, "needs terms"));
	h->config.preset = "best";
	assert_int_equal(perf_host_open(h), -EINVAL);
	assert_non_null(strstr(h->why, "light"));
}

static void tend_cpu_offline_keeps_the_ring_and_online_opens_anew(void **state)
{
	struct perf_host *h = *state;
	const uint8_t *aux;

	perf_host_must_open(h);
	aux = h->source->cpus[2].pt.aux;
	fake_perf_offline(2);
	perf_host_online(h, "0-1,3\n");
	assert_int_equal(perf_host_tend(h), 1);
	assert_int_equal(perf_host_state(h, 2), SOURCE_CPU_OFFLINE);
	assert_ptr_equal(h->source->cpus[2].pt.aux, aux);
	assert_int_equal(h->removed, 0);
	assert_int_equal(perf_host_tend(h), 0);
	assert_int_equal(h->source->ops->unrecorded(h->source), 0);
	perf_host_online(h, "0-4\n");
	assert_int_equal(h->source->ops->unrecorded(h->source), 2);
	perf_host_online(h, "0-3\n");
	assert_int_equal(perf_host_tend(h), 1);
	assert_int_equal(h->source->ops->unrecorded(h->source), 0);
	assert_int_equal(perf_host_state(h, 2), SOURCE_CPU_TRACING);
	assert_int_equal(fake_perf_running(2), 1);
	assert_int_equal(h->removed, 2);
	assert_int_equal(h->added, 10);
	assert_int_equal(fake_perf_open_events(), 8);
}

static void tend_cpu_that_was_away_unseen_is_opened_anew(void **state)
{
	struct perf_host *h = *state;

	perf_host_must_open(h);
	assert_int_equal(perf_host_tend(h), 0);
	fake_perf_offline(1);
	assert_int_equal(perf_host_tend(h), 0);
	assert_int_equal(perf_host_state(h, 1), SOURCE_CPU_TRACING);
	assert_int_equal(fake_perf_running(1), 1);
	assert_int_equal(h->removed, 2);
}

static void tend_cpu_on_its_way_offline_keeps_the_ring(void **state)
{
	struct perf_host *h = *state;
	const uint8_t *aux;

	perf_host_must_open(h);
	assert_int_equal(perf_host_tend(h), 0);
	aux = h->source->cpus[1].pt.aux;
	/* Perf has removed the CPU's events, and the list of online CPUs still has the CPU. */
	fake_perf_offline(1);
	fake_perf.open_pt[1] = fake_perf.open_sideband = -ENODEV;
	assert_int_equal(perf_host_tend(h), 1);
	assert_int_equal(perf_host_state(h, 1), SOURCE_CPU_OFFLINE);
	assert_non_null(strstr(h->source->cpus[1].why, "CPU 1 is offline"));
	assert_ptr_equal(h->source->cpus[1].pt.aux, aux);
	assert_int_equal(h->removed, 0);
	perf_host_online(h, "0,2-3\n");
	assert_int_equal(perf_host_tend(h), 0);
	assert_ptr_equal(h->source->cpus[1].pt.aux, aux);
	fake_perf.open_pt[1] = fake_perf.open_sideband = 0;
	perf_host_online(h, "0-3\n");
	assert_int_equal(perf_host_tend(h), 1);
	assert_int_equal(perf_host_state(h, 1), SOURCE_CPU_TRACING);
}

static void tend_handed_back_cpu_on_its_way_offline_is_offline(void **state)
{
	struct perf_host *h = *state;

	perf_host_must_open(h);
	assert_int_equal(h->source->ops->yield(h->source, true), 0);
	assert_int_equal(perf_host_tend(h), 0);
	fake_perf_offline(3);
	fake_perf.open_sideband = -ENODEV;
	assert_int_equal(perf_host_tend(h), 1);
	assert_int_equal(perf_host_state(h, 3), SOURCE_CPU_OFFLINE);
	fake_perf.open_sideband = 0;
	assert_int_equal(perf_host_tend(h), 1);
	assert_int_equal(perf_host_state(h, 3), SOURCE_CPU_YIELDED);
}

static void tend_cpu_offline_at_the_start_is_opened_when_it_comes(void **state)
{
	struct perf_host *h = *state;

	perf_host_online(h, "0\n");
	perf_host_must_open(h);
	assert_int_equal(perf_host_state(h, 3), SOURCE_CPU_OFFLINE);
	assert_non_null(strstr(h->source->cpus[3].why, "offline"));
	assert_null(h->source->cpus[3].sideband.data);
	assert_int_equal(h->added, 2);
	perf_host_online(h, "0-3\n");
	assert_int_equal(perf_host_tend(h), 3);
	assert_int_equal(perf_host_state(h, 3), SOURCE_CPU_TRACING);
}

static void tend_busy_cpu_is_tried_until_it_is_free(void **state)
{
	struct perf_host *h = *state;

	fake_perf.open_pt[1] = -EBUSY;
	perf_host_must_open(h);
	assert_int_equal(perf_host_state(h, 1), SOURCE_CPU_BUSY);
	assert_non_null(strstr(h->source->cpus[1].why, "another user of Intel PT has CPU 1"));
	assert_null(h->source->cpus[1].pt.data);
	assert_non_null(h->source->cpus[1].sideband.data);
	assert_int_equal(perf_host_tend(h), 0);
	fake_perf.open_pt[1] = 0;
	assert_int_equal(perf_host_tend(h), 1);
	assert_int_equal(perf_host_state(h, 1), SOURCE_CPU_TRACING);
	assert_int_equal(h->removed, 0);
}

static void tend_error_state_is_mended_by_enabling(void **state)
{
	struct perf_host *h = *state;
	unsigned opened;

	perf_host_must_open(h);
	opened = fake_perf.opened;
	fake_perf_fail(0, false);
	assert_int_equal(fake_perf_running(0), 0);
	assert_int_equal(perf_host_tend(h), 0);
	assert_int_equal(fake_perf_running(0), 1);
	assert_int_equal(fake_perf.opened, opened);
}

static void tend_error_state_that_stays_is_told(void **state)
{
	struct perf_host *h = *state;

	perf_host_must_open(h);
	fake_perf_fail(0, true);
	fake_perf.open_pt[0] = -EBUSY;
	assert_int_equal(perf_host_tend(h), 1);
	assert_int_equal(perf_host_state(h, 0), SOURCE_CPU_BUSY);
	fake_perf.open_pt[0] = 0;
	assert_int_equal(perf_host_tend(h), 1);
	assert_int_equal(fake_perf_running(0), 1);
}

static void yield_hands_all_cpus_back_and_takes_them_again(void **state)
{
	struct perf_host *h = *state;

	perf_host_must_open(h);
	assert_int_equal(h->source->ops->yield(h->source, true), 0);
	for (uint32_t i = 0; i < 4; i++) {
		assert_int_equal(fake_perf_running(i), 0);
		assert_int_equal(perf_host_state(h, i), SOURCE_CPU_YIELDED);
		assert_null(h->source->cpus[i].pt.aux);
	}
	assert_int_equal(fake_perf_open_events(), 4);
	assert_int_equal(perf_host_tend(h), 0);
	assert_int_equal(fake_perf_open_events(), 4);
	assert_int_equal(h->source->ops->yield(h->source, false), 0);
	assert_int_equal(fake_perf_running(3), 1);
	assert_int_equal(h->removed, 4);
	assert_int_equal(h->added, 12);
}

static void yield_cpu_that_comes_back_meanwhile_stays_handed_back(void **state)
{
	struct perf_host *h = *state;

	perf_host_must_open(h);
	fake_perf_offline(3);
	perf_host_online(h, "0-2\n");
	perf_host_tend(h);
	assert_int_equal(h->source->ops->yield(h->source, true), 0);
	assert_int_equal(perf_host_state(h, 3), SOURCE_CPU_OFFLINE);
	assert_null(h->source->cpus[3].pt.data);
	perf_host_online(h, "0-3\n");
	assert_int_equal(perf_host_tend(h), 1);
	assert_int_equal(perf_host_state(h, 3), SOURCE_CPU_YIELDED);
	assert_int_equal(fake_perf_running(3), 0);
	assert_int_equal(h->source->ops->yield(h->source, false), 0);
	assert_int_equal(perf_host_state(h, 3), SOURCE_CPU_TRACING);
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
	struct perf_host *h = *state;

	tree_write(h->root, "12/comm", "perf\n");
	tree_symlink(h->root, "12/fd/3", "anon_inode:[perf_event]");
	for (uint32_t i = 0; i < 4; i++)
		fake_perf.open_pt[i] = -EBUSY;
	holder_root = h->root;
	fake_perf.on_open = on_open;
	perf_host_must_open(h);
	fake_perf.on_open = NULL;
	for (uint32_t i = 0; i < 4; i++)
		assert_non_null(strstr(h->source->cpus[i].why, "perf (pid 12)"));
	assert_int_equal(perf_host_tend(h), 0);
	assert_non_null(strstr(h->source->cpus[3].why, "no process that can be seen"));
}

/* On such a processor EBUSY has two meanings; whether LBR can be had tells which. */
static void tend_cpu_busy_because_of_lbr_is_named_as_such(void **state)
{
	static const struct {
		const char *vendor;
		int model, open_lbr;
		bool lbr;
	} cases[] = {
		{"GenuineIntel", 0x55, 0, true},       /* Cascade Lake, LBR in use */
		{"GenuineIntel", 0x4f, 0, true},       /* Broadwell */
		{"GenuineIntel", 0x55, -EBUSY, false}, /* another user of PT */
		{"GenuineIntel", 0x6a, 0, false},      /* Ice Lake has both at once */
		{"AuthenticAMD", 0x55, 0, false},
	};
	struct perf_host *h = *state;
	char text[128];

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		snprintf(text, sizeof(text), "vendor_id\t: %s\ncpu family\t: 6\nmodel\t\t: %d\n",
			 cases[i].vendor, cases[i].model);
		tree_write(h->root, "cpuinfo", text);
		fake_perf.open_lbr = cases[i].open_lbr;
		for (uint32_t cpu = 0; cpu < 4; cpu++)
			fake_perf.open_pt[cpu] = -EBUSY;
		perf_host_must_open(h);
		assert_int_equal(perf_host_state(h, 1), SOURCE_CPU_BUSY);
		assert_int_equal(strstr(h->source->cpus[1].why, "perf record -b") != NULL,
				 cases[i].lbr);
		/* The question leaves nothing open. */
		assert_int_equal(fake_perf_open_events(), 4);
		source_free(h->source);
		h->source = NULL;
	}
}

static void tend_busy_cpu_that_was_away_unseen_gets_its_sideband_back(void **state)
{
	struct perf_host *h = *state;

	fake_perf.open_pt[1] = -EBUSY;
	perf_host_must_open(h);
	fake_perf_offline(1);
	fake_perf.open_pt[1] = 0;
	assert_int_equal(perf_host_tend(h), 1);
	assert_int_equal(perf_host_state(h, 1), SOURCE_CPU_TRACING);
	assert_int_equal(fake_perf_running(1), 1);
	assert_int_equal(h->removed, 1);
	assert_int_equal(h->added, 9);
}

static void yield_cpu_that_was_away_unseen_gets_its_sideband_back(void **state)
{
	struct perf_host *h = *state;

	perf_host_must_open(h);
	assert_int_equal(h->source->ops->yield(h->source, true), 0);
	fake_perf_offline(2);
	assert_int_equal(h->source->ops->yield(h->source, false), 0);
	assert_int_equal(perf_host_state(h, 2), SOURCE_CPU_TRACING);
	assert_int_equal(h->removed, 5);
	assert_int_equal(h->added, 13);
}

static void tend_after_a_sleep_that_stopped_the_tsc_traces_into_new_rings(void **state)
{
	struct perf_host *h = *state;

	perf_host_must_open(h);
	fake_perf.clock_zero = 77 - UINT64_C(3600000000000);
	perf_host_tend(h);
	assert_int_equal(h->source->clock.time_zero, fake_perf.clock_zero);
	for (uint32_t i = 0; i < 4; i++) {
		assert_int_equal(perf_host_state(h, i), SOURCE_CPU_TRACING);
		assert_int_equal(fake_perf_running(i), 1);
	}
	/* Only the PT rings were removed. */
	assert_int_equal(h->removed, 4);
	assert_int_equal(h->added, 12);
	assert_int_equal(perf_host_tend(h), 0);
	assert_int_equal(h->removed, 4);
}

static void tend_after_such_a_sleep_cpus_that_were_away_get_their_sideband_back(void **state)
{
	struct perf_host *h = *state;

	perf_host_must_open(h);
	fake_perf.clock_zero = 77 + UINT64_C(3600000000000);
	for (uint32_t i = 1; i < 4; i++)
		fake_perf_offline(i);
	perf_host_tend(h);
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(fake_perf_running(i), 1);
	assert_int_equal(h->removed, 7);
	assert_int_equal(h->added, 15);
}

static void tend_after_such_a_sleep_a_cpu_that_is_away_has_no_ring(void **state)
{
	struct perf_host *h = *state;

	perf_host_must_open(h);
	fake_perf_offline(2);
	perf_host_online(h, "0-1,3\n");
	assert_int_equal(perf_host_tend(h), 1);
	assert_non_null(h->source->cpus[2].pt.aux);
	fake_perf.clock_zero = 77 + UINT64_C(3600000000000);
	perf_host_tend(h);
	assert_int_equal(perf_host_state(h, 2), SOURCE_CPU_OFFLINE);
	assert_null(h->source->cpus[2].pt.aux);
}

/* Measured in a machine that woke up at once. */
static void tend_after_a_sleep_that_was_very_short_traces_in_new_rings(void **state)
{
	struct perf_host *h = *state;

	perf_host_must_open(h);
	fake_perf.clock_zero = 77 + 779111;
	perf_host_tend(h);
	assert_int_equal(h->removed, 4);
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(fake_perf_running(i), 1);
}

static void tend_clock_of_other_rounding_keeps_the_rings(void **state)
{
	struct perf_host *h = *state;

	perf_host_must_open(h);
	fake_perf.clock_zero = 75;
	assert_int_equal(perf_host_tend(h), 0);
	assert_int_equal(h->source->clock.time_zero, 75);
	assert_int_equal(h->removed, 0);
}

static void open_clock_page_that_seems_to_be_written_for_ever_is_read(void **state)
{
	struct perf_host *h = *state;

	fake_perf.page_lock = 3;
	perf_host_must_open(h);
	assert_true(h->source->clock.valid);
	assert_int_equal(h->source->clock.time_zero, 77);
}

static void disable_all_stops_the_first_then_all_and_enable_restarts(void **state)
{
	struct perf_host *h = *state;
	int ret[4] = {1, 1, 1, 1};

	perf_host_must_open(h);
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

#define TEST(name) cmocka_unit_test_setup_teardown(name, perf_host_set_up, perf_host_tear_down)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(open_host_with_pt_traces_every_cpu),
		TEST(open_has_the_pages_of_all_rings_mapped),
		TEST(open_older_kernel_names_what_is_missing),
		TEST(lost_tells_what_the_kernel_counts),
		TEST(lost_on_an_older_kernel_is_not_known),
		TEST(open_some_cpus_only_traces_those),
		TEST(open_wrong_cpus_is_refused),
		TEST(open_small_budget_makes_rings_smaller_and_says_so),
		TEST(open_single_entry_caps_the_ring),
		TEST(open_no_memory_for_the_ring_takes_a_smaller_one),
		TEST(open_rings_of_several_sizes_are_all_named),
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
		TEST(tend_cpu_busy_because_of_lbr_is_named_as_such),
		TEST(tend_busy_cpu_that_was_away_unseen_gets_its_sideband_back),
		TEST(yield_cpu_that_was_away_unseen_gets_its_sideband_back),
		TEST(tend_after_a_sleep_that_stopped_the_tsc_traces_into_new_rings),
		TEST(tend_after_such_a_sleep_cpus_that_were_away_get_their_sideband_back),
		TEST(tend_after_such_a_sleep_a_cpu_that_is_away_has_no_ring),
		TEST(tend_after_a_sleep_that_was_very_short_traces_in_new_rings),
		TEST(tend_clock_of_other_rounding_keeps_the_rings),
		TEST(open_clock_page_that_seems_to_be_written_for_ever_is_read),
		TEST(disable_all_stops_the_first_then_all_and_enable_restarts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
