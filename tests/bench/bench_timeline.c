/*
 * Measures the intake over a night of forks and execs (tests/bench/storm.c): what the recorder
 * remembers, how much memory it takes, and what a record costs in the first million and in the
 * last. PTSNAP_BENCH_RECORDS: number of records, default 50 million.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "daemon/record/intake.h"
#include "proto/base.h"
#include "tests/bench/storm.h"

#define DEFAULT_RECORDS	 50000000ull
#define ROUNDS		 10u
#define PARTS		 10u
#define BATCH		 512u
#define TIMELINE_MAX	 (64ull << 20)
#define MAX_FILES	 4096u
#define MAX_PROCESSES	 4096u
#define REFRESH_BUDGET	 16u
#define LOST_FROM_BEYOND "/nonexistent"

struct night {
	struct storm storm;
	struct source source;
	struct source_cpu cpus[STORM_CPUS];
	struct intake intake;
	uint8_t records[BATCH][STORM_MAX_SIZE];
	uint16_t sizes[BATCH];
};

static const struct source_ops ops = {.name = "bench"};

static uint64_t resident(void)
{
	uint64_t pages[2] = {0};
	FILE *in = fopen("/proc/self/statm", "re");

	if (in && fscanf(in, "%" SCNu64 " %" SCNu64, &pages[0], &pages[1]) != 2)
		pages[1] = 0;
	if (in)
		fclose(in);
	return pages[1] * (uint64_t)sysconf(_SC_PAGESIZE);
}

static uint64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Replaces /proc by nothing. bench_sideband.py measures reading /proc, with real processes. */
static int build(struct night *n)
{
	struct intake_parts parts = {
		.source = &n->source, .queue_bytes = 1 << 20, .period_usec = 100000};

	storm_init(&n->storm, 1);
	n->source = (struct source){.ops = &ops, .cpus = n->cpus, .n_cpus = STORM_CPUS};
	for (uint32_t i = 0; i < STORM_CPUS; i++)
		n->cpus[i].cpu = i;
	if (timeline_new_within(TIMELINE_MAX, &parts.timeline) < 0 ||
	    files_new(LOST_FROM_BEYOND, MAX_FILES, &parts.files) < 0 ||
	    procs_new(LOST_FROM_BEYOND, MAX_PROCESSES, NULL, &parts.procs) < 0)
		return -1;
	files_use(parts.files, parts.timeline, parts.procs);
	return intake_init(&n->intake, &parts);
}

/* CPU time of the intake alone, for COUNT records. */
static uint64_t take_in_some(struct night *n, uint64_t count)
{
	uint64_t total = 0, begin;

	for (uint64_t done = 0; done < count; done += BATCH) {
		for (unsigned i = 0; i < BATCH; i++)
			n->sizes[i] = storm_next(&n->storm, n->records[i]);
		begin = cpu_ns();
		for (unsigned i = 0; i < BATCH; i++)
			intake_record(&n->intake, n->records[i], n->sizes[i]);
		procs_refresh(n->intake.procs, REFRESH_BUDGET);
		total += cpu_ns() - begin;
	}
	return total;
}

/* Nanoseconds per record: the best of several parts, because other programs on this host disturb
 * the measurement. */
static double take_in(struct night *n, uint64_t count)
{
	uint64_t each = count / PARTS, best = UINT64_MAX;

	for (unsigned i = 0; i < PARTS; i++) {
		uint64_t ns = take_in_some(n, each);

		best = MIN_OF(best, ns);
	}
	return (double)best / (double)each;
}

static void show(const struct night *n, const char *what, double ns)
{
	struct timeline_stats t;

	timeline_get_stats(n->intake.timeline, &t);
	printf("timeline %10" PRIu64 " records, %s: %5.0f ns a record; timeline %5.1f of %.0f MiB, "
	       "whole program %5.1f MiB; %" PRIu64 " processes, %" PRIu64 " mappings, %zu files; "
	       "dropped %" PRIu64 ", processes without facts %" PRIu64 ", files not listed %" PRIu64
	       "\n",
	       t.records, what, ns, (double)t.taken_bytes / (1 << 20),
	       (double)t.most_bytes / (1 << 20), (double)resident() / (1 << 20), t.processes,
	       t.mappings + t.log_mappings, files_count(n->intake.files), t.dropped,
	       procs_dropped(n->intake.procs), files_dropped(n->intake.files));
	fflush(stdout);
}

int main(void)
{
	const char *text = getenv("PTSNAP_BENCH_RECORDS");
	uint64_t total = text ? strtoull(text, NULL, 10) : DEFAULT_RECORDS;
	uint64_t million = MIN_OF(total / ROUNDS, 1000000u), warm, end;
	double first, last;
	struct night *n = calloc(1, sizeof(*n));

	if (!n || build(n) < 0)
		return EXIT_FAILURE;
	/* Nothing is folded until the log is full. */
	first = take_in(n, million);
	show(n, "the log is filled", first);
	first = take_in(n, million);
	show(n, "the first million", first);
	warm = resident();
	for (unsigned i = 1; i <= ROUNDS; i++) {
		uint64_t each = (total - 3 * million) / ROUNDS;

		show(n, "the next part", take_in(n, each));
		if (i == 1)
			warm = resident();
	}
	last = take_in(n, million);
	show(n, "the last million", last);
	end = resident();
	printf("timeline: memory %+.2f MiB since the first part; a record costs %.2f times as much as "
	       "in the first million\n",
	       ((double)end - (double)warm) / (1 << 20), last / first);
	return EXIT_SUCCESS;
}
