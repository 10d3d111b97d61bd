/*
 * The methods that are answered when something has happened: Check, Yield and Resume, Monitor.
 */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "daemon/base/log.h"
#include "daemon/check/check.h"
#include "daemon/control/control_private.h"
#include "proto/base.h"
#include "proto/varlink.h"

static void add_finding(void *userdata, const struct finding *f)
{
	struct json_object *one = finding_to_json(f);

	if (one && json_object_array_add(userdata, one) < 0)
		json_object_put(one);
}

/* The thread has looked at the host; what the recorder knows of itself is added. */
static void on_checked(void *userdata, const struct finding *all, size_t n)
{
	struct control *c = userdata;
	struct json_object *found = json_object_new_array();
	struct peer *peer;

	for (size_t i = 0; found && i < n; i++)
		add_finding(found, &all[i]);
	if (found)
		check_live(&c->status, add_finding, found);
	while ((peer = control_take(&c->check_waits)))
		peer_reply(peer, control_object("findings", json_object_get(found)), false);
	json_object_put(found);
	check_job_free(c->check);
	c->check = NULL;
}

/* All calls during one check get the result of that check. */
void control_check(struct control *c, struct peer *peer, struct json_object *parameters)
{
	const struct check_job_handler handler = {c, on_checked};

	(void)parameters;
	if (!c->check && check_job_new(c->event, c->config, &handler, &c->check) < 0)
		control_busy(peer);
	else if (!control_wait(&c->check_waits, peer))
		control_busy(peer);
}

static void answer_lease(struct control *c, struct peer *peer, int r)
{
	const struct lease *l = c->lease;
	const char *error = CONTROL_INTERFACE ".NotTracing", *cause = strerror(-r);

	if (r >= 0) {
		peer_reply(
			peer,
			control_object("untilUSec", l->away && l->until_usec != LEASE_FOR_EVER
							    ? json_object_new_uint64(l->until_usec)
							    : NULL),
			false);
		return;
	}
	if (r == -EOPNOTSUPP || r == -ENODEV) {
		error = CONTROL_INTERFACE ".NotSupported";
		cause = r == -ENODEV ? "this host has no Intel PT that could be handed back"
				     : "this source takes no Intel PT that it could hand back";
	}
	peer_error(peer, error, control_object("cause", json_object_new_string(cause)));
}

/* The call is answered when the lease has changed, so that the caller can use Intel PT at once. */
static void ask_lease(struct control *c, struct peer *peer, bool away, uint64_t for_usec)
{
	int r = c->lease ? lease_ask(c->lease, away, for_usec, peer_credentials(peer))
			 : -EOPNOTSUPP;

	if (r != LEASE_LATER)
		answer_lease(c, peer, r);
	else if (!control_wait(&c->lease_waits, peer))
		control_busy(peer);
}

void control_yield(struct control *c, struct peer *peer, struct json_object *parameters)
{
	uint64_t for_usec = LEASE_FOR_EVER;

	if (varlink_get_u64(parameters, "forUSec", &for_usec) < 0 || for_usec == 0)
		control_invalid(peer, "forUSec");
	else
		ask_lease(c, peer, true, for_usec);
}

void control_resume(struct control *c, struct peer *peer, struct json_object *parameters)
{
	(void)parameters;
	ask_lease(c, peer, false, LEASE_FOR_EVER);
}

void control_on_lease(struct control *c, int r)
{
	struct peer *peer;

	while ((peer = control_take(&c->lease_waits)))
		answer_lease(c, peer, r);
}

void control_monitor(struct control *c, struct peer *peer, struct json_object *parameters)
{
	(void)parameters;
	if (!peer_wants_more(peer)) {
		peer_error(peer, "org.varlink.service.ExpectedMore", NULL);
		return;
	}
	if (!control_wait(&c->monitor_waits, peer)) {
		control_busy(peer);
		return;
	}
	/* The last client in this place may have missed lines. */
	for (size_t i = 0; i < CONTROL_MAX_WAITS; i++)
		if (c->monitor_waits.peers[i] == peer)
			c->monitor_missed[i] = 0;
}

static struct json_object *text_or_null(const char *text)
{
	return text && *text ? json_object_new_string(text) : NULL;
}

static struct json_object *number_or_null(uint64_t v)
{
	return v != ENTRY_ABSENT ? json_object_new_uint64(v) : NULL;
}

static struct json_object *event_of(int priority, const char *id, const struct log_fields *f,
				    const char *text)
{
	struct json_object *o = json_object_new_object();

	control_add(o, "realtimeUSec", json_object_new_uint64(now_usec(CLOCK_REALTIME)));
	control_add(o, "priority", json_object_new_int(priority));
	control_add(o, "message", json_object_new_string(text));
	control_add(o, "messageId", text_or_null(id));
	control_add(o, "id", text_or_null(f->report));
	control_add(o, "trigger", text_or_null(f->trigger));
	control_add(o, "unit", text_or_null(f->trigger_unit));
	control_add(o, "pid", number_or_null(f->trigger_pid));
	control_add(o, "bytes", number_or_null(f->bytes));
	control_add(o, "lost", number_or_null(f->lost));
	control_add(o, "durationUSec", number_or_null(f->duration_usec));
	return control_object("event", o);
}

/* Sends a line of the log to all who monitor, with the fields of the journal. A client that does
 * not read misses lines, and learns with the next line how many. */
static void on_log_line(void *userdata, int priority, const char *id,
			const struct log_fields *fields, const char *text)
{
	struct control *c = userdata;

	for (size_t i = 0; i < CONTROL_MAX_WAITS; i++) {
		struct peer *peer = c->monitor_waits.peers[i];
		struct json_object *o;

		if (!peer)
			continue;
		/* One turn of the loop may log several lines. */
		peer_flush(peer);
		if (!peer_is_drained(peer)) {
			c->monitor_missed[i]++;
			continue;
		}
		o = event_of(priority, id, fields, text);
		control_add(o, "missed", json_object_new_uint64(c->monitor_missed[i]));
		c->monitor_missed[i] = 0;
		peer_reply(peer, o, true);
	}
}

void control_listen(struct control *c)
{
	const struct log_listener listener = {on_log_line, c};

	log_listen(c ? &listener : NULL);
}
