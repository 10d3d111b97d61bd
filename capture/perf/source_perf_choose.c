/*
 * Decides what the intel_pt source opens, from the configuration and from what this host has.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "capture/perf/cpuid.h"
#include "capture/perf/source_perf.h"
#include "capture/perf/source_perf_private.h"
#include "capture/proc/procfile.h"
#include "proto/base.h"

#define PMU_DIRECTORY "bus/event_source/devices/intel_pt"
#define CPUS_PRESENT  "devices/system/cpu/present"
#define CPUS_ONLINE   "devices/system/cpu/online"

/* The first CPU's part takes about 2 KiB; the flags are its longest line. */
#define CPUINFO_MAX	(16 * 1024)
#define ADVICE		"; without it: --source=emulated -- COMMAND"
#define WATERMARK_SHARE 4u
/* How often to try to read the clock's page; and by how many ns its zero differs at least if the
 * kernel set it anew, and did not only round in another way. Rounding makes one ns
 * (arch/x86/kernel/tsc.c, __set_cyc2ns_scale); a machine that wakes up at once has slept for less
 * than a millisecond. */
#define CLOCK_TRIES  64
#define CLOCK_JUMPED 10000

_Static_assert(CPULIST_MAX <= MANIFEST_MAX_CPUS, "a bundle holds all CPUs");

/* Reads a file of sysfs that holds a list of CPUs. */
static int read_cpus(const struct source_perf *s, const char *name, struct cpulist *ret)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", s->sys, name);
	return cpulist_read(path, ret);
}

static int choose_terms(struct source_perf *s, const struct source_config *config, char *why,
			size_t why_size)
{
	const struct pmu *pmu = &s->pmu;
	uint64_t c = 0;
	int r = preset_config(pmu, config->preset, config->pt_terms, &c, &s->base.preset, why,
			      why_size);

	if (r < 0)
		return r;
	pmu_format_terms(pmu, c, s->terms, sizeof(s->terms));
	s->base.pt_terms = s->terms;
	s->base.pt_config = c;
	s->base.mtc_period = pmu_term_value(pmu, c, "mtc") != 0
				     ? (uint32_t)pmu_term_value(pmu, c, "mtc_period")
				     : UINT32_MAX;
	s->base.noretcomp = pmu_term_value(pmu, c, "noretcomp") != 0;
	s->base.max_nonturbo_ratio = pmu->max_nonturbo_ratio;
	s->base.tsc_art_num = pmu->tsc_art_num;
	s->base.tsc_art_den = pmu->tsc_art_den;
	perf_attr_pt(pmu->type, c, config->trace, &s->pt_attr);
	perf_attr_format(&s->pt_attr, s->pt_text, sizeof(s->pt_text));
	s->base.pt_attr = s->pt_text;
	return 0;
}

/* --- The PMU, or why there is none --- */

/* The value of KEY ("flags\t\t: a b c") for the first CPU, at most SIZE - 1 bytes; "" if absent. */
static void find_value(const char *text, const char *key, char *ret, size_t size)
{
	size_t length = strlen(key);

	ret[0] = '\0';
	for (const char *line = text; *line != '\0';) {
		size_t end = strcspn(line, "\n"), name = strcspn(line, "\t:\n");

		if (end == 0)
			return;
		if (name == length && memcmp(line, key, length) == 0) {
			const char *value = line + name + strspn(line + name, "\t: ");

			snprintf(ret, size, "%.*s", (int)strcspn(value, "\n"), value);
			return;
		}
		line += end + (line[end] == '\n');
	}
}

static bool has_word(const char *text, const char *word)
{
	size_t length = strlen(word);

	while (*text != '\0') {
		size_t end = strcspn(text, " ");

		if (end == length && memcmp(text, word, length) == 0)
			return true;
		text += end + (text[end] == ' ');
	}
	return false;
}

/* The driver is part of every kernel with CONFIG_PERF_EVENTS and CONFIG_CPU_SUP_INTEL. It registers
 * no PMU if tracing is already on or ToPA is missing (arch/x86/events/intel/pt.c, pt_init). */
static void explain_cpu(const char *cpuinfo, char *why, size_t why_size)
{
	char vendor[64], model[64], flags[8192];

	find_value(cpuinfo, "vendor_id", vendor, sizeof(vendor));
	find_value(cpuinfo, "model name", model, sizeof(model));
	find_value(cpuinfo, "flags", flags, sizeof(flags));
	if (strcmp(vendor, "GenuineIntel") != 0)
		snprintf(why, why_size,
			 "no Intel PT: this CPU's vendor is %s; only Intel CPUs have it%s",
			 vendor[0] ? vendor : "unknown", ADVICE);
	else if (has_word(flags, "intel_pt"))
		snprintf(
			why, why_size,
			"this CPU has Intel PT but the kernel offers no intel_pt PMU: its firmware "
			"or another tracer keeps PT switched on (see 'dmesg | grep -w PT'), or "
			"the kernel lacks CONFIG_PERF_EVENTS or CONFIG_CPU_SUP_INTEL%s",
			ADVICE);
	else if (has_word(flags, "hypervisor"))
		snprintf(
			why, why_size,
			"no Intel PT: this is a virtual machine that hides it; KVM shows it with "
			"kvm_intel.pt_mode=1 on the host and the intel-pt CPU feature in the guest%s",
			ADVICE);
	else
		snprintf(
			why, why_size,
			"no Intel PT: this CPU (%s) does not have it, or its firmware has switched "
			"it off%s",
			model[0] ? model : "unknown model", ADVICE);
}

int source_perf_explain(const char *cpuinfo, const char *pmu, char *why, size_t why_size)
{
	char text[CPUINFO_MAX];
	struct pmu offer;
	ssize_t n;
	int r = pmu_read(pmu, &offer);

	if (why_size > 0)
		why[0] = '\0';
	if (r == 0)
		return 0;
	if (r != -ENOENT) {
		snprintf(why, why_size, "the intel_pt PMU in %s cannot be read: %s%s", pmu,
			 r == -EBADMSG ? "its files are not understood" : strerror(-r), ADVICE);
		return r;
	}
	n = procfile_read(AT_FDCWD, cpuinfo, text, sizeof(text));
	if (n < 0) {
		snprintf(why, why_size,
			 "no intel_pt PMU, and %s, which would say why, cannot be read: %s%s",
			 cpuinfo, strerror(n == -ESRCH ? ENOENT : (int)-n), ADVICE);
		return -ENODEV;
	}
	explain_cpu(text, why, why_size);
	return -ENODEV;
}

static bool lbr_excludes_pt(const char *cpuinfo)
{
	char text[CPUINFO_MAX], value[64];
	uint64_t family, model;

	if (procfile_read(AT_FDCWD, cpuinfo, text, sizeof(text)) < 0)
		return false;
	find_value(text, "vendor_id", value, sizeof(value));
	if (strcmp(value, "GenuineIntel") != 0)
		return false;
	find_value(text, "cpu family", value, sizeof(value));
	if (!number_parse(value, 10, UINT32_MAX, "", NULL, &family))
		return false;
	find_value(text, "model", value, sizeof(value));
	return number_parse(value, 10, UINT32_MAX, "", NULL, &model) &&
	       cpuid_lbr_excludes_pt(family, model);
}

static int find_pmu(struct source_perf *s, const struct source_config *config,
		    const struct cpulist *online, char *why, size_t why_size)
{
	char directory[PATH_MAX], cpuinfo[PATH_MAX];
	struct clock_params unused;
	uint64_t hz = 0;
	int r;

	snprintf(directory, sizeof(directory), "%s/%s", s->sys, PMU_DIRECTORY);
	snprintf(cpuinfo, sizeof(cpuinfo), "%s/cpuinfo", s->proc);
	r = pmu_read(directory, &s->pmu);
	s->have_pmu = r == 0;
	if (r == 0) {
		/* Adds what the kernel does not say about its PMU, as far as it can be found out.
		 */
		if (clock_calibrate(&unused, &hz) < 0)
			hz = 0;
		cpuid_complete_pmu_of(&cpuid_host, online, hz, &s->pmu);
		s->lbr_excludes_pt = lbr_excludes_pt(cpuinfo);
		return choose_terms(s, config, why, why_size);
	}
	r = source_perf_explain(cpuinfo, directory, why, why_size);
	snprintf(s->no_pt, sizeof(s->no_pt), "%s", why);
	s->base.pt_config = MANIFEST_ABSENT;
	s->base.mtc_period = UINT32_MAX;
	return config->degrade ? 0 : r;
}

/* --- CPUs, sizes, and the sideband --- */

/* Lists the CPUs that are present and asked for. */
static int find_cpus(struct source_perf *s, const char *asked, char *why, size_t why_size)
{
	struct cpulist present, wanted;
	int r = read_cpus(s, CPUS_PRESENT, &present);

	if (r < 0) {
		snprintf(why, why_size, "%s/%s cannot be read: %s", s->sys, CPUS_PRESENT,
			 strerror(-r));
		return r;
	}
	wanted = present;
	if (asked && cpulist_parse(asked, &wanted) < 0) {
		snprintf(why, why_size, "CPUs=%s: not a list of CPUs such as 0-3,8", asked);
		return -EINVAL;
	}
	s->base.cpus = calloc(cpulist_count(&wanted) + 1, sizeof(*s->base.cpus));
	s->cpus = calloc(cpulist_count(&wanted) + 1, sizeof(*s->cpus));
	if (!s->base.cpus || !s->cpus)
		return -ENOMEM;
	for (uint32_t cpu = 0; cpu < CPULIST_MAX; cpu++) {
		if (!cpulist_has(&wanted, cpu))
			continue;
		if (!cpulist_has(&present, cpu)) {
			snprintf(why, why_size, "CPUs=%s: this host has no CPU %u", asked, cpu);
			return -EINVAL;
		}
		perf_event_init(&s->cpus[s->base.n_cpus].pt);
		perf_event_init(&s->cpus[s->base.n_cpus].sideband);
		s->base.cpus[s->base.n_cpus] = (struct source_cpu){
			.cpu = cpu,
			.state = SOURCE_CPU_OFFLINE,
			.node = source_node_of_cpu(s->sys, cpu),
		};
		snprintf(s->base.cpus[s->base.n_cpus++].why, SOURCE_WHY_SIZE, "CPU %u is offline",
			 cpu);
	}
	if (s->base.n_cpus > 0)
		return 0;
	snprintf(why, why_size, "CPUs=: no CPU is left to trace");
	return -EINVAL;
}

/* The CPUs whose trace ring has SIZE bytes. */
static struct cpulist rings_of_size(const struct source_perf *s, uint64_t size)
{
	struct cpulist list = {0};

	for (size_t i = 0; i < s->base.n_cpus; i++) {
		const struct source_cpu *cpu = &s->base.cpus[i];

		if (cpu->pt.aux && cpu->pt.aux_size == size)
			list.bits[cpu->cpu / 64] |= UINT64_C(1) << cpu->cpu % 64;
	}
	return list;
}

void perf_note_sizes(struct source_perf *s)
{
	size_t used = (size_t)snprintf(s->note, sizeof(s->note), "%s", s->budget_note);
	char list[SOURCE_WHY_SIZE / 2];

	/* Rings are halved until the kernel has the memory (perf_event.c, map_aux). */
	for (uint64_t size = s->sizes.aux / 2; size > 0 && used < sizeof(s->note); size /= 2) {
		const struct cpulist cpus = rings_of_size(s, size);
		const size_t n = cpulist_count(&cpus);

		if (n == 0)
			continue;
		cpulist_format(&cpus, list, sizeof(list));
		used += (size_t)snprintf(
			s->note + used, sizeof(s->note) - used,
			"%strace ring %llu KiB instead of %llu KiB on %zu %s (%s): "
			"no more memory could be allocated or locked",
			used > 0 ? "; " : "", (unsigned long long)size >> 10,
			(unsigned long long)s->sizes.aux >> 10, n, n == 1 ? "CPU" : "CPUs", list);
	}
	s->base.sizes_note = used > 0 ? s->note : NULL;
}

static void choose_sizes(struct source_perf *s, const struct source_config *config)
{
	const struct budget_sizes asked = {s->have_pmu ? config->aux_size : BUDGET_MIN_RING,
					   config->data_size};
	uint64_t budget = config->ring_budget;
	char meminfo[PATH_MAX];

	snprintf(meminfo, sizeof(meminfo), "%s/meminfo", s->proc);
	if (budget == 0)
		budget = budget_default(meminfo);
	budget_fit(&asked, s->base.n_cpus, budget, s->have_pmu && !s->pmu.topa_multiple_entries,
		   &s->sizes, s->budget_note, sizeof(s->budget_note));
	perf_note_sizes(s);
}

/* Finds out which sideband records the first online CPU can write. */
static int choose_sideband(struct source_perf *s, const struct cpulist *online, char *why,
			   size_t why_size)
{
	uint32_t kinds = 0, cpu = 0;
	int r;

	while (cpu < CPULIST_MAX - 1 && !cpulist_has(online, cpu))
		cpu++;
	s->base.clock_is_monotonic = !s->have_pmu;
	r = perf_attr_probe(cpu, !s->have_pmu, &kinds);
	if (r < 0) {
		snprintf(why, why_size,
			 "perf events cannot be opened: %s; it needs CAP_SYS_ADMIN, or CAP_PERFMON "
			 "where kernel.perf_event_paranoid is at most 2 (see ptsnapd --check)",
			 strerror(-r));
		return r;
	}
	perf_attr_sideband(kinds, !s->have_pmu, &s->sideband_attr);
	if (s->have_pmu && (kinds & PERF_ATTR_LOST)) {
		s->pt_attr.read_format |= PERF_EVENT_FORMAT_LOST;
		perf_attr_format(&s->pt_attr, s->pt_text, sizeof(s->pt_text));
	}
	s->base.maps_by_inode = true;
	/* Whoever empties the ring may be late by the time that the rest of it lasts. */
	s->sideband_attr.watermark = 1;
	s->sideband_attr.wakeup_watermark = (uint32_t)(s->sizes.data / WATERMARK_SHARE);
	perf_attr_format(&s->sideband_attr, s->sideband_text, sizeof(s->sideband_text));
	perf_attr_missing(kinds, s->missing, sizeof(s->missing));
	s->base.sideband_attr = s->sideband_text;
	s->base.sideband_missing = *s->missing != '\0' ? s->missing : NULL;
	return 0;
}

/* --- The clock --- */

/* Reads the clock's parameters. lock is a sequence count (include/uapi/linux/perf_event.h, struct
 * perf_event_mmap_page). The event's CPU also writes the page when it schedules the event anew
 * (perf_swevent_add), and two writers at once may leave lock odd for ever
 * (perf_event_update_userpage does not nest). Therefore, after some tries, takes the page as it
 * is. */
static void read_page(const struct perf_event_mmap_page *page, struct clock_params *ret)
{
	uint32_t before, after;

	for (int i = 0; i < CLOCK_TRIES; i++) {
		before = __atomic_load_n(&page->lock, __ATOMIC_ACQUIRE);
		*ret = (struct clock_params){
			.valid = page->cap_user_time_zero,
			.time_shift = page->time_shift,
			.time_mult = page->time_mult,
			.time_zero = page->time_zero,
		};
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		after = __atomic_load_n(&page->lock, __ATOMIC_RELAXED);
		if (before == after && (before & 1) == 0)
			return;
	}
}

/* Whether the kernel set the clock's zero anew. A different rate is no reason: the kernel measures
 * the TSC better soon after boot (arch/x86/kernel/tsc.c, tsc_refine_calibration_work). */
static bool was_set_anew(const struct clock_params *was, const struct clock_params *is)
{
	uint64_t ahead = is->time_zero - was->time_zero, behind = was->time_zero - is->time_zero;

	return was->valid && is->valid && was->time_mult == is->time_mult &&
	       was->time_shift == is->time_shift && MIN_OF(ahead, behind) >= CLOCK_JUMPED;
}

bool perf_read_clock(struct source_perf *s)
{
	const struct clock_params was = s->base.clock;
	uint32_t i = 0;

	while (i < s->base.n_cpus && !s->cpus[i].sideband.base)
		i++;
	if (i == s->base.n_cpus || s->base.clock_is_monotonic)
		return false;
	/* The kernel rewrites the page for IOC_RESET (kernel/events/core.c, _perf_event_reset), but
	 * not by itself after the host slept, when the difference between TSC and perf clock has
	 * grown (arch/x86/kernel/tsc.c, tsc_restore_sched_clock_state). A dummy event has no count
	 * that a reset could lose. */
	perf_sys_ioctl(s->cpus[i].sideband.fd, PERF_EVENT_IOC_RESET);
	read_page(s->cpus[i].sideband.base, &s->base.clock);
	return was_set_anew(&was, &s->base.clock);
}

int perf_read_online(const struct source_perf *s, struct cpulist *ret)
{
	return read_cpus(s, CPUS_ONLINE, ret);
}

int perf_choose(struct source_perf *s, const struct source_config *config,
		struct cpulist *ret_online, char *why, size_t why_size)
{
	int r = read_cpus(s, CPUS_ONLINE, ret_online);

	if (r < 0) {
		snprintf(why, why_size, "%s/%s cannot be read: %s", s->sys, CPUS_ONLINE,
			 strerror(-r));
		return r;
	}
	r = find_pmu(s, config, ret_online, why, why_size);
	if (r == 0)
		r = find_cpus(s, config->cpus, why, why_size);
	if (r < 0)
		return r;
	choose_sizes(s, config);
	return choose_sideband(s, ret_online, why, why_size);
}
