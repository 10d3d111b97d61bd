/*
 * Called by source_perf.c when it opens, and by the check.
 */
#include "capture/perf/perf_attr.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "capture/perf/perf_event.h"
#include "capture/perf/perf_sys.h"
#include "proto/base.h"
#include "proto/perf/perfrecord.h"

/* What both have: times and CPUs on every record, and whether the event really runs by read(2). */
static void common(struct perf_event_attr *ret)
{
	*ret = (struct perf_event_attr){
		.size = sizeof(*ret),
		.disabled = 1,
		.exclude_hv = 1,
		.sample_period = 1,
		.sample_id_all = 1,
		.sample_type = PERFRECORD_SAMPLE_TYPE,
		.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING,
	};
}

void perf_attr_pt(uint32_t type, uint64_t config, enum source_trace trace,
		  struct perf_event_attr *ret)
{
	common(ret);
	ret->type = type;
	ret->config = config;
	/* Else every other event on the CPU stops and starts it anew: kernel/events/core.c,
	 * ctx_resched. */
	ret->pinned = 1;
	ret->exclude_user = (trace & SOURCE_TRACE_USER) == 0;
	ret->exclude_kernel = (trace & SOURCE_TRACE_KERNEL) == 0;
}

void perf_attr_sideband(uint32_t kinds, bool monotonic, struct perf_event_attr *ret)
{
	common(ret);
	ret->type = PERF_TYPE_SOFTWARE;
	ret->config = PERF_COUNT_SW_DUMMY;
	ret->exclude_kernel = 1;
	ret->mmap = 1;
	ret->mmap2 = 1;
	ret->comm = 1;
	ret->comm_exec = 1;
	ret->task = 1;
	ret->context_switch = 1;
	ret->text_poke = (kinds & PERF_ATTR_TEXT_POKE) != 0;
	ret->cgroup = (kinds & PERF_ATTR_CGROUP) != 0;
	ret->ksymbol = (kinds & PERF_ATTR_KSYMBOL) != 0;
	ret->bpf_event = (kinds & PERF_ATTR_BPF_EVENT) != 0;
	ret->namespaces = (kinds & PERF_ATTR_NAMESPACES) != 0;
	if (kinds & PERF_ATTR_LOST)
		ret->read_format |= PERF_EVENT_FORMAT_LOST;
	if (!monotonic)
		return;
	ret->use_clockid = 1;
	ret->clockid = CLOCK_MONOTONIC;
}

static int try(uint32_t cpu, uint32_t kinds, bool monotonic)
{
	struct perf_event_attr attr;
	int fd;

	perf_attr_sideband(kinds, monotonic, &attr);
	fd = perf_sys_open(&attr, cpu);
	if (fd < 0)
		return fd;
	close(fd);
	return 0;
}

int perf_attr_probe(uint32_t cpu, bool monotonic, uint32_t *ret_kinds)
{
	int r = try(cpu, PERF_ATTR_ALL_KINDS, monotonic);

	*ret_kinds = PERF_ATTR_ALL_KINDS;
	if (r == 0)
		return 0;
	*ret_kinds = 0;
	r = try(cpu, 0, monotonic);
	if (r < 0)
		return r;
	/* perf_copy_attr: a bit that the kernel does not know is EINVAL. */
	for (uint32_t kind = 1; kind <= PERF_ATTR_ALL_KINDS; kind <<= 1)
		if (try(cpu, kind, monotonic) == 0)
			*ret_kinds |= kind;
	return 0;
}

void perf_attr_missing(uint32_t kinds, char *ret, size_t size)
{
	static const char *const names[] = {"text_poke", "cgroup", "ksymbol", "bpf_event",
					    "namespaces"};
	size_t used = 0;

	ret[0] = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(names) && used < size; i++)
		if ((kinds >> i & 1) == 0)
			used += (size_t)snprintf(ret + used, size - used, "%s%s",
						 used > 0 ? "," : "", names[i]);
}

/* One field of an attr with its value. */
struct field {
	const char *name;
	uint64_t value;
};

void perf_attr_format(const struct perf_event_attr *a, char *ret, size_t size)
{
	const struct field fields[] = {
		{"size", a->size},
		{"sample_period", a->sample_period},
		{"disabled", a->disabled},
		{"pinned", a->pinned},
		{"exclude_user", a->exclude_user},
		{"exclude_kernel", a->exclude_kernel},
		{"exclude_hv", a->exclude_hv},
		{"mmap", a->mmap},
		{"comm", a->comm},
		{"task", a->task},
		{"sample_id_all", a->sample_id_all},
		{"watermark", a->watermark},
		{"wakeup_watermark", a->watermark ? a->wakeup_watermark : 0},
		{"mmap2", a->mmap2},
		{"comm_exec", a->comm_exec},
		{"use_clockid", a->use_clockid},
		{"context_switch", a->context_switch},
		{"namespaces", a->namespaces},
		{"ksymbol", a->ksymbol},
		{"bpf_event", a->bpf_event},
		{"cgroup", a->cgroup},
		{"text_poke", a->text_poke},
		{"build_id", a->build_id},
		{"clockid", (uint64_t)a->clockid},
	};
	size_t used = (size_t)snprintf(
		ret, size, "type=%u config=0x%llx sample_type=0x%llx read_format=0x%llx", a->type,
		(unsigned long long)a->config, (unsigned long long)a->sample_type,
		(unsigned long long)a->read_format);

	for (size_t i = 0; i < ARRAY_SIZE(fields) && used < size; i++)
		if (fields[i].value != 0)
			used += (size_t)snprintf(ret + used, size - used, " %s=%llu",
						 fields[i].name,
						 (unsigned long long)fields[i].value);
}
