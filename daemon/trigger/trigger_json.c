/*
 * Triggers as JSON: their history for Status, and all about them for ListTriggers.
 */
#include <string.h>
#include <time.h>

#include "daemon/trigger/armed.h"
#include "daemon/trigger/trigger.h"
#include "proto/base.h"

static void put(struct json_object *to, const char *key, struct json_object *value)
{
	if (json_object_object_add(to, key, value) < 0)
		json_object_put(value);
}

static void put_text(struct json_object *to, const char *key, const char *text)
{
	put(to, key, text && *text ? json_object_new_string(text) : NULL);
}

/* What both lists have. */
static struct json_object *history(const struct trigger *t, size_t i)
{
	const struct trigger_object *o = &t->set->all[i];
	const struct gate_trigger *g = &t->gate.triggers[i];
	struct json_object *one = json_object_new_object();

	put(one, "name", json_object_new_string(o->name));
	put(one, "on", json_object_new_string(trigger_on_name(o->on)));
	put(one, "enabled", json_object_new_boolean(o->enabled));
	put(one, "fired", json_object_new_uint64(g->fired));
	put(one, "joined", json_object_new_uint64(g->joined));
	put(one, "refused", json_object_new_uint64(g->refused));
	put(one, "limited", json_object_new_uint64(g->limited));
	return one;
}

struct json_object *trigger_to_json(const struct trigger *t)
{
	struct json_object *list = json_object_new_array();

	for (size_t i = 0; list && i < t->set->n; i++)
		json_object_array_add(list, history(t, i));
	return list;
}

/* ["KEY=VALUE", ...]: what was set. */
static struct json_object *settings(const struct trigger_object *o)
{
	struct json_object *list = json_object_new_array();

	for (size_t i = 0; list && i < TRIGGER_N_KEYS; i++) {
		CLEANUP_FREE char *text = NULL;

		if (o->values[i].text &&
		    asprintf(&text, "%s=%s", trigger_keys[i].name, o->values[i].text) >= 0)
			json_object_array_add(list, json_object_new_string(text));
	}
	return list;
}

static void put_state(const struct trigger *t, size_t i, struct json_object *one)
{
	const struct trigger_object *o = &t->set->all[i];
	const size_t at = trigger_find_armed(t, o->name);
	const struct armed *a = at < TRIGGER_SET_MAX ? t->armed[at] : NULL;
	struct armed_news news = {.why = "", .last = ""};
	const char *state = o->enabled ? "enabled" : "disabled";

	if (a) {
		armed_tell(a, &news);
		state = armed_state_name(news.state);
	} else if (gate_is_over(&t->gate.triggers[i], o, now_usec(CLOCK_MONOTONIC))) {
		state = armed_state_name(ARMED_OVER);
	}
	put(one, "state", json_object_new_string(state));
	put_text(one, "cause", news.why);
	put(one, "events", json_object_new_uint64(news.n_events));
	put_text(one, "lastEvent", news.last);
	put(one, "lastEventUSec", news.n_events ? json_object_new_uint64(news.last_usec) : NULL);
}

struct json_object *trigger_list_to_json(const struct trigger *t)
{
	struct json_object *list = json_object_new_array();

	for (size_t i = 0; list && i < t->set->n; i++) {
		const struct trigger_object *o = &t->set->all[i];
		struct json_object *one = history(t, i);

		put_state(t, i, one);
		put(one, "runtime", json_object_new_boolean(o->runtime));
		put_text(one, "file", o->file);
		put(one, "settings", settings(o));
		json_object_array_add(list, one);
	}
	return list;
}
