/*
 * Chooses the trigger of a request and fires it: the request joins a snapshot that is about to be
 * taken, is refused, or begins a new one.
 */
#include "daemon/trigger/trigger.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "capture/proc/number.h"
#include "capture/ring/clock.h"
#include "daemon/base/log.h"
#include "daemon/base/unitname.h"
#include "daemon/gather/evidence.h"
#include "daemon/store/entry.h"
#include "proto/base.h"

/* Field 39, processor (Documentation/filesystems/proc.rst, table 1-4), counted from field 3 on. */
#define FIELD (39 - 3)

#define NSEC_PER_USEC 1000u
#define NSEC_PER_MSEC 1000000u

/* Refusals in the log: so many at once, and so many in an hour. */
#define TELL_BURST 10u
#define TELL_USEC  3600000000u

static uint32_t parse_stat(const char *stat)
{
	/* The name in field 2 may have blanks and brackets; the fields behind it have none. */
	const char *s = strrchr(stat, ')');
	uint32_t cpu = 0;

	if (!s || s[1] != ' ')
		return ENTRY_NO_CPU;
	s += 2;
	for (int field = 0; field < FIELD; field++) {
		s = strchr(s, ' ');
		if (!s)
			return ENTRY_NO_CPU;
		s++;
	}
	if (*s < '0' || *s > '9')
		return ENTRY_NO_CPU;
	for (; *s >= '0' && *s <= '9'; s++) {
		cpu = 10 * cpu + (uint32_t)(*s - '0');
		if (cpu >= CPULIST_MAX)
			return ENTRY_NO_CPU;
	}
	return *s == ' ' || *s == '\n' ? cpu : ENTRY_NO_CPU;
}

uint32_t sender_last_cpu(const char *proc, uint64_t pid)
{
	char path[PATH_MAX], stat[1024];
	CLEANUP_CLOSE int fd = -EBADF;
	ssize_t n;

	/* 0: a process of another pid namespace, or the kernel. */
	if (pid == 0 || pid > INT32_MAX)
		return ENTRY_NO_CPU;
	snprintf(path, sizeof(path), "%s/%" PRIu64 "/stat", proc, pid);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (fd < 0)
		return ENTRY_NO_CPU;
	n = read(fd, stat, sizeof(stat) - 1);
	if (n <= 0)
		return ENTRY_NO_CPU;
	stat[n] = '\0';
	return parse_stat(stat);
}

int trigger_init(struct trigger *t, struct source *source, struct store *store, struct jobs *jobs,
		 const struct config *config)
{
	struct clock_now now;
	int r;

	clock_read(&now);
	*t = (struct trigger){.source = source, .store = store, .jobs = jobs};
	bucket_init(&t->telling, TELL_BURST, TELL_USEC, now.monotonic_ns / NSEC_PER_USEC);
	t->arming = (struct armed_setup){.paths = &condition_host_paths,
					 .rest_usec = ARMED_REST_USEC,
					 .broken_usec = ARMED_BROKEN_USEC};
	r = trigger_use(t, config);
	return r < 0 ? r : fill_init(&t->fill, source, now.monotonic_ns);
}

void trigger_done(struct trigger *t)
{
	trigger_disarm(t);
	trigger_set_free(TAKE_PTR(t->set));
	unitwatch_free(t->watch);
	fill_done(&t->fill);
}

void trigger_use_set(struct trigger *t)
{
	struct clock_now now;

	clock_read(&now);
	gate_use(&t->gate, t->set, t->config, now.monotonic_ns / NSEC_PER_USEC);
}

/* Adds the triggers of administrators to SET, which a reload keeps. A file wins over one of the
 * same name. 0 or -ENOMEM. */
static int keep_runtime(const struct trigger *t, struct trigger_set *set)
{
	for (size_t i = 0; t->set && i < t->set->n; i++) {
		const struct trigger_object *o = &t->set->all[i];
		struct trigger_object copy;

		if (!o->runtime)
			continue;
		if (trigger_set_find(set, o->name) || set->n == TRIGGER_SET_MAX) {
			log_warning("trigger %s is removed: files have it now, or too many others",
				    o->name);
			continue;
		}
		if (trigger_object_copy(o, &copy) < 0)
			return -ENOMEM;
		(void)trigger_set_add(set, &copy);
	}
	return 0;
}

int trigger_use(struct trigger *t, const struct config *config)
{
	struct trigger_set *set = trigger_set_copy(config->triggers);

	if (!set || keep_runtime(t, set) < 0) {
		trigger_set_free(set);
		return -ENOMEM;
	}
	trigger_set_free(t->set);
	t->set = set;
	t->config = config;
	trigger_use_set(t);
	return 0;
}

void trigger_look(struct trigger *t)
{
	struct clock_now now;

	clock_read(&now);
	fill_look(&t->fill, now.monotonic_ns);
	trigger_end_conditions(t);
}

void request_init(struct request *q, const char *kind, const char *name)
{
	*q = (struct request){
		.pid = ENTRY_ABSENT,
		.uid = ENTRY_ABSENT,
		.last_bytes = ENTRY_ABSENT,
		.last_ns = ENTRY_ABSENT,
		.decode = true,
		.deadline_ns = ENTRY_ABSENT,
		.cpu = ENTRY_NO_CPU,
	};
	snprintf(q->kind, sizeof(q->kind), "%s", kind);
	snprintf(q->name, sizeof(q->name), "%s", name);
}

/* Puts what O does into Q; O NULL: there is no trigger. */
static int choose(const struct trigger_object *o, struct request *q)
{
	if (!o)
		return TRIGGER_UNKNOWN;
	strcpy(q->trigger, o->name);
	snprintf(q->kind, sizeof(q->kind), "%s", trigger_on_name(o->on));
	/* With built-in triggers the name says what happened. */
	if (!o->built_in || o->on == TRIGGER_ON_UNIT)
		strcpy(q->name, o->name);
	if (*o->reason)
		strcpy(q->reason, o->reason);
	q->labels = o->labels;
	q->last_bytes = o->last_bytes;
	q->last_ns = o->last_ns;
	q->decode = o->decode;
	q->deadline_ns = o->deadline_ns;
	return 0;
}

int trigger_choose(const struct trigger *t, const char *name, struct request *q)
{
	const struct trigger_object *o = trigger_set_find(t->set, name);

	if (!o || !o->enabled || (o->on != TRIGGER_ON_CONTROL && o->on != TRIGGER_ON_UNIT))
		return TRIGGER_UNKNOWN;
	if (o->on == TRIGGER_ON_UNIT && o->built_in)
		o = trigger_set_for_unit(t->set, q->unit, false);
	else if (o->on == TRIGGER_ON_UNIT && !trigger_object_has_unit(o, q->unit))
		o = NULL;
	return choose(o, q);
}

int trigger_choose_signal(const struct trigger *t, struct request *q)
{
	return choose(trigger_set_for_signal(t->set, t->names, q->uid), q);
}

int trigger_choose_condition(const struct trigger *t, const char *name, struct request *q)
{
	return choose(trigger_set_find(t->set, name), q);
}

int trigger_choose_watched(const struct trigger *t, struct request *q)
{
	return choose(trigger_set_for_unit(t->set, q->unit, true), q);
}

/* Notes the time of the request on all clocks. The TSC of the trace can differ from the host's; the
 * latest of all CPUs counts, as an idle CPU or one that is away may be behind. */
static void trigger_stamp(const struct trigger *t, struct request *q)
{
	struct clock_now now;

	clock_read(&now);
	q->realtime_ns = now.realtime_ns;
	q->monotonic_ns = now.monotonic_ns;
	q->tsc = now.tsc;
	if (t->source->ops->read_tsc) {
		q->tsc = source_tsc(t->source, 0);
		for (uint32_t i = 1; i < t->source->n_cpus; i++)
			q->tsc = MAX_OF(q->tsc, source_tsc(t->source, i));
	}
	if (t->source->clock.valid)
		q->perf_ns = clock_tsc_to_ns(&t->source->clock, q->tsc);
	else
		q->perf_ns = t->source->clock_is_monotonic ? now.monotonic_ns : ENTRY_ABSENT;
}

static void trigger_describe(struct trigger *t, const struct request *q, struct entry *ret)
{
	entry_init(ret);
	strcpy(ret->trigger, q->kind);
	strcpy(ret->name, q->name);
	strcpy(ret->reason, q->reason);
	strcpy(ret->unit, q->unit);
	strcpy(ret->sender_unit, q->sender_unit);
	ret->labels = q->labels;
	ret->pid = q->pid;
	ret->uid = q->uid;
	ret->realtime_usec = q->realtime_ns / 1000;
	host_boot_id(ret->boot_id);
	store_new_id(t->store, ret->realtime_usec, ret->boot_id, ret->id);
}

static int trigger_begin(struct trigger *t, const struct request *q, struct trigger_answer *ret)
{
	struct log_fields fields;
	struct entry e;
	int r;

	trigger_describe(t, q, &e);
	entry_log_fields(&e, &fields);
	/* Logged first, as a job that cannot start ends, and logs that, within jobs_add(). */
	log_event(LOG_INFO, LOG_EVENT_SNAPSHOT_BEGUN, &fields, "snapshot %s begun (%s%s%s)", e.id,
		  q->kind, *q->reason ? ": " : "", q->reason);
	r = jobs_add(t->jobs, q, &e);
	if (r < 0)
		log_error("snapshot %s could not be begun: %s", e.id, strerror(-r));
	else
		strcpy(ret->id, e.id);
	return r;
}

/* Whether the CPUs have been traced for as long as O wants; else RET has the reason. */
static bool trigger_filled(struct trigger *t, const struct trigger_object *o,
			   const struct request *q, struct trigger_answer *ret)
{
	uint64_t ns;

	fill_look(&t->fill, q->monotonic_ns);
	ns = fill_ns(&t->fill, q->cpu, q->monotonic_ns);
	if (ns >= o->min_fill_ns)
		return true;
	snprintf(ret->why, sizeof(ret->why),
		 "tracing began %" PRIu64 " ms ago, and trigger %s wants %" PRIu64
		 " ms of it (MinFill=)",
		 ns / NSEC_PER_MSEC, o->name, o->min_fill_ns / NSEC_PER_MSEC);
	return false;
}

/* Takes a token for the trigger; false, with the reason in RET: there is none. Logs a limit once
 * until the trigger fires again. */
static bool trigger_passes(struct trigger *t, struct gate_trigger *g, const struct request *q,
			   struct trigger_answer *ret)
{
	struct log_fields fields = LOG_NO_FIELDS;
	bool *told = &gate_share_of(g, q->uid)->told;

	ret->retry_usec = gate_pass(&t->gate, g, q->uid, q->monotonic_ns / NSEC_PER_USEC);
	if (ret->retry_usec == 0) {
		*told = false;
		return true;
	}
	snprintf(ret->why, sizeof(ret->why),
		 "trigger %s has fired too often; again in %" PRIu64 " ms", g->name,
		 (ret->retry_usec + 999) / 1000);
	fields.trigger = g->name;
	fields.trigger_unit = q->unit;
	fields.trigger_pid = q->pid;
	if (!*told)
		log_event(LOG_WARNING, LOG_EVENT_RATE_LIMITED, &fields, "%s; refused until then",
			  ret->why);
	*told = true;
	return false;
}

/* Logs that a snapshot serves another unit or condition, too, as the list of snapshots has one of
 * them for each. Requests of users are not logged: users could fill the log. */
static void trigger_tell_joined(const struct trigger *t, const struct trigger_object *o,
				const struct request *q, const char *id)
{
	const char *whom = *q->unit ? q->unit : q->reason;
	struct log_fields fields = LOG_NO_FIELDS;
	const struct entry *e;

	if ((!*q->unit && !trigger_on_is_condition(o->on)) || gate_is_user(q->uid) ||
	    store_find(t->store, id, &e) != 0 || (*q->unit && strcmp(e->unit, q->unit) == 0))
		return;
	fields.report = id;
	fields.trigger = o->name;
	fields.trigger_unit = q->unit;
	fields.trigger_pid = q->pid;
	log_event(LOG_INFO, LOG_EVENT_SNAPSHOT_BEGUN, &fields,
		  "snapshot %s, which is about to be taken, is for %s, too", id, whom);
}

/* Returns 0 if a new snapshot may begin, else the refusal with its reason in RET. */
static int trigger_refuse(struct trigger *t, struct gate_trigger *g, const struct trigger_object *o,
			  const struct request *q, struct trigger_answer *ret)
{
	int r = 0;

	if (gate_is_user(q->uid) ? jobs_full_for_users(t->jobs) : jobs_full(t->jobs)) {
		snprintf(ret->why, sizeof(ret->why), "too many snapshots are being taken");
		r = TRIGGER_BUSY;
	} else if (!trigger_filled(t, o, q, ret)) {
		r = TRIGGER_UNFILLED;
	} else if (!trigger_passes(t, g, q, ret)) {
		t->limited++;
		g->limited++;
		return TRIGGER_LIMITED;
	}
	if (r != 0) {
		t->refused++;
		g->refused++;
	}
	return r;
}

int trigger_fire(struct trigger *t, const struct request *request, struct trigger_answer *ret)
{
	struct request q = *request;
	const struct trigger_object *o = trigger_set_find(t->set, *q.trigger ? q.trigger : q.kind);
	struct gate_trigger *g = o ? gate_find(&t->gate, o->name) : NULL;
	const char *joined;
	int r;

	*ret = (struct trigger_answer){0};
	t->n++;
	if (t->closed) {
		t->refused++;
		snprintf(ret->why, sizeof(ret->why), "the recorder ends");
		return TRIGGER_CLOSED;
	}
	if (!g || !o->enabled) {
		t->refused++;
		snprintf(ret->why, sizeof(ret->why), "trigger %s is not enabled",
			 *q.trigger ? q.trigger : q.kind);
		return TRIGGER_UNKNOWN;
	}
	trigger_stamp(t, &q);
	if (gate_is_over(g, o, q.monotonic_ns / NSEC_PER_USEC)) {
		t->refused++;
		g->refused++;
		snprintf(ret->why, sizeof(ret->why), "trigger %s is over (Count=, ExpireAfter=)",
			 o->name);
		return TRIGGER_UNKNOWN;
	}
	if (q.cpu == ENTRY_NO_CPU && q.pid != ENTRY_ABSENT)
		q.cpu = sender_last_cpu("/proc", q.pid);
	joined = jobs_join(t->jobs, &q);
	if (joined) {
		t->joined++;
		g->joined++;
		strcpy(ret->id, joined);
		trigger_tell_joined(t, o, &q, joined);
		return 0;
	}
	r = trigger_refuse(t, g, o, &q, ret);
	if (r != 0)
		return r;
	g->fired++;
	/* The unit is read at once: later the sender may have ended, and its pid be another's. */
	if (!*q.sender_unit && q.pid != ENTRY_ABSENT)
		(void)unitname_of_pid("/proc", q.pid, q.sender_unit);
	return trigger_begin(t, &q, ret);
}
