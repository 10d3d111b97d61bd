/*
 * A unit that failed, as the watcher says, as a trigger. systemd's own way to tell us, OnFailure=
 * with a client, comes by control_snapshot.c.
 */
#include <stdio.h>
#include <string.h>

#include "daemon/base/log.h"
#include "daemon/trigger/trigger.h"
#include "daemon/trigger/unitwatch.h"
#include "proto/base.h"

static void trigger_on_failed(void *userdata, const struct unit_news *news)
{
	struct trigger *t = userdata;
	struct log_fields fields = LOG_NO_FIELDS;
	struct trigger_answer answer;
	struct request q;
	int r;

	request_init(&q, "unit", "");
	strcpy(q.unit, news->unit);
	/* The process that failed; it has ended, so its number is nobody's or another's now. */
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
	if (r > 0 && r != TRIGGER_LIMITED)
		log_event(LOG_WARNING, NULL, &fields, "%s failed: no snapshot: %s", q.unit,
			  answer.why);
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
