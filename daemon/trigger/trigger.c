/*
 * A request gets its time, then joins a snapshot that is about to be taken, or becomes a new one,
 * or is refused. Called by control_snapshot.c, trigger_signal.c, trigger_unit.c and the manager, in
 * the loop's thread.
 *
 * Refusals come in the order in which they cost least: what joins is never refused, what there is
 * no room for takes no token.
 */
#include "daemon/trigger/trigger.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "capture/ring/clock.h"
#include "daemon/base/log.h"
#include "daemon/base/unitname.h"
#include "daemon/gather/evidence.h"
#include "daemon/trigger/sender.h"
#include "proto/base.h"

#define NSEC_PER_USEC 1000u
#define NSEC_PER_MSEC 1000000u

int trigger_init(struct trigger *t, struct source *source, struct store *store, struct jobs *jobs,
		 const struct config *config)
{
	struct clock_now now;

	clock_read(&now);
	*t = (struct trigger){.source = source, .store = store, .jobs = jobs};
	trigger_use(t, config);
	return fill_init(&t->fill, source, now.monotonic_ns);
}

void trigger_done(struct trigger *t)
{
	unitwatch_free(t->watch);
	fill_done(&t->fill);
}

void trigger_use(struct trigger *t, const struct config *config)
{
	struct clock_now now;

	clock_read(&now);
	t->set = config->triggers;
	gate_use(&t->gate, config, now.monotonic_ns / NSEC_PER_USEC);
}

void trigger_look(struct trigger *t)
{
	struct clock_now now;

	clock_read(&now);
	fill_look(&t->fill, now.monotonic_ns);
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

/* What O does, and whose limits hold. The built-in ones go by what happened, as before there were
 * others. */
static void request_take(struct request *q, const struct trigger_object *o)
{
	strcpy(q->trigger, o->name);
	snprintf(q->kind, sizeof(q->kind), "%s", trigger_on_name(o->on));
	if (!o->built_in || o->on == TRIGGER_ON_UNIT)
		strcpy(q->name, o->name);
	if (*o->reason)
		strcpy(q->reason, o->reason);
	q->labels = o->labels;
	q->last_bytes = o->last_bytes;
	q->last_ns = o->last_ns;
	q->decode = o->decode;
	q->deadline_ns = o->deadline_ns;
}

static int choose(const struct trigger_object *o, struct request *q)
{
	if (!o)
		return TRIGGER_UNKNOWN;
	request_take(q, o);
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

int trigger_choose_watched(const struct trigger *t, struct request *q)
{
	return choose(trigger_set_for_unit(t->set, q->unit, true), q);
}

/* The latest of all CPUs: one that is away, or has nothing to do, may be behind. */
static uint64_t trigger_tsc(struct source *s)
{
	uint64_t latest = source_tsc(s, 0);

	for (uint32_t i = 1; i < s->n_cpus; i++)
		latest = MAX_OF(latest, source_tsc(s, i));
	return latest;
}

/* Now, on all clocks. The trace's own may be another than the host's. */
static void trigger_stamp(const struct trigger *t, struct request *q)
{
	struct clock_now now;

	clock_read(&now);
	q->realtime_ns = now.realtime_ns;
	q->monotonic_ns = now.monotonic_ns;
	q->tsc = t->source->ops->read_tsc ? trigger_tsc(t->source) : now.tsc;
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
	/* Said first: a job that cannot start ends, and says so, within jobs_add. */
	log_event(LOG_INFO, LOG_EVENT_SNAPSHOT_BEGUN, &fields, "snapshot %s begun (%s%s%s)", e.id,
		  q->kind, *q->reason ? ": " : "", q->reason);
	r = jobs_add(t->jobs, q, &e);
	if (r < 0)
		log_error("snapshot %s could not be begun: %s", e.id, strerror(-r));
	else
		strcpy(ret->id, e.id);
	return r;
}

/* Whether so much was traced as O wants. */
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

/* Whether O may fire now; a token is gone then. */
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

/* A snapshot has one unit in the list: the journal names it for others that it serves. Users could
 * say so again and again. */
static void trigger_tell_joined(const struct trigger *t, const struct gate_trigger *g,
				const struct request *q, const char *id)
{
	struct log_fields fields = LOG_NO_FIELDS;
	const struct entry *e;

	if (!*q->unit || gate_is_user(q->uid) || store_find(t->store, id, &e) != 0 ||
	    strcmp(e->unit, q->unit) == 0)
		return;
	fields.report = id;
	fields.trigger = g->name;
	fields.trigger_unit = q->unit;
	fields.trigger_pid = q->pid;
	log_event(LOG_INFO, LOG_EVENT_SNAPSHOT_BEGUN, &fields,
		  "snapshot %s, which is about to be taken, is for %s, too", id, q->unit);
}

/* Who is answered by a snapshot that is about to be taken. */
static bool trigger_joins(struct trigger *t, struct gate_trigger *g, const struct request *q,
			  struct trigger_answer *ret)
{
	const char *joined = jobs_join(t->jobs, q);

	if (!joined)
		return false;
	t->joined++;
	g->joined++;
	strcpy(ret->id, joined);
	trigger_tell_joined(t, g, q, joined);
	return true;
}

/* 0: nothing is in its way. */
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
	int r;

	*ret = (struct trigger_answer){0};
	t->n++;
	if (t->closed) {
		snprintf(ret->why, sizeof(ret->why), "the recorder ends");
		return TRIGGER_CLOSED;
	}
	if (!g || !o->enabled) {
		snprintf(ret->why, sizeof(ret->why), "trigger %s is not enabled",
			 *q.trigger ? q.trigger : q.kind);
		return TRIGGER_UNKNOWN;
	}
	trigger_stamp(t, &q);
	if (q.cpu == ENTRY_NO_CPU && q.pid != ENTRY_ABSENT)
		q.cpu = sender_last_cpu("/proc", q.pid);
	if (trigger_joins(t, g, &q, ret))
		return 0;
	r = trigger_refuse(t, g, o, &q, ret);
	if (r != 0)
		return r;
	g->fired++;
	/* At once: the sender may end, and its number be another's. */
	if (!*q.sender_unit && q.pid != ENTRY_ABSENT)
		(void)unitname_of_pid("/proc", q.pid, q.sender_unit);
	return trigger_begin(t, &q, ret);
}
