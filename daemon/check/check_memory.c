/*
 * Whether the rings get what they need: locked memory, the host's memory, descriptors.
 */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "capture/perf/perf_event.h"
#include "capture/proc/budget.h"
#include "capture/proc/number.h"
#include "daemon/check/check_private.h"

#define FIX_MEMLOCK "LimitMEMLOCK=infinity in the unit, or ulimit -l unlimited"

/* Reads the soft or the hard limit NAME from /proc/self/limits, which has lines like
 * "Max locked memory         8388608              8388608              bytes".
 * UINT64_MAX: no limit. */
static bool own_limit(const struct check *c, const char *name, bool hard, uint64_t *ret)
{
	char text[4096];
	const char *at;

	check_read(c->paths->proc, "self/limits", text, sizeof(text));
	at = strstr(text, name);
	if (!at)
		return false;
	at += strlen(name);
	at += strspn(at, " ");
	if (hard) {
		at += strcspn(at, " \n");
		at += strspn(at, " ");
	}
	*ret = UINT64_MAX;
	return strncmp(at, "unlimited", 9) == 0 || number_parse(at, 10, UINT64_MAX, " ", NULL, ret);
}

/* The bytes of the rings of N CPUs, without the copy area, which is not locked. */
static uint64_t ring_bytes(const struct budget_sizes *sizes, size_t n)
{
	return budget_need(sizes, n) - n * sizes->aux;
}

/* The largest trace ring that LIMIT holds for each of N CPUs, 0: none. */
static uint64_t fitting_ring(struct budget_sizes sizes, size_t n, uint64_t limit)
{
	for (sizes.aux = 1u << 30; sizes.aux >= BUDGET_PAGE; sizes.aux /= 2)
		if (ring_bytes(&sizes, n) <= limit)
			return sizes.aux;
	return 0;
}

/* kernel/events/core.c, perf_mmap: each user may lock perf_event_mlock_kb for each CPU of the host;
 * more counts against RLIMIT_MEMLOCK, unless the process has CAP_IPC_LOCK. */
static void check_memlock(struct check *c, const struct budget_sizes *sizes, size_t n)
{
	uint64_t need = ring_bytes(sizes, n), limit = UINT64_MAX, all, fits, least;
	bool some;
	int64_t kb = 516;
	char fix[160];

	check_number(c->paths->proc, "sys/kernel/perf_event_mlock_kb", &kb);
	own_limit(c, "Max locked memory", false, &limit);
	if (check_capable(c, CHECK_IPC_LOCK) || c->paranoid < 0 ||
	    __builtin_add_overflow(limit, (uint64_t)MAX_OF(kb, 0) * 1024 * c->n_online, &all) ||
	    all >= need) {
		check_say(c, FINDING_OK, "memlock", "", "%s of rings can be locked in memory",
			  check_bytes(need).text);
		return;
	}
	fits = fitting_ring(*sizes, n, all);
	snprintf(fix, sizeof(fix), FIX_MEMLOCK);
	if (fits)
		snprintf(fix, sizeof(fix), FIX_MEMLOCK "; or rings that fit: --aux-size=%lluK",
			 (unsigned long long)(fits >> 10));
	/* source_perf.c opens the sideband of all CPUs first, then trace rings as large as fit. */
	least = n * (sizes->data + BUDGET_PAGE) +
		MIN_OF(sizes->aux, (uint64_t)PERF_EVENT_LEAST_AUX) + BUDGET_PT_DATA + BUDGET_PAGE;
	some = all >= least;
	check_say(
		c, some ? FINDING_WARNING : FINDING_FAILURE, "memlock", fix,
		"the rings need %s of locked memory; %s are allowed without CAP_IPC_LOCK "
		"(RLIMIT_MEMLOCK %s, and kernel.perf_event_mlock_kb %lld for each of %zu CPUs): %s",
		check_bytes(need).text, check_bytes(all).text, check_bytes(limit).text,
		(long long)kb, c->n_online,
		some ? "trace rings will be smaller, or some CPUs not traced"
		     : "no CPU can be traced");
}

/* Sets *RET to the sizes that the source will take. */
static void check_budget(struct check *c, const struct budget_sizes *sizes, size_t n,
			 struct budget_sizes *ret)
{
	char path[PATH_MAX], text[4096], value[32], note[256];
	uint64_t budget = c->config->ring_budget, need = budget_need(sizes, n), total = 0;

	snprintf(path, sizeof(path), "%s/meminfo", c->paths->proc);
	if (!budget)
		budget = budget_default(path);
	check_read(c->paths->proc, "meminfo", text, sizeof(text));
	if (check_value(text, "MemTotal", value, sizeof(value)))
		number_parse(value, 10, UINT64_MAX >> 10, " ", NULL, &total);
	budget_fit(sizes, n, budget, c->have_pmu && !c->pmu.topa_multiple_entries, ret, note,
		   sizeof(note));
	if (*note)
		check_say(c, FINDING_WARNING, "budget",
			  "RingBudget= in ptsnapd.conf, or smaller rings: --aux-size=",
			  "%s (%s wanted, of %s of memory)", note, check_bytes(need).text,
			  check_bytes(total << 10).text);
	else if (total && need > (total << 10) / 4)
		check_say(c, FINDING_WARNING, "budget", "smaller rings: --aux-size=, RingBudget=",
			  "rings and the area for copies take %s of %s of memory",
			  check_bytes(need).text, check_bytes(total << 10).text);
	else
		check_say(c, FINDING_OK, "budget", "",
			  "rings and the area for copies take %s on %zu CPUs",
			  check_bytes(need).text, n);
}

void check_memory(struct check *c)
{
	const struct budget_sizes sizes = {c->have_pmu ? c->config->aux_size : BUDGET_MIN_RING,
					   c->config->data_size};
	struct budget_sizes fitting;
	size_t n = MAX_OF(cpulist_count(&c->online), (size_t)1);
	uint64_t need = config_other_fds(c->config, n), limit;

	if (c->emulated)
		return;
	check_budget(c, &sizes, n, &fitting);
	check_memlock(c, &fitting, n);
	/* With fewer descriptors not even clients can be served; with few more, mapped files are
	 * missing in reports. The recorder raises the soft limit by itself. */
	if (own_limit(c, "Max open files", true, &limit) && limit < need)
		check_say(c, FINDING_WARNING, "files", "LimitNOFILE=65536 in the unit",
			  "%llu open files are allowed; %zu CPUs need %llu",
			  (unsigned long long)limit, n, (unsigned long long)need);
}
