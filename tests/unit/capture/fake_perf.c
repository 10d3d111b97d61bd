/*
 * The fake perf core. Tests link it before libptcapture.a, so that perf_sys.c is left out.
 */
#include "tests/unit/capture/fake_perf.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <x86intrin.h>

#include "capture/perf/perf_event.h"

#define EVENTS 64

struct event {
	int fd; /* 0: free */
	uint32_t cpu;
	bool pt, enabled, dead, error, for_ever, mapped_aux, tells_lost;
	uint64_t running, at; /* for how long it ran until AT, by the clock of fill_page() */
	pid_t owner;
	struct perf_event_mmap_page *page;
};

struct fake_perf fake_perf;
static struct event events[EVENTS];

void fake_perf_reset(void)
{
	fake_perf = (struct fake_perf){.time_zero = true, .clock_zero = 77};
	memset(events, 0, sizeof(events));
}

/* Frees events whose fds were closed. */
static void sweep(void)
{
	for (size_t i = 0; i < EVENTS; i++)
		if (events[i].fd != 0 && fcntl(events[i].fd, F_GETFD) < 0)
			events[i] = (struct event){0};
}

static struct event *find(int fd)
{
	for (size_t i = 0; i < EVENTS; i++)
		if (events[i].fd == fd && fd != 0)
			return &events[i];
	return NULL;
}

static bool runs(const struct event *e)
{
	return e->enabled && !e->dead && !e->error;
}

/* Counts the time up to now. Call before the event begins or ends to run. */
static void count_time(struct event *e)
{
	uint64_t now = __rdtsc() / 2 + fake_perf.later;

	if (runs(e))
		e->running += now - e->at;
	e->at = now;
}

unsigned fake_perf_running(uint32_t cpu)
{
	unsigned n = 0;

	sweep();
	for (size_t i = 0; i < EVENTS; i++)
		n += events[i].fd != 0 && events[i].pt && events[i].cpu == cpu && runs(&events[i]);
	return n;
}

unsigned fake_perf_open_events(void)
{
	unsigned n = 0;

	sweep();
	for (size_t i = 0; i < EVENTS; i++)
		n += events[i].fd != 0;
	return n;
}

void fake_perf_offline(uint32_t cpu)
{
	for (size_t i = 0; i < EVENTS; i++)
		if (events[i].cpu == cpu) {
			count_time(&events[i]);
			events[i].dead = true;
		}
}

void fake_perf_fail(uint32_t cpu, bool for_ever)
{
	for (size_t i = 0; i < EVENTS; i++)
		if (events[i].fd != 0 && events[i].pt && events[i].cpu == cpu) {
			count_time(&events[i]);
			events[i].error = true;
			events[i].for_ever = for_ever;
		}
}

static bool is_too_new(const struct perf_event_attr *a)
{
	return (a->text_poke && (fake_perf.unknown_bits & PERF_ATTR_TEXT_POKE)) ||
	       (a->cgroup && (fake_perf.unknown_bits & PERF_ATTR_CGROUP)) ||
	       ((a->read_format & PERF_EVENT_FORMAT_LOST) &&
		(fake_perf.unknown_bits & PERF_ATTR_LOST));
}

int perf_sys_open(const struct perf_event_attr *attr, uint32_t cpu)
{
	bool pt = attr->type == FAKE_PERF_PT_TYPE;
	size_t i = 0;

	sweep();
	if (is_too_new(attr))
		return -EINVAL;
	if (pt && fake_perf.on_open != NULL)
		fake_perf.on_open(cpu);
	if (attr->branch_sample_type != 0 && fake_perf.open_lbr)
		return fake_perf.open_lbr;
	if (pt ? fake_perf.open_pt[cpu] : fake_perf.open_sideband)
		return pt ? fake_perf.open_pt[cpu] : fake_perf.open_sideband;
	while (events[i].fd != 0)
		i++;
	events[i] = (struct event){.fd = memfd_create("event", MFD_CLOEXEC),
				   .cpu = cpu,
				   .pt = pt,
				   .owner = gettid(),
				   .tells_lost = (attr->read_format & PERF_EVENT_FORMAT_LOST) != 0};
	fake_perf.opened++;
	return events[i].fd;
}

static void fill_page(struct perf_event_mmap_page *page, size_t size)
{
	page->data_offset = 4096;
	page->data_size = size - 4096;
	page->cap_user_time_zero = fake_perf.time_zero;
	page->time_shift = 10;
	page->time_mult = 512;
	page->time_zero = fake_perf.clock_zero;
	page->lock = fake_perf.page_lock;
}

int perf_sys_map(int fd, void *at, size_t size, int prot, uint64_t offset)
{
	struct event *e = find(fd);
	void *p;

	if (offset > 0 && fake_perf.map_aux)
		return fake_perf.map_aux;
	if (offset > 0 && fake_perf.largest_aux && size > fake_perf.largest_aux)
		return fake_perf.too_large ? fake_perf.too_large : -ENOMEM;
	p = mmap(at, size, prot, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	if (p == MAP_FAILED)
		return -errno;
	if (offset == 0)
		fill_page(e->page = p, size);
	else
		e->mapped_aux = true;
	return 0;
}

int perf_sys_ioctl(int fd, unsigned long request)
{
	struct event *e = find(fd);

	if (request == PERF_EVENT_IOC_RESET) {
		e->page->time_zero = fake_perf.clock_zero;
		return 0;
	}
	count_time(e);
	/* The trace unit has written something. */
	if (request == PERF_EVENT_IOC_DISABLE && e->pt && e->page && runs(e) && !fake_perf.mute)
		e->page->aux_head += 64;
	if (request == PERF_EVENT_IOC_DISABLE && e->pt)
		fake_perf.first_disabled = e->cpu;
	/* An event that is enabled before AUX is mapped never traces. */
	if (request == PERF_EVENT_IOC_ENABLE && e->pt && !e->mapped_aux)
		e->dead = true;
	e->enabled = request == PERF_EVENT_IOC_ENABLE;
	if (e->enabled && !e->for_ever)
		e->error = false;
	if (e->enabled && e->pt && fake_perf.refuse[e->cpu] > 0) {
		fake_perf.refuse[e->cpu]--;
		e->error = true;
	}
	return 0;
}

ssize_t perf_sys_read(int fd, void *to, size_t size)
{
	struct event *e = find(fd);
	uint64_t values[4] = {0};
	size_t known;

	if (e == NULL)
		return -EBADF;
	if (e->error)
		return 0;
	/* read(2) returns all numbers or fails (kernel/events/core.c, __perf_read). */
	known = e->tells_lost ? sizeof(values) : sizeof(values) - sizeof(values[0]);
	if (size < known)
		return -ENOSPC;
	count_time(e);
	values[1] = values[2] = e->running;
	values[3] = fake_perf.lost;
	memcpy(to, values, known);
	if (fake_perf.on_read != NULL)
		fake_perf.on_read();
	return (ssize_t)known;
}

int perf_sys_disable_mine(void)
{
	fake_perf.disabled_all++;
	for (size_t i = 0; i < EVENTS; i++)
		if (events[i].fd != 0 && events[i].owner == gettid()) {
			count_time(&events[i]);
			events[i].enabled = false;
		}
	return 0;
}
