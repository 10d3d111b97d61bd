/*
 * Makes what users get: the parts of lists and of the status that tell nothing of others, and
 * reports for their uid alone.
 */
#include <string.h>

#include "daemon/control/control_private.h"
#include "proto/base.h"

/* E as PEER may see it. */
static struct entry seen_by(const struct control *c, const struct peer *peer, const struct entry *e)
{
	struct entry seen = *e;

	if (access_rank_of(&c->access, peer) >= ACCESS_ADMIN)
		return seen;
	/* The core file is named after a process that may be anybody's. Gaps are a sum over all. */
	*seen.coredump = '\0';
	seen.gaps = ENTRY_ABSENT;
	if (e->uid == peer_credentials(peer)->uid)
		return seen;
	/* Another user asked for the snapshot. */
	*seen.name = *seen.reason = *seen.unit = *seen.sender_unit = *seen.error = '\0';
	seen.labels = (struct labels){0};
	seen.pid = seen.uid = ENTRY_ABSENT;
	return seen;
}

struct json_object *control_report(const struct control *c, const struct peer *peer,
				   const struct entry *e)
{
	struct entry seen;

	if (!e)
		return control_object("report", NULL);
	seen = seen_by(c, peer, e);
	return control_object("report", entry_to_json(&seen));
}

/* The other fields may name processes, or tell what they do. */
struct json_object *control_status_for_user(struct json_object *status)
{
	static const char *const shown[] = {"version", "state",	  "source",	"terms",    "attrs",
					    "pid",     "yielded", "uptimeUSec", "snapshots"};
	struct json_object *o = json_object_new_object(), *value;

	for (size_t i = 0; o && i < ARRAY_SIZE(shown); i++)
		if (json_object_object_get_ex(status, shown[i], &value))
			control_add(o, shown[i], json_object_get(value));
	if (json_object_object_get_ex(o, "yielded", &value) && value) {
		json_object_object_del(value, "pid");
		json_object_object_del(value, "uid");
	}
	json_object_put(status);
	return o;
}

static void send_remade(struct peer *peer, const char *id, int fd, uint64_t size)
{
	char name[STORE_NAME_SIZE];

	store_file_name(id, STORE_REPORT, name);
	control_send_fd(peer, name, "application/json", fd, size);
}

/* A report was made for UID, or cannot be made. */
static void on_remade(void *userdata, const char *id, uid_t uid)
{
	struct control *c = userdata;

	for (size_t i = 0; i < CONTROL_MAX_WAITS; i++) {
		struct peer *peer = c->remake_waits.peers[i];
		struct json_object *o;
		uint64_t size;
		int fd;

		if (!peer || peer_credentials(peer)->uid != uid ||
		    strcmp(c->remake_ids[i], id) != 0)
			continue;
		c->remake_waits.peers[i] = NULL;
		if (remake_find(c->remake, id, uid, &fd, &size) == 0) {
			send_remade(peer, id, fd, size);
			continue;
		}
		o = control_object("id", json_object_new_string(id));
		control_add(o, "cause",
			    json_object_new_string("it could not be decoded for you alone"));
		peer_error(peer, CONTROL_INTERFACE ".Failed", o);
	}
}

static void wait_for_remake(struct control *c, struct peer *peer, const char *id)
{
	for (size_t i = 0; i < CONTROL_MAX_WAITS; i++) {
		if (c->remake_waits.peers[i])
			continue;
		c->remake_waits.peers[i] = peer;
		strcpy(c->remake_ids[i], id);
		return;
	}
	control_busy(peer);
}

/* Refuses with the reason that List would tell the user. */
static void refuse_user(struct control *c, struct peer *peer, const struct entry *e, bool bundle)
{
	const struct entry seen = seen_by(c, peer, e);

	control_get_refuse(peer, &seen, false, bundle);
}

void control_get_for_user(struct control *c, struct peer *peer, const struct entry *e)
{
	const struct remake_handler handler = {c, on_remade};
	uid_t uid = peer_credentials(peer)->uid;
	uint64_t size;
	int fd, r = 0;

	if (!entry_ended(e)) {
		refuse_user(c, peer, e, false);
		return;
	}
	if (!c->remake)
		r = remake_new(c->event, c->config, c->store, &handler, &c->remake);
	if (r == 0 && remake_find(c->remake, e->id, uid, &fd, &size) == 0) {
		send_remade(peer, e->id, fd, size);
		return;
	}
	if (r == 0)
		r = remake_begin(c->remake, e, uid);
	if (r == 0)
		wait_for_remake(c, peer, e->id);
	else if (r == -ENOENT)
		refuse_user(c, peer, e, true);
	else
		control_busy(peer);
}
