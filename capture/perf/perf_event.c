/*
 * Called by source_perf.c; a PT event by the thread that owns them all.
 */
#include "capture/perf/perf_event.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "capture/perf/perf_sys.h"
#include "proto/base.h"

#define PAGE_BYTES 4096u

void perf_event_init(struct perf_event *e)
{
	*e = (struct perf_event){.fd = -EBADF};
}

/* Address space for all of it, so that ring.c sees one area. */
static int reserve(struct perf_event *e, size_t size)
{
	void *p = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
		return -errno;
	e->base = p;
	e->mapped = size;
	return 0;
}

/* Where there is no memory for so large an AUX ring (with a single ToPA entry: no block of that
 * size), or not so much may be locked (EPERM), half of it may do. */
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

static int map(struct perf_event *e, uint64_t data_size, uint64_t *aux_size, uint8_t *scratch)
{
	uint64_t offset = PAGE_BYTES + data_size;
	int r = reserve(e, offset + *aux_size);

	if (r == 0)
		r = perf_sys_map(e->fd, e->base, PAGE_BYTES + data_size, PROT_READ | PROT_WRITE, 0);
	if (r == 0 && *aux_size > 0)
		r = map_aux(e, offset, aux_size);
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
	if (e->base != NULL)
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

/* What read(2) gives: value, enabled, running, and, where that was asked for, lost. */
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

bool perf_event_alive(struct perf_event *e)
{
	uint64_t now[READ_N] = {0};
	bool alive;

	if (perf_sys_read(e->fd, now, sizeof(now)) < (ssize_t)(READ_LOST * sizeof(now[0])))
		return false;
	alive = now[READ_RUNNING] > e->running_ns;
	e->enabled_ns = now[READ_ENABLED];
	e->running_ns = now[READ_RUNNING];
	return alive;
}
