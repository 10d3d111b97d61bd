/*
 * The status in Prometheus' text format. Values of labels may be strangers' words: they are escaped
 * as the format demands; entry.c and label.c admit no control characters.
 */
#include "daemon/check/metrics_writer.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/base.h"
#include "proto/memfd.h"

#ifndef PTSNAP_VERSION
#define PTSNAP_VERSION "0"
#endif

static void head(FILE *f, const char *name, const char *type, const char *help)
{
	fprintf(f, "# HELP ptsnap_%s %s\n# TYPE ptsnap_%s %s\n", name, help, name, type);
}

static void number(FILE *f, const char *name, const char *type, const char *help, uint64_t value)
{
	head(f, name, type, help);
	fprintf(f, "ptsnap_%s %" PRIu64 "\n", name, value);
}

static void counter(FILE *f, const char *name, const char *help, uint64_t value)
{
	number(f, name, "counter", help, value);
}

static void gauge(FILE *f, const char *name, const char *help, uint64_t value)
{
	if (value != ENTRY_ABSENT)
		number(f, name, "gauge", help, value);
}

static void seconds(FILE *f, const char *name, const char *type, const char *help, uint64_t usec)
{
	head(f, name, type, help);
	fprintf(f, "ptsnap_%s %" PRIu64 ".%06" PRIu64 "\n", name, usec / 1000000, usec % 1000000);
}

static void quoted(FILE *f, const char *key, const char *value)
{
	fprintf(f, "%s=\"", key);
	for (; *value; value++) {
		if (*value == '\\' || *value == '"')
			fputc('\\', f);
		if (*value == '\n')
			fputs("\\n", f);
		else
			fputc(*value, f);
	}
	fputc('"', f);
}

static void put_cpus(FILE *f, const struct intake *in)
{
	const struct source *s = in->source;

	head(f, "cpu_tracing", "gauge", "Whether the CPU is traced.");
	for (size_t i = 0; i < s->n_cpus; i++)
		fprintf(f, "ptsnap_cpu_tracing{cpu=\"%u\",state=\"%s\"} %d\n", s->cpus[i].cpu,
			source_cpu_state_name(s->cpus[i].state),
			s->cpus[i].state == SOURCE_CPU_TRACING);
	head(f, "cpu_ring_bytes", "gauge", "Size of the CPU's trace ring.");
	for (size_t i = 0; i < s->n_cpus; i++)
		fprintf(f, "ptsnap_cpu_ring_bytes{cpu=\"%u\"} %zu\n", s->cpus[i].cpu,
			(size_t)s->cpus[i].pt.aux_size);
	head(f, "cpu_dark_total", "counter",
	     "Times in which the CPU was not traced, also for snapshots, that have ended.");
	for (size_t i = 0; i < s->n_cpus; i++)
		fprintf(f, "ptsnap_cpu_dark_total{cpu=\"%u\"} %" PRIu64 "\n", s->cpus[i].cpu,
			s->cpus[i].dark.count);
	head(f, "cpu_dark_seconds_total", "counter", "For how long they lasted in all.");
	for (size_t i = 0; i < s->n_cpus; i++)
		fprintf(f, "ptsnap_cpu_dark_seconds_total{cpu=\"%u\"} %" PRIu64 ".%09" PRIu64 "\n",
			s->cpus[i].cpu, s->cpus[i].dark.total_ns / 1000000000,
			s->cpus[i].dark.total_ns % 1000000000);
	head(f, "cpu_silent", "gauge",
	     "Whether the CPU's trace unit writes nothing although code runs.");
	for (size_t i = 0; i < s->n_cpus; i++)
		fprintf(f, "ptsnap_cpu_silent{cpu=\"%u\"} %d\n", s->cpus[i].cpu,
			in->cpus[i].silence.is);
	counter(f, "cpu_silences_total", "How often a CPU was found to be silent.", in->silences);
	head(f, "cpu_records_lost_total", "counter", "Sideband records that found no room.");
	for (size_t i = 0; i < s->n_cpus; i++)
		fprintf(f, "ptsnap_cpu_records_lost_total{cpu=\"%u\"} %" PRIu64 "\n",
			s->cpus[i].cpu, in->cpus[i].lost);
	head(f, "cpu_aux_records_lost_total", "counter",
	     "Records about the trace that found no room.");
	for (size_t i = 0; i < s->n_cpus; i++)
		fprintf(f, "ptsnap_cpu_aux_records_lost_total{cpu=\"%u\"} %" PRIu64 "\n",
			s->cpus[i].cpu, in->cpus[i].aux_lost);
}

static void put_timeline(FILE *f, const struct intake *in)
{
	struct timeline_stats stats;

	timeline_get_stats(in->timeline, &stats);
	counter(f, "records_total", "Sideband records taken in.", stats.records);
	counter(f, "records_dropped_total", "Sideband records that the timeline had no room for.",
		stats.dropped);
	counter(f, "records_bad_total", "Sideband records that contradicted themselves.",
		in->bad_records);
	gauge(f, "timeline_bytes", "Memory that the timeline takes.", stats.taken_bytes);
	gauge(f, "timeline_limit_bytes", "Memory that the timeline may take.", stats.most_bytes);
	gauge(f, "processes", "Processes that live.", procs_alive(in->procs));
}

static void put_store(FILE *f, const struct status_from *from)
{
	const struct store_stats *stats = store_get_stats(from->store);
	struct store_pins pins;

	store_get_pins(from->store, &pins);
	head(f, "snapshots_total", "counter", "Snapshots that have ended, by their result.");
	fprintf(f, "ptsnap_snapshots_total{result=\"done\"} %" PRIu64 "\n", stats->done);
	fprintf(f, "ptsnap_snapshots_total{result=\"failed\"} %" PRIu64 "\n", stats->failed);
	gauge(f, "snapshots_running", "Snapshots under way.", jobs_running(from->jobs));
	gauge(f, "snapshots_stored", "Snapshots that can be fetched.", store_count(from->store));
	gauge(f, "stored_bytes", "Disk that stored snapshots take.", store_use(from->store));
	gauge(f, "snapshots_pinned", "Snapshots that stay until they are unpinned.", pins.n);
	gauge(f, "pinned_bytes", "Disk that pinned snapshots take.", pins.bytes);
	counter(f, "snapshots_evicted_total", "Snapshots removed to make room.", stats->evicted);
	counter(f, "triggers_total", "Requests for a snapshot.", from->trigger->n);
	counter(f, "triggers_joined_total", "Requests that joined a snapshot under way.",
		from->trigger->joined);
	counter(f, "triggers_refused_total", "Requests refused as too many were under way.",
		from->trigger->refused);
	counter(f, "triggers_limited_total", "Requests refused by a limit of their rate.",
		from->trigger->limited);
}

static void put_snapshot(FILE *f, const struct entry *e)
{
	fputs("ptsnap_snapshot_timestamp_seconds{", f);
	quoted(f, "id", e->id);
	fputc(',', f);
	quoted(f, "state", entry_state_name(e->state));
	fputc(',', f);
	quoted(f, "trigger", e->trigger);
	if (*e->unit) {
		fputc(',', f);
		quoted(f, "unit", e->unit);
	}
	for (size_t i = 0; i < e->labels.n; i++) {
		fputs(",label_", f);
		quoted(f, e->labels.list[i].key, e->labels.list[i].value);
	}
	fprintf(f, "} %" PRIu64 ".%06" PRIu64 "\n", e->realtime_usec / 1000000,
		e->realtime_usec % 1000000);
}

static void put_self(FILE *f, const struct status_from *from)
{
	const struct selfstat *self = from->self;

	seconds(f, "cpu_seconds_total", "counter", "CPU time of the recorder.", self->cpu_usec);
	gauge(f, "resident_bytes", "Memory of the recorder.", self->rss_bytes);
	counter(f, "metrics_skipped_total",
		"Times that this file was not written, as the last one still was.",
		self->metrics_skipped);
	gauge(f, "records_per_second", "Sideband records that come.", self->records_per_second);
	if (jobs_last_dark_ns(from->jobs) != ENTRY_ABSENT)
		seconds(f, "last_dark_seconds", "gauge",
			"The longest time that a CPU was not traced for the last snapshot.",
			jobs_last_dark_ns(from->jobs) / 1000);
}

int metrics_make(const struct status_from *from, char **ret, size_t *ret_size)
{
	FILE *f = open_memstream(ret, ret_size);
	size_t n = store_count(from->store);
	bool failed;

	if (!f)
		return -ENOMEM;
	head(f, "info", "gauge", "The recorder.");
	fprintf(f, "ptsnap_info{version=\"%s\",source=\"%s\",state=\"%s\"} 1\n", PTSNAP_VERSION,
		from->intake->source->ops->name, status_state(from));
	put_cpus(f, from->intake);
	put_timeline(f, from->intake);
	put_store(f, from);
	if (n > 0)
		head(f, "snapshot_timestamp_seconds", "gauge",
		     "When the newest snapshots were triggered.");
	for (size_t i = n - MIN_OF(n, METRICS_SNAPSHOTS); i < n; i++)
		put_snapshot(f, store_at(from->store, i));
	put_self(f, from);
	failed = ferror(f);
	if (fclose(f) < 0 || failed) {
		free(*ret);
		return -ENOMEM;
	}
	return 0;
}

int metrics_write(const char *path, const char *text, size_t size)
{
	CLEANUP_CLOSE int fd = -EBADF;
	char temporary[PATH_MAX];
	int r;

	if (snprintf(temporary, sizeof(temporary), "%s.XXXXXX", path) >= (int)sizeof(temporary))
		return -ENAMETOOLONG;
	/* A new file, so that no file or link of another user is written to. */
	fd = mkostemp(temporary, O_CLOEXEC);
	if (fd < 0)
		return -errno;
	r = fchmod(fd, 0644) < 0 ? -errno : memfd_write_all(fd, text, size);
	if (r == 0 && rename(temporary, path) < 0)
		r = -errno;
	if (r < 0)
		unlink(temporary);
	return r;
}
