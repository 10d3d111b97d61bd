/*
 * The method Snapshot: which trigger, what of it the caller wants otherwise, and whom the answer
 * has to wait for. Called by control.c.
 */
#include <string.h>

#include "daemon/base/unitname.h"
#include "daemon/control/control_private.h"
#include "proto/base.h"
#include "proto/varlink.h"

#define INTERFACE     CONTROL_INTERFACE
#define NSEC_PER_USEC 1000u

/* TEXT of FIELD, "" when it is not there. False: it is of another type, or longer than SIZE. */
static bool read_text(struct json_object *parameters, const char *field, size_t size,
		      const char **ret)
{
	*ret = "";
	return varlink_get_string(parameters, field, ret) >= 0 && strlen(*ret) < size;
}

/* A time in microseconds, which must not be 0 unless ZERO; *RET_NS is left alone where there is
 * none. */
static bool read_time(struct json_object *parameters, const char *field, bool zero,
		      uint64_t *ret_ns)
{
	uint64_t usec = ENTRY_ABSENT, ns;

	if (varlink_get_u64(parameters, field, &usec) < 0 || (usec == 0 && !zero))
		return false;
	if (usec == ENTRY_ABSENT)
		return true;
	if (__builtin_mul_overflow(usec, NSEC_PER_USEC, &ns))
		return false;
	*ret_ns = ns;
	return true;
}

/* Who is to fire, and about what. The name of a bad parameter, NULL: all good. */
static const char *read_trigger(struct json_object *parameters, struct request *q,
				const char **ret_trigger)
{
	const char *unit;

	if (!read_text(parameters, "trigger", ENTRY_NAME_SIZE, ret_trigger))
		return "trigger";
	if (!read_text(parameters, "unit", sizeof(q->unit), &unit) ||
	    (*unit && !unitname_is_valid(unit)))
		return "unit";
	strcpy(q->unit, unit);
	return NULL;
}

/* What was said is stronger than what the trigger does; a window of one kind takes the place of one
 * of the other kind. */
static const char *read_window(struct json_object *parameters, struct request *q)
{
	uint64_t bytes = ENTRY_ABSENT, ns = ENTRY_ABSENT;

	if (varlink_get_u64(parameters, "windowBytes", &bytes) < 0 || bytes == 0)
		return "windowBytes";
	if (!read_time(parameters, "windowUSec", false, &ns))
		return "windowUSec";
	if (bytes != ENTRY_ABSENT || ns != ENTRY_ABSENT) {
		q->last_bytes = bytes;
		q->last_ns = ns;
	}
	return NULL;
}

static const char *read_labels(struct json_object *parameters, struct request *q)
{
	struct json_object *list;

	if (!json_object_object_get_ex(parameters, "labels", &list) || list == NULL)
		return NULL;
	return entry_read_labels(list, &q->labels) < 0 ? "labels" : NULL;
}

static const char *read_rest(struct json_object *parameters, struct request *q)
{
	const char *reason, *bad = read_window(parameters, q);

	if (bad)
		return bad;
	if (!read_text(parameters, "reason", sizeof(q->reason), &reason))
		return "reason";
	if (*reason)
		strcpy(q->reason, reason);
	if (varlink_get_bool(parameters, "decode", &q->decode) < 0)
		return "decode";
	/* Of a report that nobody wants. */
	if (!q->decode)
		q->deadline_ns = ENTRY_ABSENT;
	if (!read_time(parameters, "deadlineUSec", true, &q->deadline_ns))
		return "deadlineUSec";
	return read_labels(parameters, q);
}

static bool snapshot_watch(struct control *c, struct peer *peer, const char *id)
{
	for (size_t i = 0; i < CONTROL_MAX_WATCHES; i++) {
		if (c->watches[i].peer)
			continue;
		c->watches[i].peer = peer;
		strcpy(c->watches[i].id, id);
		return true;
	}
	return false;
}

static void snapshot_answer(struct control *c, struct peer *peer, const char *id)
{
	const struct entry *e = NULL;

	if (store_find(c->store, id, &e) != 0)
		control_no_such_report(peer, id);
	/* It may have ended within the call, when it could not even begin. */
	else if (entry_ended(e) || !peer_wants_more(peer) || !snapshot_watch(c, peer, id))
		peer_reply(peer, control_report(c, peer, e), false);
}

static void no_such_trigger(struct peer *peer, const char *name)
{
	peer_error(peer, INTERFACE ".NoSuchTrigger",
		   control_object("trigger", json_object_new_string(name)));
}

static void snapshot_fire(struct control *c, struct peer *peer, const struct request *q)
{
	struct trigger_answer answer;
	int r = trigger_fire(c->trigger, q, &answer);

	if (r == 0)
		snapshot_answer(c, peer, answer.id);
	else if (r == TRIGGER_BUSY)
		control_busy(peer);
	else if (r == TRIGGER_LIMITED)
		peer_error(peer, INTERFACE ".RateLimited",
			   control_object("retryAfterUSec",
					  json_object_new_uint64(answer.retry_usec)));
	else if (r == TRIGGER_UNKNOWN)
		no_such_trigger(peer, q->trigger);
	else
		peer_error(peer, INTERFACE ".NotTracing",
			   control_object("cause", json_object_new_string(r < 0 ? strerror(-r)
										: answer.why)));
}

void control_snapshot(struct control *c, struct peer *peer, struct json_object *parameters)
{
	const struct ucred *who = peer_credentials(peer);
	const char *trigger, *bad;
	struct request q;

	request_init(&q, "control", INTERFACE ".Snapshot");
	q.pid = (uint64_t)who->pid;
	q.uid = who->uid;
	peer_unit(peer, q.sender_unit);
	bad = read_trigger(parameters, &q, &trigger);
	if (!bad && trigger_choose(c->trigger, *trigger ? trigger : "control", &q) != 0) {
		no_such_trigger(peer, *trigger ? trigger : "control");
		return;
	}
	if (!bad)
		bad = read_rest(parameters, &q);
	if (bad)
		control_invalid(peer, bad);
	else
		snapshot_fire(c, peer, &q);
}
