/*
 * Measures how long CPUs are dark and how fast their rings are copied, against memcpy of the same
 * bytes in the same run, and the same beside programs that keep all CPUs busy, with and without the
 * real-time priority of the threads that copy. The rings are plain memory; bench_stop measures the
 * cost of stopping and restarting real events.
 */
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "capture/ring/freeze.h"
#include "capture/ring/realtime.h"
#include "proto/base.h"
#include "tests/bench/sample.h"

#define RINGS	 64u
#define RING	 (8u << 20)
#define PAGE	 4096u
#define TOTAL	 (2 * PAGE + RING)
#define ROUNDS	 9u
#define MAX_BUSY 64
#define NOBODY	 65534u

struct measured {
	uint64_t copy[ROUNDS];	   /* all rings, from the first stop to the last restart */
	uint64_t shortest[ROUNDS]; /* the CPU that was dark for the shortest time */
	uint64_t longest[ROUNDS];  /* the CPU that was dark for the longest time */
	uint64_t memcpy_ns[ROUNDS];
};

static int nothing(struct source *s, uint32_t index)
{
	(void)s;
	(void)index;
	return 0;
}

static const struct source_ops ops = {.name = "bench", .disable = nothing, .enable = nothing};

static int make_ring(struct source_cpu *cpu, uint32_t number)
{
	uint8_t *memory = mmap(NULL, TOTAL, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	struct perf_event_mmap_page *page = (struct perf_event_mmap_page *)memory;

	if (memory == MAP_FAILED)
		return -1;
	memset(memory + 2 * PAGE, (int)number + 1, RING);
	page->data_offset = PAGE;
	page->data_size = PAGE;
	page->aux_offset = 2 * PAGE;
	page->aux_size = RING;
	page->aux_head = RING / 3;
	cpu->cpu = number;
	cpu->node = -1;
	return ring_init(&cpu->pt, page, TOTAL, NULL);
}

static uint64_t copy_plain(const struct source *s, const struct area *area)
{
	struct realtime priority;
	uint64_t begin;

	realtime_begin(&priority);
	begin = sample_now();
	for (uint32_t i = 0; i < s->n_cpus; i++)
		memcpy(area->base + i * area->slice, s->cpus[i].pt.aux, RING);
	begin = sample_now() - begin;
	realtime_end(&priority);
	return begin;
}

static void measure(struct freezer *f, struct source *s, const struct area *area, unsigned round,
		    struct measured *m)
{
	const struct freeze_wish wish = {.resume = true, .cpu = FREEZE_ANY_CPU};
	struct freeze_cpu cpus[RINGS];
	uint64_t begin;

	m->memcpy_ns[round] = copy_plain(s, area);
	begin = sample_now();
	freeze_snapshot(f, s, &wish, area, cpus);
	m->copy[round] = sample_now() - begin;
	m->shortest[round] = UINT64_MAX;
	m->longest[round] = 0;
	for (uint32_t i = 0; i < RINGS; i++) {
		m->shortest[round] = MIN_OF(m->shortest[round], cpus[i].dark_ns);
		m->longest[round] = MAX_OF(m->longest[round], cpus[i].dark_ns);
	}
}

/* Other programs on this host disturb the measurement, so the best round counts. */
static double best(uint64_t *values)
{
	return (double)sample_percentile(values, ROUNDS, 0);
}

static double median(uint64_t *values)
{
	return (double)sample_percentile(values, ROUNDS, 50);
}

static void show(unsigned copiers, struct measured *m)
{
	const double bytes = (double)RINGS * RING;
	const double copy = best(m->copy), plain = best(m->memcpy_ns);

	printf("freeze %u rings of %u MiB, %u copier%s %5.2f GB/s, memcpy by one thread %5.2f GB/s, "
	       "ratio %.2f; dark %5.2f to %5.2f ms, memcpy of one ring %.2f ms\n",
	       RINGS, RING >> 20, copiers, copiers == 1 ? ": " : "s:", bytes / copy, bytes / plain,
	       plain / copy, best(m->shortest) / 1e6, best(m->longest) / 1e6, plain / RINGS / 1e6);
}

static int measure_with(struct source *s, const struct area *area, unsigned copiers,
			struct measured *m)
{
	struct freezer *f;

	if (freezer_new(s, copiers, &f) < 0)
		return -1;
	for (unsigned round = 0; round < ROUNDS; round++)
		measure(f, s, area, round, m);
	freezer_free(f);
	return 0;
}

static int measure_beside(struct source *s, const struct area *area, const char *priority,
			  struct measured *m)
{
	if (measure_with(s, area, 0, m) < 0)
		return -1;
	printf("freeze %u rings of %u MiB beside busy programs, %s: all rings %7.2f ms median, "
	       "%7.2f ms most; memcpy by one thread %7.2f ms median\n",
	       RINGS, RING >> 20, priority, median(m->copy) / 1e6,
	       (double)sample_percentile(m->copy, ROUNDS, 100) / 1e6, median(m->memcpy_ns) / 1e6);
	return 0;
}

/* Two programs for each CPU compute. The threads that copy have real-time priority, and then, as
 * another user, none. */
static int measure_under_load(struct source *s, const struct area *area, struct measured *m)
{
	const struct sched_param one = {.sched_priority = 1}, none = {0};
	const struct rlimit no = {0};
	long n = MIN_OF(2 * sysconf(_SC_NPROCESSORS_ONLN), (long)MAX_BUSY);
	pid_t busy[MAX_BUSY];
	bool permitted = sched_setscheduler(0, SCHED_FIFO, &one) == 0;
	int r = 0;

	if (permitted)
		sched_setscheduler(0, SCHED_OTHER, &none);
	for (long i = 0; i < n; i++) {
		busy[i] = fork();
		if (busy[i] == 0) {
			/* We must be allowed to kill it in the end. */
			if (geteuid() == 0 && setresuid(NOBODY, NOBODY, NOBODY) < 0)
				_exit(EXIT_FAILURE);
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			for (volatile unsigned x = 0;; x++)
				;
		}
	}
	if (permitted)
		r = measure_beside(s, area, "real-time", m);
	else
		puts("freeze beside busy programs, real-time: not measured: not permitted");
	if (r == 0 && setrlimit(RLIMIT_RTPRIO, &no) == 0 && setrlimit(RLIMIT_NICE, &no) == 0 &&
	    (geteuid() != 0 || setresuid(NOBODY, NOBODY, NOBODY) == 0))
		r = measure_beside(s, area, "no priority", m);
	for (long i = 0; i < n; i++)
		if (busy[i] > 0 && kill(busy[i], SIGKILL) == 0)
			waitpid(busy[i], NULL, 0);
	return r;
}

int main(void)
{
	static const unsigned copiers[] = {1, 2, 4, 8, 16, 28};
	static struct source_cpu cpus[RINGS];
	struct source s = {.ops = &ops, .cpus = cpus, .n_cpus = RINGS};
	static struct measured m;
	struct area area;

	for (uint32_t i = 0; i < RINGS; i++)
		if (make_ring(&cpus[i], i) < 0)
			return EXIT_FAILURE;
	if (area_make(&s, 0, &area) < 0)
		return EXIT_FAILURE;
	sample_warn();
	for (unsigned i = 0; i < ARRAY_SIZE(copiers); i++) {
		if (measure_with(&s, &area, copiers[i], &m) < 0)
			return EXIT_FAILURE;
		show(copiers[i], &m);
	}
	fflush(stdout);
	if (measure_under_load(&s, &area, &m) < 0)
		return EXIT_FAILURE;
	area_done(&area);
	return EXIT_SUCCESS;
}
