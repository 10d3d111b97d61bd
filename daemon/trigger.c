/*
 * A request gets its time, then joins a snapshot that is about to be taken, or becomes a new one,
 * or is refused. Called by control.c, trigger_signal.c and the manager, in the loop's thread.
 */
#include "daemon/trigger.h"

#include <stdio.h>
#include <string.h>

#include "capture/clock.h"
#include "daemon/host.h"
#include "daemon/log.h"
#include "daemon/sender.h"
#include "proto/base.h"

void trigger_init(struct trigger *t, struct source *source, struct store *store, struct jobs *jobs)
{
	*t = (struct trigger){.source = source, .store = store, .jobs = jobs};
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
	strcpy(ret->reason, q->reason);
	ret->pid = q->pid;
	ret->uid = q->uid;
	ret->realtime_usec = q->realtime_ns / 1000;
	host_boot_id(ret->boot_id);
	store_new_id(t->store, ret->realtime_usec, ret->boot_id, ret->id);
}

static int trigger_begin(struct trigger *t, const struct request *q, char *ret_id)
{
	struct entry e;
	int r;

	trigger_describe(t, q, &e);
	/* Said first: a job that cannot start ends, and says so, within jobs_add. */
	log_line(LOG_INFO, e.id, "snapshot %s begun (%s%s%s)", e.id, q->kind,
		 *q->reason ? ": " : "", q->reason);
	r = jobs_add(t->jobs, q, &e);
	if (r < 0)
		log_error("snapshot %s could not be begun: %s", e.id, strerror(-r));
	else
		strcpy(ret_id, e.id);
	return r;
}

int trigger_fire(struct trigger *t, const struct request *request, char *ret_id)
{
	struct request q = *request;
	const char *joined;

	t->n++;
	if (t->closed)
		return TRIGGER_CLOSED;
	trigger_stamp(t, &q);
	if (q.cpu == ENTRY_NO_CPU && q.pid != ENTRY_ABSENT)
		q.cpu = sender_last_cpu("/proc", q.pid);
	joined = jobs_join(t->jobs, &q);
	if (joined) {
		t->joined++;
		strcpy(ret_id, joined);
		return 0;
	}
	if (jobs_full(t->jobs)) {
		t->refused++;
		return TRIGGER_BUSY;
	}
	return trigger_begin(t, &q, ret_id);
}
