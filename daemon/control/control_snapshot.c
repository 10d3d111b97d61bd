/*
 * The method Snapshot: chooses the trigger, changes what the caller wants otherwise, and answers
 * when the snapshot has begun or ended.
 */
#include <string.h>

#include "daemon/base/unitname.h"
#include "daemon/control/control_private.h"
#include "proto/base.h"
#include "proto/varlink.h"

#define INTERFACE     CONTROL_INTERFACE
#define NSEC_PER_USEC 1000u

/* Sets *RET to the text of FIELD, or "". False: another type, or SIZE bytes or more. */
static bool read_text(struct json_object *parameters, const char *field, size_t size,
		      const char **ret)
{
	*ret = "";
	return varlink_get_string(parameters, field, ret) >= 0 && strlen(*ret) < size;
}

/* Reads a time in microseconds, which may be 0 only with ZERO. Leaves *RET_NS alone if FIELD is not
 * there. */
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

/* Changes the request that the trigger makes to what the caller wants. Returns the name of a bad
 * parameter, NULL: all are good. */
static const char *read_wishes(struct json_object *parameters, struct request *q)
{
	uint64_t bytes = ENTRY_ABSENT, ns = ENTRY_ABSENT;
	struct json_object *labels;
	const char *reason;

	if (varlink_get_u64(parameters, "windowBytes", &bytes) < 0 || bytes == 0)
		return "windowBytes";
	if (!read_time(parameters, "windowUSec", false, &ns))
		return "windowUSec";
	/* A window in bytes replaces a window in time of the trigger, and the other way round. */
	if (bytes != ENTRY_ABSENT || ns != ENTRY_ABSENT) {
		q->last_bytes = bytes;
		q->last_ns = ns;
	}
	if (!read_text(parameters, "reason", sizeof(q->reason), &reason) || !label_is_plain(reason))
		return "reason";
	if (*reason)
		strcpy(q->reason, reason);
	if (varlink_get_bool(parameters, "decode", &q->decode) < 0)
		return "decode";
	/* Without a report there is no deadline. */
	if (!q->decode)
		q->deadline_ns = ENTRY_ABSENT;
	if (!read_time(parameters, "deadlineUSec", true, &q->deadline_ns))
		return "deadlineUSec";
	if (json_object_object_get_ex(parameters, "labels", &labels) && labels &&
	    entry_read_labels(labels, &q->labels) < 0)
		return "labels";
	return NULL;
}

/* Keeps PEER until snapshot ID ends. False: too many calls wait. */
static bool snapshot_wait(struct control *c, struct peer *peer, const char *id)
{
	for (size_t i = 0; i < CONTROL_MAX_WAITS; i++) {
		if (c->snapshot_waits[i].peer)
			continue;
		c->snapshot_waits[i].peer = peer;
		strcpy(c->snapshot_waits[i].id, id);
		return true;
	}
	return false;
}

void control_no_such_trigger(struct peer *peer, const char *name)
{
	peer_error(peer, INTERFACE ".NoSuchTrigger",
		   control_object("trigger", json_object_new_string(name)));
}

void control_not_tracing(struct peer *peer, const char *cause)
{
	peer_error(peer, INTERFACE ".NotTracing",
		   control_object("cause", json_object_new_string(cause)));
}

static void snapshot_fire(struct control *c, struct peer *peer, const struct request *q)
{
	struct trigger_answer answer;
	const struct entry *e = NULL;
	int r = trigger_fire(c->trigger, q, &answer);

	if (r == 0 && store_find(c->store, answer.id, &e) != 0) {
		control_no_such_report(peer, answer.id);
	} else if (r == 0) {
		/* A snapshot that could not begin has ended already. */
		if (entry_ended(e) || !peer_wants_more(peer) || !snapshot_wait(c, peer, answer.id))
			peer_reply(peer, control_report(c, peer, e), false);
	} else if (r == TRIGGER_BUSY)
		control_busy(peer);
	else if (r == TRIGGER_LIMITED)
		peer_error(peer, INTERFACE ".RateLimited",
			   control_object("retryAfterUSec",
					  json_object_new_uint64(answer.retry_usec)));
	else if (r == TRIGGER_UNKNOWN)
		control_no_such_trigger(peer, q->trigger);
	else
		control_not_tracing(peer, r < 0 ? strerror(-r) : answer.why);
}

void control_snapshot(struct control *c, struct peer *peer, struct json_object *parameters)
{
	const struct ucred *who = peer_credentials(peer);
	const char *trigger, *unit, *bad;
	struct request q;

	request_init(&q, "control", INTERFACE ".Snapshot");
	q.pid = (uint64_t)who->pid;
	q.uid = who->uid;
	peer_unit(peer, q.sender_unit);
	if (!read_text(parameters, "trigger", ENTRY_NAME_SIZE, &trigger)) {
		control_invalid(peer, "trigger");
		return;
	}
	if (!read_text(parameters, "unit", sizeof(q.unit), &unit) ||
	    (*unit && !unitname_is_valid(unit))) {
		control_invalid(peer, "unit");
		return;
	}
	strcpy(q.unit, unit);
	if (!*trigger)
		trigger = "control";
	if (trigger_choose(c->trigger, trigger, &q) != 0) {
		control_no_such_trigger(peer, trigger);
		return;
	}
	bad = read_wishes(parameters, &q);
	if (bad)
		control_invalid(peer, bad);
	else
		snapshot_fire(c, peer, &q);
}
