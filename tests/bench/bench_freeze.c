/*
 * Measures how long CPUs are dark and how fast their rings are copied, against memcpy of the same
 * bytes in the same run. The rings are plain memory; bench_stop measures the cost of stopping and
 * restarting real events.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "capture/ring/freeze.h"
#include "proto/base.h"
#include "tests/bench/sample.h"

#define RINGS	    8u
#define RING	    (8u << 20)
#define PAGE	    4096u
#define TOTAL	    (2 * PAGE + RING)
#define ROUNDS	    25u
#define MOST_COPIES 4u

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
	uint64_t begin = sample_now();

	for (uint32_t i = 0; i < s->n_cpus; i++)
		memcpy(area->base + i * area->slice, s->cpus[i].pt.aux, RING);
	return sample_now() - begin;
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

static void show(unsigned copiers, struct measured *m)
{
	const double bytes = (double)RINGS * RING;
	const double copy = best(m->copy), plain = best(m->memcpy_ns);

	printf("freeze %u rings of %u MiB, %u copier%s %5.2f GB/s, memcpy by one thread %5.2f GB/s, "
	       "ratio %.2f; dark %5.2f to %5.2f ms, memcpy of one ring %.2f ms\n",
	       RINGS, RING >> 20, copiers, copiers == 1 ? ": " : "s:", bytes / copy, bytes / plain,
	       plain / copy, best(m->shortest) / 1e6, best(m->longest) / 1e6, plain / RINGS / 1e6);
}

int main(void)
{
	struct source_cpu cpus[RINGS] = {0};
	struct source s = {.ops = &ops, .cpus = cpus, .n_cpus = RINGS};
	static struct measured m;
	struct area area;

	for (uint32_t i = 0; i < RINGS; i++)
		if (make_ring(&cpus[i], i) < 0)
			return EXIT_FAILURE;
	if (area_make(&s, 0, &area) < 0)
		return EXIT_FAILURE;
	sample_warn();
	for (unsigned copiers = 1; copiers <= MOST_COPIES; copiers++) {
		struct freezer *f;

		if (freezer_new(RINGS, copiers, &f) < 0)
			return EXIT_FAILURE;
		for (unsigned round = 0; round < ROUNDS; round++)
			measure(f, &s, &area, round, &m);
		freezer_free(f);
		show(copiers, &m);
	}
	area_done(&area);
	return EXIT_SUCCESS;
}
