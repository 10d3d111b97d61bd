/*
 * When CPUs were stopped and restarted, as the bundle has it and as the log has it.
 */
#include "tests/vm/self/times.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base.h"
#include "tests/vm/self/truthlog.h"

/* The perf clock and CLOCK_MONOTONIC are the TSC times a factor each, whose rounding differs. */
#define ROUNDING_NS 1000

/* TSC values of one CPU's starts and stops. */
struct bells {
	uint64_t *starts, *stops;
	size_t n_starts, n_stops, starts_capacity, stops_capacity;
};

static void bells_done(struct bells *b)
{
	free(b->starts);
	free(b->stops);
}

static int add_bell(struct bells *b, const char *word, uint64_t tsc)
{
	const bool start = strcmp(word, TRUTHLOG_START) == 0;
	int r = start ? ARRAY_RESERVE(b->starts, b->starts_capacity, b->n_starts + 1)
		      : ARRAY_RESERVE(b->stops, b->stops_capacity, b->n_stops + 1);

	if (r < 0)
		return r;
	if (start)
		b->starts[b->n_starts++] = tsc;
	else
		b->stops[b->n_stops++] = tsc;
	return 0;
}

static int read_bells(const char *dir, uint32_t cpu, struct bells *ret)
{
	char path[4096], word[16];
	unsigned int number;
	uint64_t tsc;
	FILE *f;
	int r = 0;

	snprintf(path, sizeof(path), "%s/bells", dir);
	f = fopen(path, "re");
	if (!f)
		return -errno;
	while (r == 0 && fscanf(f, "%u %15s %" SCNu64, &number, word, &tsc) == 3)
		if (number == cpu)
			r = add_bell(ret, word, tsc);
	fclose(f);
	return r;
}

static int read_event(const char *path, uint64_t *ret)
{
	FILE *f = fopen(path, "re");
	int n;

	if (!f)
		return -errno;
	n = fscanf(f, "%" SCNu64, ret);
	fclose(f);
	return n == 1 ? 0 : -EBADMSG;
}

/* include/uapi/linux/perf_event.h, cap_user_time_zero */
static int64_t perf_ns(const struct manifest *m, uint64_t tsc)
{
	return (int64_t)(m->time_zero +
			 (uint64_t)((unsigned __int128)tsc * m->time_mult >> m->time_shift));
}

static int wrong(const struct manifest_cpu *c, const char *what, int64_t ns)
{
	fprintf(stderr, "CPU %" PRIu32 ": %s by %" PRId64 " ns\n", c->cpu, what, ns);
	return 1;
}

/* How long the CPU was dark behind its stop number STOP; -1: it did not start again. */
static int64_t dark_ns(const struct manifest *m, const struct bells *b, size_t stop)
{
	if (stop + 1 >= b->n_starts)
		return -1;
	return perf_ns(m, b->starts[stop + 1]) - perf_ns(m, b->stops[stop]);
}

static int compare_cpu(const struct manifest *m, const struct manifest_cpu *c,
		       const struct bells *b, size_t stop, int64_t event)
{
	const int64_t stopped = perf_ns(m, b->stops[stop]), dark = dark_ns(m, b, stop);
	const int64_t claimed = (int64_t)c->stop_ns, trigger = (int64_t)m->perf_ns;
	int n = 0;

	printf("CPU %" PRIu32
	       ": traced until %.1f us behind the event, %.1f us behind the trigger, "
	       "as reported %.1f us",
	       c->cpu, (double)(stopped - event) / 1e3, (double)(stopped - trigger) / 1e3,
	       (double)(claimed - trigger) / 1e3);
	if (dark >= 0 && c->dark_ns != MANIFEST_ABSENT)
		printf("; dark for %.1f us, as reported %.1f us", (double)dark / 1e3,
		       (double)c->dark_ns / 1e3);
	putchar('\n');
	if (c->stop_ns == MANIFEST_ABSENT || c->dark_ns == MANIFEST_ABSENT || dark < 0)
		n += wrong(c, "no stop, or no restart", 0);
	if (stopped < event)
		n += wrong(c, "the trace ends before the event", event - stopped);
	if (stopped > claimed)
		n += wrong(c, "was traced longer than its stop says", stopped - claimed);
	if (dark > (int64_t)c->dark_ns + ROUNDING_NS)
		n += wrong(c, "was dark for longer than reported", dark - (int64_t)c->dark_ns);
	return n;
}

int times_compare(const struct manifest *m, const char *dir, const char *event, const int *stops)
{
	uint64_t tsc;
	int r = read_event(event, &tsc), n = 0;

	if (r < 0)
		return r;
	if (!m->have_clock || m->perf_ns == MANIFEST_ABSENT)
		return -ENODATA;
	printf("The trigger is %.1f us behind the event\n",
	       (double)((int64_t)m->perf_ns - perf_ns(m, tsc)) / 1e3);
	if ((int64_t)m->perf_ns < perf_ns(m, tsc)) {
		fprintf(stderr, "the trigger is earlier than its event\n");
		n++;
	}
	for (size_t i = 0; i < m->n_cpus; i++) {
		struct bells b = {0};

		if (stops[i] < 0)
			continue;
		r = read_bells(dir, m->cpus[i].cpu, &b);
		if (r == 0 && (size_t)stops[i] >= b.n_stops)
			r = -EBADMSG;
		if (r == 0)
			n += compare_cpu(m, &m->cpus[i], &b, (size_t)stops[i], perf_ns(m, tsc));
		bells_done(&b);
		if (r < 0)
			return r;
	}
	return n;
}
