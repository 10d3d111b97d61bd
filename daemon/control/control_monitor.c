/*
 * The method Monitor: whoever called it hears of every line that the recorder says, with what the
 * journal knows of it, for as long as he stays. Called by control.c, and by the log with each line.
 */
#include <time.h>

#include "daemon/base/log.h"
#include "daemon/control/control_private.h"
#include "proto/base.h"

/* The last one in PEER's place may have missed some. */
static void begin_to_count(struct control *c, const struct peer *peer)
{
	for (size_t i = 0; i < CONTROL_MAX_WATCHES; i++)
		if (c->monitor_waits.peers[i] == peer)
			c->monitor_missed[i] = 0;
}

void control_monitor(struct control *c, struct peer *peer, struct json_object *parameters)
{
	(void)parameters;
	if (!peer_wants_more(peer))
		peer_error(peer, "org.varlink.service.ExpectedMore", NULL);
	else if (!control_wait(&c->monitor_waits, peer))
		control_busy(peer);
	else
		begin_to_count(c, peer);
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

/* One that does not read misses lines, and is told how many with the next one. */
static void control_on_line(void *userdata, int priority, const char *id,
			    const struct log_fields *fields, const char *text)
{
	struct control *c = userdata;

	for (size_t i = 0; i < CONTROL_MAX_WATCHES; i++) {
		struct peer *peer = c->monitor_waits.peers[i];
		struct json_object *o;

		if (!peer)
			continue;
		/* Of several lines in one turn of the loop. */
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
	const struct log_listener listener = {control_on_line, c};

	log_listen(c ? &listener : NULL);
}
