/*
 * Keeps the condition of one trigger armed: rests when events come too often, and arms again.
 */
#include "daemon/trigger/armed.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "daemon/base/log.h"
#include "proto/base.h"

#define USEC_PER_SEC 1000000u

struct armed {
	struct armed_setup setup;
	struct trigger_object object; /* owned */
	struct armed_handler handler;
	struct condition *condition; /* owned; NULL unless ARMED_WATCHING */
	enum armed_state state;
	sd_event_source *timer; /* arms again */
	struct bucket storm;
	/* When the last events came that did not fire the trigger, CLOCK_MONOTONIC; the oldest
	 * first. */
	uint64_t recent_usec[TRIGGER_MAX_EVENTS];
	size_t n_recent;
	uint64_t n_events, last_usec;
	char last[ENTRY_REASON_SIZE];
	char why[CONDITION_WHY_SIZE];
};

static const char *const state_names[] = {
	[ARMED_WATCHING] = "armed",
	[ARMED_RESTING] = "resting",
	[ARMED_BROKEN] = "broken",
	[ARMED_OVER] = "over",
};

const char *armed_state_name(enum armed_state state)
{
	return state_names[state];
}

static void stop(struct armed *a, enum armed_state state)
{
	condition_free(TAKE_PTR(a->condition));
	a->state = state;
}

static int on_timer(sd_event_source *source, uint64_t usec, void *userdata);

/* Arms again in USEC. Without a timer the trigger stays as it is, which is told. */
static void try_again(struct armed *a, uint64_t usec)
{
	a->timer = sd_event_source_disable_unref(a->timer);
	if (sd_event_add_time_relative(a->setup.event, &a->timer, CLOCK_MONOTONIC, usec, 0,
				       on_timer, a) < 0)
		log_error("trigger %s is not armed any more: no memory", a->object.name);
}

static void armed_log(const struct armed *a, int priority, const char *id, const char *text)
{
	struct log_fields fields = LOG_NO_FIELDS;

	fields.trigger = a->object.name;
	log_event(priority, id, &fields, "trigger %s: %s", a->object.name, text);
}

/* Too many events: watches no more for a while, so that they cost nothing. */
static void rest(struct armed *a)
{
	stop(a, ARMED_RESTING);
	snprintf(a->why, sizeof(a->why), "disabled for %" PRIu64 " s: more than %u events in %u s",
		 a->setup.rest_usec / USEC_PER_SEC, ARMED_STORM_BURST,
		 ARMED_STORM_USEC / USEC_PER_SEC);
	armed_log(a, LOG_WARNING, LOG_EVENT_RATE_LIMITED, a->why);
	try_again(a, a->setup.rest_usec);
}

/* Whether the event at NOW is the last one of as many as the trigger wants (Events=). */
static bool enough(struct armed *a, uint64_t now)
{
	size_t old = 0;

	while (old < a->n_recent && now - a->recent_usec[old] > a->object.events_within_usec)
		old++;
	a->n_recent -= old;
	memmove(a->recent_usec, a->recent_usec + old, a->n_recent * sizeof(a->recent_usec[0]));
	a->recent_usec[a->n_recent++] = now;
	if (a->n_recent < a->object.events)
		return false;
	a->n_recent = 0;
	return true;
}

static void on_event(void *userdata, const struct condition_event *event)
{
	const uint64_t now = now_usec(CLOCK_MONOTONIC);
	struct armed *a = userdata;

	a->n_events++;
	a->last_usec = now_usec(CLOCK_REALTIME);
	strcpy(a->last, event->what);
	if (event->test || enough(a, now))
		a->handler.on_event(a->handler.userdata, &a->object, event);
	/* The trigger may be over now. */
	if (a->state != ARMED_WATCHING)
		return;
	if (bucket_wait(&a->storm, now) > 0)
		rest(a);
	else
		bucket_take(&a->storm, now);
}

static void on_lost(void *userdata, const char *why)
{
	struct armed *a = userdata;

	if (a->state != ARMED_WATCHING)
		return;
	stop(a, ARMED_BROKEN);
	snprintf(a->why, sizeof(a->why), "not armed any more: %.220s", why);
	armed_log(a, LOG_WARNING, NULL, a->why);
	try_again(a, a->setup.broken_usec);
}

static int arm(struct armed *a, char why[CONDITION_WHY_SIZE])
{
	const struct condition_handler handler = {a, on_event, on_lost};
	int r = condition_new(a->setup.event, a->setup.paths, &a->object, &handler, &a->condition,
			      why);

	if (r == 0)
		a->state = ARMED_WATCHING;
	return r;
}

static int on_timer(sd_event_source *source, uint64_t usec, void *userdata)
{
	const bool was_broken = ((struct armed *)userdata)->state == ARMED_BROKEN;
	char why[CONDITION_WHY_SIZE];
	struct armed *a = userdata;

	(void)source;
	(void)usec;
	if (arm(a, why) == 0) {
		*a->why = '\0';
		bucket_init(&a->storm, ARMED_STORM_BURST, ARMED_STORM_USEC,
			    now_usec(CLOCK_MONOTONIC));
		armed_log(a, LOG_INFO, NULL, "armed again");
		return 0;
	}
	a->state = ARMED_BROKEN;
	snprintf(a->why, sizeof(a->why), "cannot be armed: %.220s", why);
	/* A condition that stays broken is told once. */
	if (!was_broken)
		armed_log(a, LOG_WARNING, NULL, a->why);
	try_again(a, a->setup.broken_usec);
	return 0;
}

static struct armed *make(const struct armed_setup *setup, const struct trigger_object *o,
			  const struct armed_handler *handler)
{
	struct armed *a = calloc(1, sizeof(*a));

	if (!a)
		return NULL;
	if (trigger_object_copy(o, &a->object) < 0) {
		free(a);
		return NULL;
	}
	a->setup = *setup;
	a->handler = *handler;
	bucket_init(&a->storm, ARMED_STORM_BURST, ARMED_STORM_USEC, now_usec(CLOCK_MONOTONIC));
	return a;
}

int armed_new(const struct armed_setup *setup, const struct trigger_object *o,
	      const struct armed_handler *handler, struct armed **ret, char why[CONDITION_WHY_SIZE])
{
	struct armed *a = make(setup, o, handler);
	int r;

	snprintf(why, CONDITION_WHY_SIZE, "no memory");
	if (!a)
		return -ENOMEM;
	r = arm(a, why);
	if (r < 0) {
		armed_free(a);
		return r;
	}
	*ret = a;
	return 0;
}

int armed_new_patient(const struct armed_setup *setup, const struct trigger_object *o,
		      const struct armed_handler *handler, struct armed **ret)
{
	struct armed *a = make(setup, o, handler);
	char why[CONDITION_WHY_SIZE];

	if (!a)
		return -ENOMEM;
	if (arm(a, why) < 0) {
		a->state = ARMED_BROKEN;
		snprintf(a->why, sizeof(a->why), "cannot be armed: %.220s", why);
		armed_log(a, LOG_WARNING, NULL, a->why);
		try_again(a, a->setup.broken_usec);
	}
	*ret = a;
	return 0;
}

void armed_free(struct armed *a)
{
	if (!a)
		return;
	sd_event_source_disable_unref(a->timer);
	condition_free(a->condition);
	trigger_object_done(&a->object);
	free(a);
}

void armed_end(struct armed *a)
{
	if (a->state == ARMED_OVER)
		return;
	a->timer = sd_event_source_disable_unref(a->timer);
	stop(a, ARMED_OVER);
	snprintf(a->why, sizeof(a->why), "over: Count= or ExpireAfter= is reached");
	armed_log(a, LOG_INFO, NULL, a->why);
}

const struct trigger_object *armed_object(const struct armed *a)
{
	return &a->object;
}

void armed_tell(const struct armed *a, struct armed_news *ret)
{
	*ret = (struct armed_news){
		.state = a->state,
		.why = a->why,
		.n_events = a->n_events,
		.last = a->last,
		.last_usec = a->last_usec,
	};
}

int armed_test(struct armed *a, char why[CONDITION_WHY_SIZE])
{
	if (a->condition)
		return condition_test(a->condition, why);
	snprintf(why, CONDITION_WHY_SIZE, "%.255s", a->why);
	return -EAGAIN;
}
