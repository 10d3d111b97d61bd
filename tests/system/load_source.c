/*
 * The events are opened as the recorder opens them. Stopping and starting does nothing: the AUX
 * rings are full from the beginning and nobody writes them.
 */
#include "tests/system/load_source.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "capture/perf/perf_event.h"
#include "proto/base.h"
#include "proto/perf/perfrecord.h"

#define PAGE 4096u

struct load_source {
	struct source base;
	struct perf_event *events;
	uint64_t aux_size;
	uint8_t scratch[PERFRECORD_MAX_SIZE];
};

static int nothing(struct source *s, uint32_t index)
{
	(void)s;
	(void)index;
	return 0;
}

static const struct source_ops ops = {.name = "emulated", .disable = nothing, .enable = nothing};

static int open_sideband(struct load_source *s, uint32_t cpu, uint64_t data_size)
{
	struct perf_event_attr attr;
	uint64_t no_aux = 0;
	uint32_t kinds;
	int r = perf_attr_probe(cpu, true, &kinds);

	if (r < 0)
		return r;
	perf_attr_sideband(kinds, true, &attr);
	s->base.maps_by_inode = true;
	attr.watermark = 1;
	attr.wakeup_watermark = (uint32_t)(data_size / 4);
	r = perf_event_start(&s->events[cpu], &attr, cpu, data_size, &no_aux, s->scratch);
	if (r == 0)
		r = perf_event_enable(&s->events[cpu]);
	s->base.cpus[cpu].sideband = s->events[cpu].ring;
	s->base.cpus[cpu].sideband_fd = s->events[cpu].fd;
	return r;
}

static int make_aux(struct load_source *s, uint32_t cpu)
{
	struct ring *pt = &s->base.cpus[cpu].pt;
	uint8_t *base = mmap(NULL, PAGE + s->aux_size, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (base == MAP_FAILED)
		return -errno;
	memset(base + PAGE, (int)cpu + 1, s->aux_size);
	pt->page = (struct perf_event_mmap_page *)base;
	pt->aux = base + PAGE;
	pt->aux_size = s->aux_size;
	return 0;
}

int load_source_new(uint64_t data_size, uint64_t aux_size, struct load_source **ret)
{
	uint32_t n = (uint32_t)sysconf(_SC_NPROCESSORS_ONLN);
	struct load_source *s = calloc(1, sizeof(*s));
	int r = 0;

	s->base.ops = &ops;
	s->base.n_cpus = n;
	s->base.clock_is_monotonic = true;
	s->base.cpus = calloc(n, sizeof(*s->base.cpus));
	s->events = calloc(n, sizeof(*s->events));
	s->aux_size = aux_size;
	for (uint32_t i = 0; i < n; i++) {
		perf_event_init(&s->events[i]);
		s->base.cpus[i].cpu = i;
		s->base.cpus[i].node = -1;
	}
	for (uint32_t i = 0; i < n && r == 0; i++)
		r = make_aux(s, i);
	/* Last: from now on somebody must empty the rings. */
	for (uint32_t i = 0; i < n && r == 0; i++)
		r = open_sideband(s, i, data_size);
	if (r < 0) {
		load_source_free(s);
		return r;
	}
	*ret = s;
	return 0;
}

void load_source_free(struct load_source *s)
{
	for (size_t i = 0; i < s->base.n_cpus; i++) {
		perf_event_stop(&s->events[i]);
		if (s->base.cpus[i].pt.page != NULL)
			munmap(s->base.cpus[i].pt.page, PAGE + s->aux_size);
	}
	free(s->events);
	free(s->base.cpus);
	free(s);
}

struct source *load_source_base(struct load_source *s)
{
	return &s->base;
}
