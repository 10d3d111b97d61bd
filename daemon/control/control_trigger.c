/*
 * The methods for triggers while the recorder runs: AddTrigger, RemoveTrigger, ListTriggers,
 * TestTrigger.
 */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "daemon/control/control_private.h"
#include "proto/base.h"
#include "proto/varlink.h"

#define INTERFACE CONTROL_INTERFACE
/* A metric is looked at once a second, everything else at once. */
#define TEST_USEC    5000000u
#define SETTINGS_MAX 256u

/* The name of the trigger; NULL: it was refused. */
static const char *read_name(struct peer *peer, struct json_object *parameters)
{
	const char *name = NULL;

	if (varlink_get_string(parameters, "name", &name) >= 0 && name)
		return name;
	control_invalid(peer, "name");
	return NULL;
}

/* Sets RET to the texts of the parameter, borrowed. The number of them, or -EINVAL. */
static ssize_t read_settings(struct json_object *parameters, const char *ret[SETTINGS_MAX])
{
	struct json_object *list = NULL;
	size_t n;

	if (!json_object_object_get_ex(parameters, "settings", &list) ||
	    !json_object_is_type(list, json_type_array))
		return -EINVAL;
	n = json_object_array_length(list);
	if (n > SETTINGS_MAX)
		return -EINVAL;
	for (size_t i = 0; i < n; i++) {
		struct json_object *one = json_object_array_get_idx(list, i);

		if (!json_object_is_type(one, json_type_string))
			return -EINVAL;
		ret[i] = json_object_get_string(one);
		/* A NUL within the text would cut it off. */
		if (strlen(ret[i]) != (size_t)json_object_get_string_len(one))
			return -EINVAL;
	}
	return (ssize_t)n;
}

static void invalid_trigger(struct peer *peer, const char *name, const char *why)
{
	struct json_object *o = control_object("trigger", json_object_new_string(name));

	control_add(o, "cause", json_object_new_string(why));
	peer_error(peer, INTERFACE ".InvalidTrigger", o);
}

static void not_supported(struct peer *peer, const char *why)
{
	peer_error(peer, INTERFACE ".NotSupported",
		   control_object("cause", json_object_new_string(why)));
}

/* The trigger NAME as ListTriggers has it. */
static struct json_object *describe(const struct control *c, const char *name)
{
	struct json_object *list = trigger_list_to_json(c->trigger), *found = NULL;

	for (size_t i = 0; list && !found && i < json_object_array_length(list); i++) {
		struct json_object *one = json_object_array_get_idx(list, i), *value;

		if (json_object_object_get_ex(one, "name", &value) &&
		    strcmp(json_object_get_string(value), name) == 0)
			found = json_object_get(one);
	}
	json_object_put(list);
	return found;
}

void control_add_trigger(struct control *c, struct peer *peer, struct json_object *parameters)
{
	const char *settings[SETTINGS_MAX], *name = read_name(peer, parameters);
	char why[CONDITION_WHY_SIZE];
	ssize_t n;
	int r;

	if (!name)
		return;
	n = read_settings(parameters, settings);
	if (n < 0) {
		control_invalid(peer, "settings");
		return;
	}
	r = trigger_add(c->trigger, name, settings, (size_t)n, why);
	if (r == -EEXIST) {
		peer_error(peer, INTERFACE ".TriggerExists",
			   control_object("trigger", json_object_new_string(name)));
		return;
	}
	if (r < 0) {
		invalid_trigger(peer, name, why);
		return;
	}
	/* Units may be watched from now on. */
	(void)trigger_watch_units(c->trigger, c->event);
	peer_reply(peer, control_object("trigger", describe(c, name)), false);
}

void control_remove_trigger(struct control *c, struct peer *peer, struct json_object *parameters)
{
	const char *name = read_name(peer, parameters);
	int r = name ? trigger_remove(c->trigger, name) : 0;

	if (!name)
		return;
	if (r == -ENOENT) {
		control_no_such_trigger(peer, name);
	} else if (r < 0) {
		not_supported(peer, "the trigger is built in, or a file has it; Enabled=no in its "
				    "file and a reload disable it");
	} else {
		(void)trigger_watch_units(c->trigger, c->event);
		peer_reply(peer, NULL, false);
	}
}

void control_list_triggers(struct control *c, struct peer *peer, struct json_object *parameters)
{
	(void)parameters;
	peer_reply(peer, control_object("triggers", trigger_list_to_json(c->trigger)), false);
}

/* --- TestTrigger --- */

static void answer_test(struct control *c, struct peer *peer, int r,
			const struct trigger_answer *answer)
{
	const struct entry *e = NULL;

	if (r == 0 && store_find(c->store, answer->id, &e) == 0)
		peer_reply(peer, control_report(c, peer, e), false);
	else if (r == TRIGGER_LIMITED)
		peer_error(peer, INTERFACE ".RateLimited",
			   control_object("retryAfterUSec",
					  json_object_new_uint64(answer->retry_usec)));
	else
		control_not_tracing(peer, r < 0 ? strerror(-r) : answer->why);
}

void control_on_tested(void *userdata, const char *name, int r, const struct trigger_answer *answer)
{
	struct control *c = userdata;

	for (size_t i = 0; i < CONTROL_MAX_WAITS; i++) {
		struct peer *peer = c->test_waits.peers[i];

		if (!peer || strcmp(c->test_names[i], name) != 0)
			continue;
		c->test_waits.peers[i] = NULL;
		answer_test(c, peer, r, answer);
	}
}

static int on_test_timer(sd_event_source *source, uint64_t usec, void *userdata)
{
	struct control *c = userdata;
	struct peer *peer;

	(void)source;
	(void)usec;
	while ((peer = control_take(&c->test_waits)))
		not_supported(peer, "the event was made, and the recorder did not see it");
	return 0;
}

static int wait_for_test(struct control *c, struct peer *peer, const char *name)
{
	for (size_t i = 0; i < CONTROL_MAX_WAITS; i++) {
		if (c->test_waits.peers[i])
			continue;
		c->test_timer = sd_event_source_disable_unref(c->test_timer);
		if (sd_event_add_time_relative(c->event, &c->test_timer, CLOCK_MONOTONIC, TEST_USEC,
					       0, on_test_timer, c) < 0)
			return -ENOMEM;
		c->test_waits.peers[i] = peer;
		strcpy(c->test_names[i], name);
		return 0;
	}
	return -EBUSY;
}

void control_test_trigger(struct control *c, struct peer *peer, struct json_object *parameters)
{
	const char *name = read_name(peer, parameters);
	char why[CONDITION_WHY_SIZE];
	int r = name ? trigger_test(c->trigger, name, why) : 0;

	if (!name)
		return;
	/* The loop sees the event after this call. */
	if (r == TRIGGER_UNKNOWN)
		control_no_such_trigger(peer, name);
	else if (r < 0)
		not_supported(peer, why);
	else if (wait_for_test(c, peer, name) < 0)
		control_busy(peer);
}
