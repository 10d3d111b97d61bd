/*
 * The code that all trace sources share: their clock, their watch, and the nodes of their CPUs.
 */
#include "capture/ring/source.h"

#include <assert.h>
#include <ctype.h>
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <x86intrin.h>

#include "proto/base.h"

void source_free(struct source *s)
{
	if (s)
		s->ops->free(s);
}

void source_freep(struct source **s)
{
	source_free(*s);
}

uint64_t source_tsc(struct source *s, uint32_t index)
{
	assert(index < s->n_cpus);
	return s->ops->read_tsc ? s->ops->read_tsc(s, index) : __rdtsc();
}

uint64_t source_now_ns(struct source *s, uint32_t index)
{
	if (s->clock.valid)
		return clock_tsc_to_ns(&s->clock, source_tsc(s, index));
	return s->clock_is_monotonic ? now_ns(CLOCK_MONOTONIC) : MANIFEST_ABSENT;
}

void source_set_watch(struct source *s, const struct source_watch *watch)
{
	s->watch = watch;
	for (uint32_t i = 0; watch && i < s->n_cpus; i++) {
		struct source_cpu *cpu = &s->cpus[i];

		if (cpu->pt.data)
			watch->ring_added(watch->userdata, i, &cpu->pt, cpu->pt_fd);
		if (cpu->sideband.data)
			watch->ring_added(watch->userdata, i, &cpu->sideband, cpu->sideband_fd);
	}
}

const char *source_cpu_state_name(enum source_cpu_state state)
{
	static const char *const names[] = {
		[SOURCE_CPU_TRACING] = "tracing", [SOURCE_CPU_OFFLINE] = "offline",
		[SOURCE_CPU_BUSY] = "busy",	  [SOURCE_CPU_YIELDED] = "yielded",
		[SOURCE_CPU_FAILED] = "failed",	  [SOURCE_CPU_NO_PT] = "no-pt",
	};

	assert((size_t)state < ARRAY_SIZE(names));
	return names[state];
}

const char *source_cpu_state_fault(enum source_cpu_state state)
{
	static const char *const names[] = {
		[SOURCE_CPU_OFFLINE] = "cpu-offline",  [SOURCE_CPU_BUSY] = "pt-busy",
		[SOURCE_CPU_YIELDED] = "pt-yielded",   [SOURCE_CPU_FAILED] = "pt-failed",
		[SOURCE_CPU_NO_PT] = "pt-unavailable",
	};

	assert((size_t)state < ARRAY_SIZE(names));
	return names[state];
}

/* Counts the entries "node0" to "node1023" of the directory PATH; *ret_node is the number of one of
 * them. */
static unsigned nodes_in(const char *path, int *ret_node)
{
	DIR *dir = opendir(path);
	unsigned n = 0;

	*ret_node = -1;
	if (!dir)
		return 0;
	for (struct dirent *e; (e = readdir(dir));) {
		unsigned node;
		char rest;

		if (strncmp(e->d_name, "node", 4) != 0 || !isdigit((unsigned char)e->d_name[4]) ||
		    sscanf(e->d_name + 4, "%4u%c", &node, &rest) != 1 || node >= SOURCE_MAX_NODES)
			continue;
		*ret_node = (int)node;
		n++;
	}
	closedir(dir);
	return n;
}

int source_node_of_cpu(const char *sysfs, uint32_t cpu)
{
	char path[PATH_MAX];
	int node;

	snprintf(path, sizeof(path), "%s/devices/system/node", sysfs);
	if (nodes_in(path, &node) < 2)
		return -1;
	snprintf(path, sizeof(path), "%s/devices/system/cpu/cpu%u", sysfs, cpu);
	return nodes_in(path, &node) == 1 ? node : -1;
}
