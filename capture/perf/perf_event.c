/*
 * The attributes of a CPU's two perf events, and one event with its rings mapped.
 */
#include "capture/perf/perf_event.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "proto/base.h"
#include "proto/perf/perfrecord.h"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22 /* Linux 5.14 */
#endif
#define PAGE_BYTES 4096u

/* --- Attributes --- */

/* Every record has a time and a CPU, and read(2) tells how long the event has run. */
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
	assert(trace >= SOURCE_TRACE_USER && trace <= SOURCE_TRACE_BOTH);
	common(ret);
	ret->type = type;
	ret->config = config;
	/* An event that is not pinned is stopped and restarted whenever another event is opened on
	 * the CPU (kernel/events/core.c, ctx_resched). */
	ret->pinned = 1;
	ret->exclude_user = (trace & SOURCE_TRACE_USER) == 0;
	ret->exclude_kernel = (trace & SOURCE_TRACE_KERNEL) == 0;
}

void perf_attr_sideband(uint32_t kinds, bool monotonic, struct perf_event_attr *ret)
{
	assert((kinds & ~PERF_ATTR_ALL_KINDS) == 0);
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

bool perf_lbr_is_used(uint32_t cpu)
{
	const struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_HARDWARE,
		.config = PERF_COUNT_HW_CPU_CYCLES,
		.sample_period = UINT32_MAX,
		.sample_type = PERF_SAMPLE_BRANCH_STACK,
		.branch_sample_type = PERF_SAMPLE_BRANCH_USER | PERF_SAMPLE_BRANCH_ANY,
		.disabled = 1,
		.exclude_kernel = 1,
		.exclude_hv = 1,
	};
	int fd = perf_sys_open(&attr, cpu);

	close_fd(fd);
	return fd >= 0;
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
	/* The kernel answers a bit that it does not know with EINVAL (perf_copy_attr). */
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

	assert((kinds & ~PERF_ATTR_ALL_KINDS) == 0 && size > 0);
	ret[0] = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(names) && used < size; i++)
		if ((kinds >> i & 1) == 0)
			used += (size_t)snprintf(ret + used, size - used, "%s%s",
						 used > 0 ? "," : "", names[i]);
}

void perf_attr_format(const struct perf_event_attr *a, char *ret, size_t size)
{
	const struct {
		const char *name;
		uint64_t value;
	} fields[] = {
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

/* --- One event --- */

void perf_event_init(struct perf_event *e)
{
	*e = (struct perf_event){.fd = -EBADF};
}

/* Halves the AUX ring while the kernel cannot allocate it (with a single ToPA entry: finds no block
 * of that size) or it may not be locked (EPERM). */
static int map_aux(struct perf_event *e, uint64_t offset, uint64_t *size)
{
	struct perf_event_mmap_page *page = e->base;
	uint64_t least = MIN_OF(*size, (uint64_t)PERF_EVENT_LEAST_AUX);
	int r;

	for (;;) {
		page->aux_offset = offset;
		page->aux_size = *size;
		r = perf_sys_map(e->fd, (uint8_t *)e->base + offset, *size, PROT_READ, offset);
		if ((r != -ENOMEM && r != -EPERM) || *size <= least)
			return r;
		*size /= 2;
	}
}

/* Has the page tables filled in now. Up to Linux 6.13 a page of a ring is mapped when it is first
 * read (kernel/events/core.c, perf_mmap_fault): that would be while the CPUs are stopped for the
 * first snapshot. From Linux 6.14 on mmap(2) maps them all (map_range), as VM_PFNMAP, for which
 * madvise(2) gives an error and reading costs no fault. */
static void populate(const uint8_t *at, uint64_t size)
{
	if (madvise((void *)(uintptr_t)at, size, MADV_POPULATE_READ) == 0)
		return;
	for (uint64_t i = 0; i < size; i += PAGE_BYTES)
		(void)*(const volatile uint8_t *)(at + i);
}

static int map(struct perf_event *e, uint64_t data_size, uint64_t *aux_size, uint8_t *scratch)
{
	uint64_t offset = PAGE_BYTES + data_size, size = offset + *aux_size;
	/* Reserves address space for all of it, so that ring.c sees one area. */
	void *p = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	int r;

	if (p == MAP_FAILED)
		return -errno;
	e->base = p;
	e->mapped = size;
	r = perf_sys_map(e->fd, e->base, offset, PROT_READ | PROT_WRITE, 0);
	if (r == 0 && *aux_size > 0)
		r = map_aux(e, offset, aux_size);
	if (r == 0 && *aux_size > 0)
		populate((const uint8_t *)e->base + offset, *aux_size);
	return r == 0 ? ring_init(&e->ring, e->base, offset + *aux_size, scratch) : r;
}

int perf_event_start(struct perf_event *e, const struct perf_event_attr *attr, uint32_t cpu,
		     uint64_t data_size, uint64_t *aux_size, uint8_t *scratch)
{
	int r;

	perf_event_init(e);
	r = perf_sys_open(attr, cpu);
	if (r < 0)
		return r;
	e->fd = r;
	r = map(e, data_size, aux_size, scratch);
	if (r < 0)
		perf_event_stop(e);
	return r;
}

void perf_event_stop(struct perf_event *e)
{
	if (e->base)
		munmap(e->base, e->mapped);
	close_fd(e->fd);
	perf_event_init(e);
}

int perf_event_enable(struct perf_event *e)
{
	return perf_sys_ioctl(e->fd, PERF_EVENT_IOC_ENABLE);
}

int perf_event_disable(struct perf_event *e)
{
	return perf_sys_ioctl(e->fd, PERF_EVENT_IOC_DISABLE);
}

/* The numbers that read(2) returns: value, enabled, running, and lost if it was asked for. */
enum { READ_ENABLED = 1, READ_RUNNING, READ_LOST, READ_N };

int perf_event_lost(const struct perf_event *e, uint64_t *ret)
{
	uint64_t now[READ_N];
	ssize_t r = perf_sys_read(e->fd, now, sizeof(now));

	if (r < 0)
		return (int)r;
	if (r < (ssize_t)sizeof(now))
		return -EOPNOTSUPP;
	*ret = now[READ_LOST];
	return 0;
}

int perf_event_ran(struct perf_event *e, uint64_t *ret)
{
	uint64_t now[READ_N] = {0}, before = e->running_ns;
	ssize_t r = perf_sys_read(e->fd, now, sizeof(now));

	if (r < 0)
		return (int)r;
	if (r < (ssize_t)(READ_LOST * sizeof(now[0])))
		return -ENODATA;
	e->running_ns = now[READ_RUNNING];
	*ret = now[READ_RUNNING] > before ? now[READ_RUNNING] - before : 0;
	return 0;
}

bool perf_event_runs(struct perf_event *e)
{
	uint64_t ran = 0;

	/* The first call forgets what ran before. */
	return perf_event_ran(e, &ran) == 0 && perf_event_ran(e, &ran) == 0 && ran > 0;
}

int perf_event_restart(struct perf_event *e)
{
	int r = -EIO;

	for (int i = 0; i < PERF_EVENT_RESTARTS; i++) {
		uint64_t ran = 0;
		/* An event that is off tells its time without a call to its CPU. */
		bool off = perf_event_ran(e, &ran) == 0;

		r = perf_event_enable(e);
		if (r < 0)
			continue;
		if (off ? perf_event_ran(e, &ran) == 0 && ran > 0 : perf_event_runs(e))
			return 0;
		r = -EIO;
	}
	return r;
}
