/*
 * Uses perf_event_open(2) as other programs do, without any of the recorder's code.
 */
#include "tests/vm/stranger.h"

#include <errno.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/perf_event.h>

#include "tests/vm/number_in_file.h"

#define PMU_TYPE "/sys/bus/event_source/devices/intel_pt/type"
#define STATE	 "/sys/kernel/debug/fake_pt/cpu%u/state"
#define PAGE	 4096u
#define SWITCHES 50

struct pt {
	unsigned cpu;
	int fd;
	struct perf_event_mmap_page *page;
	void *aux;
};

static int fail(const char *what)
{
	fprintf(stderr, "feeder: %s: %s\n", what, strerror(errno));
	return 1;
}

static int event_open(struct perf_event_attr *a, int pid, int cpu)
{
	a->size = sizeof(*a);
	return (int)syscall(SYS_perf_event_open, a, pid, cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

static int pt_open(struct pt *p, unsigned cpu, bool pinned)
{
	struct perf_event_attr a = {
		.type = (uint32_t)number_in_file(PMU_TYPE, ""),
		.disabled = 1,
		.pinned = pinned,
		.exclude_kernel = 1,
		.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING,
	};

	*p = (struct pt){.cpu = cpu, .fd = event_open(&a, -1, (int)cpu)};
	if (p->fd < 0)
		return -1;
	p->page = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, p->fd, 0);
	return p->page == MAP_FAILED ? -1 : 0;
}

static int pt_map_aux(struct pt *p)
{
	p->page->aux_offset = 2 * PAGE;
	p->page->aux_size = 2 * PAGE;
	p->aux = mmap(NULL, 2 * PAGE, PROT_READ, MAP_SHARED, p->fd, 2 * PAGE);
	return p->aux == MAP_FAILED ? -1 : 0;
}

static void pt_close(const struct pt *p)
{
	munmap(p->aux, 2 * PAGE);
	munmap(p->page, 2 * PAGE);
	close(p->fd);
}

int stranger_hold(unsigned cpu)
{
	struct pt p;

	if (pt_open(&p, cpu, false) < 0 || pt_map_aux(&p) < 0 ||
	    ioctl(p.fd, PERF_EVENT_IOC_ENABLE, 0) < 0)
		return fail("intel_pt");
	puts("held");
	fflush(stdout);
	pause();
	return 0;
}

/* Runs a task on CPU with a pinned event of its own, woken SWITCHES times. */
static int run_counted(const int to[2], const int from[2])
{
	struct perf_event_attr a = {
		.type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_PAGE_FAULTS, .pinned = 1};
	pid_t pid = fork();
	char c = 0;

	if (pid == 0) {
		bool good = event_open(&a, 0, -1) >= 0;

		for (int i = 0; i < SWITCHES; i++)
			good = good && read(to[0], &c, 1) == 1 && write(from[1], &c, 1) == 1;
		_exit(!good);
	}
	return pid;
}

int stranger_disturb(unsigned cpu)
{
	struct perf_event_attr a = {.type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_CPU_CLOCK};
	int to[2], from[2], status = 1, fd;
	cpu_set_t set;
	pid_t pid;
	char c = 0;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set) < 0 || pipe(to) < 0 || pipe(from) < 0)
		return fail("disturb");
	fd = event_open(&a, -1, (int)cpu);
	if (fd < 0)
		return fail("an event of the CPU");
	pid = run_counted(to, from);
	for (int i = 0; i < SWITCHES; i++)
		if (write(to[1], &c, 1) != 1 || read(from[0], &c, 1) != 1)
			return fail("a task with a pinned event");
	waitpid(pid, &status, 0);
	close(fd);
	return status != 0;
}

static bool traces(const struct pt *p)
{
	char path[64];

	snprintf(path, sizeof(path), STATE, p->cpu);
	return number_in_file(path, "on=") == 1;
}

static int tell(bool right, const char *fact)
{
	printf("%s: %s\n", right ? "so it is" : "NOT SO", fact);
	return !right;
}

/* Sources in the kernel: _perf_event_enable, merge_sched_in, perf_read_hw; rb_alloc_aux. */
static int facts_of_early(struct pt *p)
{
	uint64_t times[3] = {0};
	int wrong = tell(ioctl(p->fd, PERF_EVENT_IOC_ENABLE, 0) == 0 && !traces(p),
			 "enabled without an AUX ring: no error, no trace");

	if (pt_map_aux(p) < 0)
		return fail("aux");
	ioctl(p->fd, PERF_EVENT_IOC_ENABLE, 0);
	wrong |= tell(!traces(p), "enabled again with one: no trace");
	wrong |= tell(read(p->fd, times, sizeof(times)) > 0 && times[2] == 0,
		      "its running time says so");
	ioctl(p->fd, PERF_EVENT_IOC_DISABLE, 0);
	ioctl(p->fd, PERF_EVENT_IOC_ENABLE, 0);
	return wrong | tell(traces(p), "disabled and enabled: it traces");
}

static int facts_of_pinned(struct pt *p)
{
	uint64_t times[3];
	int wrong;

	ioctl(p->fd, PERF_EVENT_IOC_ENABLE, 0);
	wrong = tell(!traces(p) && read(p->fd, times, sizeof(times)) == 0,
		     "pinned, enabled without an AUX ring: read() is at its end");
	if (pt_map_aux(p) < 0)
		return fail("aux");
	ioctl(p->fd, PERF_EVENT_IOC_ENABLE, 0);
	return wrong | tell(traces(p), "pinned, enabled again with one: it traces");
}

int stranger_facts(unsigned cpu)
{
	struct pt p, second;
	int wrong;

	if (pt_open(&p, cpu, false) < 0)
		return fail("intel_pt");
	wrong = tell(pt_open(&second, cpu, false) < 0 && errno == EBUSY,
		     "a second event on the CPU: EBUSY");
	wrong |= facts_of_early(&p);
	pt_close(&p);
	if (pt_open(&p, cpu, true) < 0)
		return fail("intel_pt");
	wrong |= facts_of_pinned(&p);
	pt_close(&p);
	return wrong;
}
