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

/* The times that the log has of one CPU around the snapshot's stop, on the perf clock. */
struct truth {
	bool known;
	int64_t stop, start, next_stop;
};

/* The CPU's restart is behind its stop number STOP, and so is the stop by which tracing ends. */
static int look_up(const struct manifest *m, const struct bells *b, size_t stop, struct truth *ret)
{
	if (stop + 1 >= b->n_stops || stop + 1 >= b->n_starts)
		return -EBADMSG;
	*ret = (struct truth){true, perf_ns(m, b->stops[stop]), perf_ns(m, b->starts[stop + 1]),
			      perf_ns(m, b->stops[stop + 1])};
	return 0;
}

static int read_truth(const struct manifest *m, const char *dir, const int *stops,
		      struct truth *ret)
{
	int r = 0;

	for (size_t i = 0; i < m->n_cpus && r == 0; i++) {
		struct bells b = {0};

		if (stops[i] < 0)
			continue;
		r = read_bells(dir, m->cpus[i].cpu, &b);
		if (r == 0)
			r = look_up(m, &b, (size_t)stops[i], &ret[i]);
		bells_done(&b);
	}
	return r;
}

static int compare_window(const struct manifest_cpu *c, const struct truth *t, int64_t trigger,
			  int64_t event)
{
	const int64_t claimed = (int64_t)c->stop_ns;
	int n = 0;

	printf("CPU %" PRIu32
	       ": traced until %.1f us behind the event, %.1f us behind the trigger, "
	       "as reported %.1f us",
	       c->cpu, (double)(t->stop - event) / 1e3, (double)(t->stop - trigger) / 1e3,
	       (double)(claimed - trigger) / 1e3);
	if (t->stop < event)
		n += wrong(c, "the trace ends before the event", event - t->stop);
	if (c->stop_ns == MANIFEST_ABSENT || t->stop > claimed)
		n += wrong(c, "was traced longer than its stop says", t->stop - claimed);
	return n;
}

/* The recorder notes a time, stops all CPUs by one call, copies, restarts each CPU, and notes when
 * that call has returned (capture/ring/freeze.h, dark_ns). FIRST: the first stop of all CPUs. */
static int compare_dark(const struct manifest_cpu *c, const struct truth *t, int64_t trigger,
			int64_t first)
{
	const int64_t least = t->start - first, most = t->next_stop - trigger,
		      claimed = (int64_t)c->dark_ns;

	if (c->dark_ns == MANIFEST_ABSENT)
		return wrong(c, "the bundle has no dark time", 0);
	printf("; dark for %.1f us, %.1f us since the first stop of all CPUs, as reported %.1f us\n",
	       (double)(t->start - t->stop) / 1e3, (double)least / 1e3, (double)claimed / 1e3);
	if (claimed + ROUNDING_NS < least)
		return wrong(c, "was dark for longer than reported", least - claimed);
	if (claimed > most + ROUNDING_NS)
		return wrong(c, "was dark for less than reported", claimed - most);
	return 0;
}

static int compare_all(const struct manifest *m, const struct truth *truth, int64_t event)
{
	const int64_t trigger = (int64_t)m->perf_ns;
	int64_t first = INT64_MAX;
	int n = 0;

	printf("The trigger is %.1f us behind the event\n", (double)(trigger - event) / 1e3);
	if (trigger < event) {
		fprintf(stderr, "the trigger is earlier than its event\n");
		n++;
	}
	for (size_t i = 0; i < m->n_cpus; i++)
		if (truth[i].known)
			first = MIN_OF(first, truth[i].stop);
	for (size_t i = 0; i < m->n_cpus; i++) {
		if (!truth[i].known)
			continue;
		n += compare_window(&m->cpus[i], &truth[i], trigger, event);
		n += compare_dark(&m->cpus[i], &truth[i], trigger, first);
	}
	return n;
}

int times_compare(const struct manifest *m, const char *dir, const char *event, const int *stops)
{
	struct truth *truth = calloc(m->n_cpus + 1, sizeof(*truth));
	uint64_t tsc = 0;
	int r = truth ? read_event(event, &tsc) : -ENOMEM;

	if (r == 0 && (!m->have_clock || m->perf_ns == MANIFEST_ABSENT))
		r = -ENODATA;
	if (r == 0)
		r = read_truth(m, dir, stops, truth);
	if (r == 0)
		r = compare_all(m, truth, perf_ns(m, tsc));
	free(truth);
	return r;
}
