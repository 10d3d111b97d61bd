/*
 * Fires triggers by their conditions, and lets administrators add and remove triggers while the
 * recorder runs.
 *
 * A trigger is added as a whole: its settings are checked, then its condition is armed, and only
 * then the trigger exists. What fails leaves everything as it was.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "daemon/base/log.h"
#include "daemon/trigger/armed.h"
#include "daemon/trigger/trigger.h"
#include "proto/base.h"

/* As a line of a file (CONFFILE_MAX_LINE). */
#define SETTING_MAX 8192u

/* --- Events --- */

/* Bytes of Reason= that stay if the event needs room, too. */
#define REASON_MAX 120u

/* "REASON: EVENT", or the event alone. A reason is cut between two characters of UTF-8. */
static void tell_event(struct request *q, const struct condition_event *event)
{
	char reason[sizeof(q->reason) + sizeof(event->what) + 16];
	size_t n = MIN_OF(strlen(q->reason), (size_t)REASON_MAX);

	while (n > 0 && ((unsigned char)q->reason[n] & 0xc0) == 0x80)
		n--;
	snprintf(reason, sizeof(reason), "%s%.*s%s%s", event->test ? "test: " : "", (int)n,
		 q->reason, n > 0 ? ": " : "", event->what);
	reason[sizeof(q->reason) - 1] = '\0';
	strcpy(q->reason, reason);
}

static void on_event(void *userdata, const struct trigger_object *o,
		     const struct condition_event *event)
{
	struct log_fields fields = LOG_NO_FIELDS;
	struct trigger_answer answer;
	struct trigger *t = userdata;
	struct request q;
	int r;

	request_init(&q, trigger_on_name(o->on), o->name);
	if (trigger_choose_condition(t, o->name, &q) != 0)
		return;
	tell_event(&q, event);
	q.pid = event->pid;
	q.cpu = event->cpu == CONDITION_NO_CPU ? ENTRY_NO_CPU : event->cpu;
	r = trigger_fire(t, &q, &answer);
	fields.trigger = q.trigger;
	if (r > 0 && r != TRIGGER_LIMITED)
		trigger_tell_refused(t, &fields, event->what, answer.why);
	if (event->test && t->on_tested.fn)
		t->on_tested.fn(t->on_tested.userdata, o->name, r, &answer);
	trigger_end_conditions(t);
}

/* --- Arming --- */

size_t trigger_find_armed(const struct trigger *t, const char *name)
{
	size_t i = 0;

	while (i < TRIGGER_SET_MAX &&
	       !(t->armed[i] && strcmp(armed_object(t->armed[i])->name, name) == 0))
		i++;
	return i;
}

static struct armed **armed_find(struct trigger *t, const char *name)
{
	const size_t i = trigger_find_armed(t, name);

	return i < TRIGGER_SET_MAX ? &t->armed[i] : NULL;
}

/* A set has no more triggers than there are places. */
static void armed_put(struct trigger *t, struct armed *a)
{
	for (size_t i = 0; i < TRIGGER_SET_MAX; i++)
		if (!t->armed[i]) {
			t->armed[i] = a;
			return;
		}
}

static bool wants_condition(const struct trigger_object *o)
{
	return o && o->enabled && trigger_on_is_condition(o->on);
}

/* Whether A goes on for IS, the trigger of its name now. */
static bool goes_on(const struct armed *a, const struct trigger_object *is)
{
	struct armed_news news;

	armed_tell(a, &news);
	return is && trigger_object_same_condition(armed_object(a), is) &&
	       (news.state == ARMED_WATCHING || news.state == ARMED_RESTING);
}

/* Frees what no trigger waits for any more, and what can be tried again. */
static void drop_conditions(struct trigger *t)
{
	for (size_t i = 0; i < TRIGGER_SET_MAX; i++) {
		struct armed *a = t->armed[i];

		if (!a || goes_on(a, trigger_set_find(t->set, armed_object(a)->name)))
			continue;
		armed_free(TAKE_PTR(t->armed[i]));
	}
}

int trigger_arm(struct trigger *t, sd_event *event)
{
	const struct armed_handler handler = {t, on_event};

	t->arming.event = event;
	drop_conditions(t);
	for (size_t i = 0; i < t->set->n; i++) {
		const struct trigger_object *o = &t->set->all[i];
		struct armed *a;

		/* What is armed already goes on: no event is missed. */
		if (!wants_condition(o) || armed_find(t, o->name) ||
		    gate_is_over(&t->gate.triggers[i], o, now_usec(CLOCK_MONOTONIC)))
			continue;
		if (armed_new_patient(&t->arming, o, &handler, &a) < 0)
			return -ENOMEM;
		armed_put(t, a);
	}
	return 0;
}

void trigger_end_conditions(struct trigger *t)
{
	const uint64_t now = now_usec(CLOCK_MONOTONIC);

	for (size_t i = 0; i < t->set->n; i++) {
		const struct trigger_object *o = &t->set->all[i];
		struct armed **a = armed_find(t, o->name);

		if (a && gate_is_over(&t->gate.triggers[i], o, now))
			armed_end(*a);
	}
}

void trigger_disarm(struct trigger *t)
{
	for (size_t i = 0; i < TRIGGER_SET_MAX; i++)
		armed_free(TAKE_PTR(t->armed[i]));
}

/* --- Triggers of administrators --- */

/* Takes "KEY=VALUE". 0, -EINVAL with WHY, -ENOMEM. */
static int take_setting(struct trigger_object *o, const char *setting, char *why)
{
	const char *equals = strchr(setting, '=');
	enum trigger_key_id key;
	char name[32];
	int r;

	if (!equals || strlen(setting) > SETTING_MAX || !label_is_plain(setting)) {
		snprintf(why, CONDITION_WHY_SIZE, "%.60s: a setting is KEY=VALUE, in one line",
			 setting);
		return -EINVAL;
	}
	snprintf(name, sizeof(name), "%.*s", (int)MIN_OF(equals - setting, 31), setting);
	key = trigger_key_find(name);
	if (key == TRIGGER_N_KEYS) {
		snprintf(why, CONDITION_WHY_SIZE, "there is no setting %s=", name);
		return -EINVAL;
	}
	r = trigger_object_set(o, key, equals + 1, 0);
	if (r == -EINVAL)
		snprintf(why, CONDITION_WHY_SIZE, "%s=%.60s is not valid; valid: %s", name,
			 equals + 1, trigger_keys[key].valid);
	return r;
}

static int take_settings(struct trigger_object *o, const char *const *settings, size_t n, char *why)
{
	struct trigger_problem problem;
	int r = 0;

	snprintf(why, CONDITION_WHY_SIZE, "no memory");
	for (size_t i = 0; i < n && r == 0; i++)
		r = take_setting(o, settings[i], why);
	if (r < 0)
		return r;
	if (trigger_object_check(o, &problem)) {
		snprintf(why, CONDITION_WHY_SIZE, "%s", problem.needs);
		return -EINVAL;
	}
	/* Users are looked up by their names when files are read. */
	if (o->on == TRIGGER_ON_SIGNAL) {
		snprintf(why, CONDITION_WHY_SIZE, "On=signal is for files of triggers.d");
		return -EINVAL;
	}
	return 0;
}

/* Arms O, then adds it to the set. O is taken over on success. */
static int add_object(struct trigger *t, struct trigger_object *o, char why[CONDITION_WHY_SIZE])
{
	const struct armed_handler handler = {t, on_event};
	struct armed *a = NULL;
	int r = 0;

	if (t->set->n == TRIGGER_SET_MAX) {
		snprintf(why, CONDITION_WHY_SIZE, "there are %u triggers already", TRIGGER_SET_MAX);
		return -ENOSPC;
	}
	if (wants_condition(o))
		r = armed_new(&t->arming, o, &handler, &a, why);
	if (r < 0)
		return r;
	if (a)
		armed_put(t, a);
	(void)trigger_set_add(t->set, o);
	trigger_use_set(t);
	return 0;
}

int trigger_add(struct trigger *t, const char *name, const char *const *settings, size_t n,
		char why[CONDITION_WHY_SIZE])
{
	struct trigger_object o;
	int r;

	if (!trigger_name_is_valid(name)) {
		snprintf(why, CONDITION_WHY_SIZE,
			 "the name of a trigger is up to 63 letters, digits, -, _ and .");
		return -EINVAL;
	}
	if (trigger_set_find(t->set, name)) {
		snprintf(why, CONDITION_WHY_SIZE, "there is a trigger %s already", name);
		return -EEXIST;
	}
	trigger_object_init(&o, name, TRIGGER_ON_CONTROL, false);
	o.runtime = true;
	r = take_settings(&o, settings, n, why);
	if (r == 0)
		r = add_object(t, &o, why);
	if (r < 0)
		trigger_object_done(&o);
	else
		log_info("trigger %s added", name);
	return r;
}

int trigger_remove(struct trigger *t, const char *name)
{
	const struct trigger_object *o = trigger_set_find(t->set, name);
	struct armed **a = armed_find(t, name);

	if (!o)
		return -ENOENT;
	if (!o->runtime)
		return -EPERM;
	if (a)
		armed_free(TAKE_PTR(*a));
	log_info("trigger %s removed", name);
	trigger_set_remove(t->set, name);
	trigger_use_set(t);
	return 0;
}

int trigger_test(struct trigger *t, const char *name, char why[CONDITION_WHY_SIZE])
{
	struct armed **a = armed_find(t, name);

	if (!trigger_set_find(t->set, name))
		return TRIGGER_UNKNOWN;
	if (a)
		return armed_test(*a, why);
	snprintf(why, CONDITION_WHY_SIZE, "it waits for no condition that the recorder can make");
	return -EOPNOTSUPP;
}
