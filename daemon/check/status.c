/*
 * The counters of all parts of the recorder as one JSON object. Everything that any part dropped,
 * skipped or refused is counted here.
 */
#include "daemon/check/status.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "daemon/store/entry.h"
#include "proto/base.h"

#ifndef PTSNAP_VERSION
#define PTSNAP_VERSION "0"
#endif

#define USEC_PER_SEC 1000000u

void selfstat_init(struct selfstat *s, uint64_t now_usec)
{
	*s = (struct selfstat){.rss_bytes = ENTRY_ABSENT, .seen_usec = now_usec};
}

static uint64_t cpu_usec(void)
{
	struct rusage u;

	if (getrusage(RUSAGE_SELF, &u) < 0)
		return 0;
	return (uint64_t)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * USEC_PER_SEC +
	       (uint64_t)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

/* proc(5), /proc/pid/statm: the second number, in pages. */
static uint64_t rss_bytes(const char *statm)
{
	FILE *f = fopen(statm, "re");
	uint64_t pages;
	long size = sysconf(_SC_PAGESIZE);
	int n;

	if (!f)
		return ENTRY_ABSENT;
	n = fscanf(f, "%*u %" SCNu64, &pages);
	fclose(f);
	return n == 1 && size > 0 ? pages * (uint64_t)size : ENTRY_ABSENT;
}

void selfstat_look(struct selfstat *s, uint64_t now_usec, uint64_t records, const char *statm)
{
	s->cpu_usec = cpu_usec();
	s->rss_bytes = rss_bytes(statm);
	if (now_usec < s->seen_usec + USEC_PER_SEC)
		return;
	s->records_per_second =
		(records - s->seen_records) * USEC_PER_SEC / (now_usec - s->seen_usec);
	s->seen_usec = now_usec;
	s->seen_records = records;
}

static void put(struct json_object *to, const char *key, struct json_object *value)
{
	if (json_object_object_add(to, key, value) < 0)
		json_object_put(value);
}

static void put_text(struct json_object *to, const char *key, const char *value)
{
	put(to, key, value ? json_object_new_string(value) : NULL);
}

static void put_number(struct json_object *to, const char *key, uint64_t value)
{
	put(to, key, json_object_new_uint64(value));
}

static struct json_object *status_cpus(const struct intake *in)
{
	const struct source *s = in->source;
	struct json_object *cpus = json_object_new_array();

	for (size_t i = 0; cpus && i < s->n_cpus; i++) {
		struct json_object *cpu = json_object_new_object();

		put_number(cpu, "cpu", s->cpus[i].cpu);
		put_text(cpu, "state", source_cpu_state_name(s->cpus[i].state));
		put_text(cpu, "why", *s->cpus[i].why ? s->cpus[i].why : NULL);
		put(cpu, "node", s->cpus[i].node < 0 ? NULL : json_object_new_int(s->cpus[i].node));
		put_number(cpu, "auxBytes", s->cpus[i].pt.aux_size);
		put_number(cpu, "dataBytes",
			   s->cpus[i].sideband.data ? s->cpus[i].sideband.data_size
						    : s->cpus[i].pt.data_size);
		put(cpu, "instructions", NULL); /* no source knows */
		put_number(cpu, "lost", in->cpus[i].lost);
		put_number(cpu, "darkTimes", s->cpus[i].dark.count);
		put_number(cpu, "darkNSec", s->cpus[i].dark.total_ns);
		put(cpu, "silent", json_object_new_boolean(in->cpus[i].silence.is));
		json_object_array_add(cpus, cpu);
	}
	return cpus;
}

static struct json_object *status_timeline(const struct intake *in)
{
	struct json_object *o = json_object_new_object();
	struct timeline_stats stats;
	struct reread_stats again;

	timeline_get_stats(in->timeline, &stats);
	reread_get_stats(in->reread, &again);
	put_number(o, "records", stats.records);
	put_number(o, "folded", stats.folded);
	put_number(o, "dropped", stats.dropped);
	put_number(o, "lost", stats.lost);
	put_number(o, "bad", in->bad_records);
	put_number(o, "bytes", stats.log_bytes_used + stats.base_bytes_used);
	put_number(o, "maxBytes", stats.most_bytes);
	put_number(o, "processes", procs_alive(in->procs));
	put_number(o, "mappings", stats.mappings + stats.log_mappings);
	put_number(o, "processesWithoutFacts", procs_dropped(in->procs));
	put_number(o, "filesNotListed", files_dropped(in->files));
	put_number(o, "openersStuck", files_stuck(in->files));
	put_number(o, "sweeps", again.sweeps);
	put_number(o, "processesRead", again.told);
	put_number(o, "processesUnread", again.failed);
	return o;
}

static struct json_object *status_snapshots(const struct status_from *from)
{
	const struct store_stats *stats = store_get_stats(from->store);
	struct json_object *o = json_object_new_object();
	struct store_pins pins;

	store_get_pins(from->store, &pins);
	put_number(o, "done", stats->done);
	put_number(o, "failed", stats->failed);
	put_number(o, "running", jobs_running(from->jobs));
	put_number(o, "stored", store_count(from->store));
	put_number(o, "storedBytes", store_use(from->store));
	put_number(o, "pinned", pins.n);
	put_number(o, "pinnedBytes", pins.bytes);
	put_number(o, "evicted", stats->evicted);
	put_number(o, "lost", stats->lost);
	put_number(o, "triggers", from->trigger->n);
	put_number(o, "joined", from->trigger->joined);
	put_number(o, "refused", from->trigger->refused);
	put_number(o, "limited", from->trigger->limited);
	return o;
}

void status_look(const struct status_from *from)
{
	struct timeline_stats stats;

	timeline_get_stats(from->intake->timeline, &stats);
	selfstat_look(from->self, now_usec(CLOCK_MONOTONIC), stats.records, "/proc/self/statm");
}

static struct json_object *status_self(const struct status_from *from)
{
	const struct selfstat *self = from->self;
	uint64_t dark = jobs_last_dark_ns(from->jobs);
	struct json_object *o;

	if (!self)
		return NULL;
	status_look(from);
	o = json_object_new_object();
	put_number(o, "cpuUSec", self->cpu_usec);
	put(o, "rssBytes",
	    self->rss_bytes != ENTRY_ABSENT ? json_object_new_uint64(self->rss_bytes) : NULL);
	put_number(o, "recordsPerSecond", self->records_per_second);
	put(o, "lastDarkNSec", dark != ENTRY_ABSENT ? json_object_new_uint64(dark) : NULL);
	return o;
}

static struct json_object *status_command(const struct command *c)
{
	struct json_object *o;

	if (c->pid == 0)
		return NULL;
	o = json_object_new_object();
	put_number(o, "pid", (uint64_t)c->pid);
	put(o, "running", json_object_new_boolean(c->running));
	put(o, "exitStatus", c->running ? NULL : json_object_new_int(c->exit_status));
	return o;
}

/* The perf_event_attr in use, and the settings that led to them; null where there is none. */
static struct json_object *status_attrs(const struct source *s)
{
	struct json_object *o = json_object_new_object();

	put_text(o, "preset", s->preset);
	put_text(o, "terms", s->pt_terms);
	put_text(o, "pt", s->pt_attr);
	put_text(o, "sideband", s->sideband_attr);
	put_text(o, "sidebandMissing", s->sideband_missing);
	put_text(o, "sizesNote", s->sizes_note && *s->sizes_note ? s->sizes_note : NULL);
	put(o, "clockIsMonotonic", json_object_new_boolean(s->clock_is_monotonic));
	return o;
}

static struct json_object *status_yielded(const struct lease *l)
{
	struct json_object *o;

	if (!l || !l->away)
		return NULL;
	o = json_object_new_object();
	put(o, "untilUSec",
	    l->until_usec == LEASE_FOR_EVER ? NULL : json_object_new_uint64(l->until_usec));
	put_number(o, "uid", l->uid);
	put_number(o, "pid", l->pid);
	return o;
}

const char *status_state(const struct status_from *from)
{
	const struct source *s = from->intake->source;
	size_t tracing = 0, away = 0;

	/* Processes that COMMAND started may outlive COMMAND. */
	if (from->command->emulated && !from->command->running &&
	    procs_alive(from->intake->procs) == 0)
		return "ended";
	if (from->lease && from->lease->away)
		return "yielded";
	for (size_t i = 0; i < s->n_cpus; i++) {
		tracing += s->cpus[i].state == SOURCE_CPU_TRACING;
		away += s->cpus[i].state == SOURCE_CPU_OFFLINE;
	}
	if (tracing == 0)
		return "degraded";
	return tracing + away < s->n_cpus ? "partial" : "tracing";
}

struct json_object *status_for_all(const struct status_from *from)
{
	const struct store_stats *stats = store_get_stats(from->store);
	const struct source *s = from->intake->source;
	struct json_object *o = json_object_new_object(), *snapshots = json_object_new_object();

	if (!o || !snapshots) {
		json_object_put(o);
		json_object_put(snapshots);
		return NULL;
	}
	put_text(o, "version", PTSNAP_VERSION);
	put_text(o, "state", status_state(from));
	put_text(o, "source", s->ops->name);
	put_text(o, "terms", s->pt_terms);
	put_number(o, "pid", (uint64_t)getpid());
	put_number(o, "uptimeUSec", now_usec(CLOCK_MONOTONIC) - from->started_usec);
	put_number(snapshots, "done", stats->done);
	put_number(snapshots, "failed", stats->failed);
	put_number(snapshots, "running", jobs_running(from->jobs));
	put(o, "snapshots", snapshots);
	return o;
}

struct json_object *status_to_json(const struct status_from *from)
{
	const struct source *s = from->intake->source;
	struct json_object *o = json_object_new_object(), *queue = json_object_new_object();
	struct drain_stats drain;

	if (!o || !queue) {
		json_object_put(o);
		json_object_put(queue);
		return NULL;
	}
	drain_get_stats(from->intake->drain, &drain);
	put_number(queue, "bytes", drain.queue_bytes);
	put_number(queue, "used", drain.queue_used);
	put_number(queue, "most", drain.queue_most);
	put_number(queue, "stalls", drain.stalls);
	put_text(o, "version", PTSNAP_VERSION);
	put_text(o, "state", status_state(from));
	put(o, "yielded", status_yielded(from->lease));
	put_text(o, "source", s->ops->name);
	put_text(o, "terms", s->pt_terms);
	put(o, "attrs", status_attrs(s));
	put_number(o, "pid", (uint64_t)getpid());
	put_number(o, "uptimeUSec", now_usec(CLOCK_MONOTONIC) - from->started_usec);
	put(o, "cpus", status_cpus(from->intake));
	put(o, "timeline", status_timeline(from->intake));
	put(o, "queue", queue);
	put(o, "snapshots", status_snapshots(from));
	put(o, "triggers", trigger_to_json(from->trigger));
	put(o, "command", status_command(from->command));
	put(o, "self", status_self(from));
	return o;
}
