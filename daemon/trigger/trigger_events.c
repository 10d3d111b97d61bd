/*
 * The events that fire triggers without a client: SIGUSR2, and units that the watcher sees fail.
 *
 * kill -USR2 works where no client is installed; signalfd(2) tells who sent the signal. The other
 * way to hear of a unit, OnFailure= with a client, comes over the control socket.
 */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <time.h>

#include "daemon/base/log.h"
#include "daemon/trigger/trigger.h"
#include "daemon/trigger/unitwatch.h"
#include "proto/base.h"

void trigger_tell_refused(struct trigger *t, const struct log_fields *fields, const char *what,
			  const char *why)
{
	const uint64_t now = now_ns(CLOCK_MONOTONIC) / 1000;

	if (bucket_wait(&t->telling, now) > 0) {
		t->untold++;
		return;
	}
	bucket_take(&t->telling, now);
	if (t->untold > 0)
		log_event(LOG_WARNING, NULL, fields,
			  "%s: no snapshot: %s (and %" PRIu64 " refusals that are not in the log)",
			  what, why, t->untold);
	else
		log_event(LOG_WARNING, NULL, fields, "%s: no snapshot: %s", what, why);
	t->untold = 0;
}

static int trigger_on_signal(sd_event_source *source, const struct signalfd_siginfo *si,
			     void *userdata)
{
	struct trigger *t = userdata;
	struct log_fields fields = LOG_NO_FIELDS;
	struct trigger_answer answer;
	struct request q;
	int r;

	(void)source;
	request_init(&q, "signal", "SIGUSR2");
	if (si->ssi_code == SI_USER || si->ssi_code == SI_QUEUE || si->ssi_code == SI_TKILL) {
		q.pid = si->ssi_pid;
		q.uid = si->ssi_uid;
	}
	if (trigger_choose_signal(t, &q) != 0) {
		t->n++;
		t->refused++;
		fields.trigger_pid = q.pid;
		trigger_tell_refused(t, &fields, "SIGUSR2", "no trigger is for that user");
		return 0;
	}
	r = trigger_fire(t, &q, &answer);
	fields.trigger = q.trigger;
	fields.trigger_pid = q.pid;
	/* trigger_fire() logs a limit, once. */
	if (r > 0 && r != TRIGGER_LIMITED)
		trigger_tell_refused(t, &fields, "SIGUSR2", answer.why);
	return 0;
}

int trigger_add_signal(struct trigger *t, sd_event *event, sd_event_source **ret)
{
	return sd_event_add_signal(event, ret, SIGUSR2, trigger_on_signal, t);
}

static void trigger_on_failed(void *userdata, const struct unit_news *news)
{
	struct trigger *t = userdata;
	struct log_fields fields = LOG_NO_FIELDS;
	struct trigger_answer answer;
	char what[ENTRY_UNIT_SIZE + 16];
	struct request q;
	int r;

	request_init(&q, "unit", "");
	strcpy(q.unit, news->unit);
	/* The process has ended, so its unit cannot be read from its pid. */
	strcpy(q.sender_unit, news->unit);
	if (news->pid)
		q.pid = news->pid;
	if (trigger_choose_watched(t, &q) != 0)
		return;
	if (!*q.reason)
		unitwatch_describe(news, q.reason, sizeof(q.reason));
	if (*news->result)
		(void)labels_add(&q.labels, "result", news->result);
	r = trigger_fire(t, &q, &answer);
	fields.trigger = q.trigger;
	fields.trigger_unit = q.unit;
	fields.trigger_pid = q.pid;
	snprintf(what, sizeof(what), "%s failed", q.unit);
	if (r > 0 && r != TRIGGER_LIMITED)
		trigger_tell_refused(t, &fields, what, answer.why);
}

int trigger_watch_units(struct trigger *t, sd_event *event)
{
	const struct unitwatch_handler handler = {t, trigger_on_failed};
	bool wanted = trigger_set_watches(t->set);

	if (wanted && !t->watch)
		return unitwatch_new(event, &handler, &t->watch);
	if (!wanted) {
		unitwatch_free(t->watch);
		t->watch = NULL;
	}
	return 0;
}
