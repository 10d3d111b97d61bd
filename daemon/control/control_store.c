/*
 * The methods for stored snapshots: List, Get, Pin and Delete.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/log.h"
#include "daemon/control/control_private.h"
#include "daemon/store/store_file.h"
#include "proto/varlink.h"

#define INTERFACE CONTROL_INTERFACE

void control_no_such_report(struct peer *peer, const char *id)
{
	peer_error(peer, INTERFACE ".NoSuchReport",
		   control_object("id", json_object_new_string(id)));
}

/* A List call that is being answered. Snapshots come and go meanwhile, so it knows them by id. */
struct listing {
	struct control *c;
	char next[ENTRY_ID_SIZE], last[ENTRY_ID_SIZE]; /* "" in LAST: none */
};

/* Replies that List makes at a time, of at most a few KiB each. */
#define LIST_AT_ONCE 32

static void list_some(void *state, struct peer *peer)
{
	struct listing *l = state;
	const struct store *store = l->c->store;
	size_t i = store_index(store, l->next);
	const struct entry *e = store_at(store, i);
	bool more = true;

	for (int n = 0; n < LIST_AT_ONCE && more; n++) {
		const struct entry *after = store_at(store, ++i);

		if (e && strcmp(e->id, l->last) > 0)
			e = NULL; /* all the others were removed meanwhile */
		more = e && after && strcmp(after->id, l->last) <= 0;
		peer_reply(peer, control_report(l->c, peer, e), more);
		if (more)
			strcpy(l->next, after->id);
		e = after;
	}
}

void control_list(struct control *c, struct peer *peer, struct json_object *parameters)
{
	size_t n = store_count(c->store), i;
	uint64_t limit = UINT64_MAX;
	const char *before = NULL;
	struct listing *l;

	if (varlink_get_u64(parameters, "limit", &limit) < 0 || limit == 0) {
		control_invalid(peer, "limit");
		return;
	}
	if (varlink_get_string(parameters, "before", &before) < 0 ||
	    (before && !store_scan_is_id(before))) {
		control_invalid(peer, "before");
		return;
	}
	if (!peer_wants_more(peer))
		limit = 1;
	if (before)
		n = store_index(c->store, before);
	i = n > limit ? n - limit : 0;
	l = calloc(1, sizeof(*l));
	if (!l) {
		control_busy(peer);
		return;
	}
	l->c = c;
	if (n > 0) {
		strcpy(l->next, store_at(c->store, i)->id);
		strcpy(l->last, store_at(c->store, n - 1)->id);
	}
	peer_reply_stepwise(peer, list_some, l);
}

/* The thing that Get is asked for: a part of a snapshot, or an image that the snapshot needs. */
struct wanted {
	enum store_part part;
	bool image;
	uint32_t index; /* of the image */
};

/* FORMAT is "report", "bundle", "images" or "image:N". */
static bool wanted_read(const char *format, struct wanted *ret)
{
	char *end;

	*ret = (struct wanted){.part = STORE_REPORT};
	if (strcmp(format, "bundle") == 0)
		ret->part = STORE_BUNDLE;
	else if (strcmp(format, "images") == 0)
		ret->part = STORE_IMAGES;
	else if (strncmp(format, "image:", 6) == 0 && format[6] >= '0' && format[6] <= '9' &&
		 strlen(format) <= 6 + 9) {
		ret->image = true;
		ret->index = (uint32_t)strtoul(format + 6, &end, 10);
		return *end == '\0';
	} else
		return strcmp(format, "report") == 0;
	return true;
}

void control_get_refuse(struct peer *peer, const struct entry *e, bool image, bool bundle)
{
	struct json_object *o = control_object("id", json_object_new_string(e->id));

	if (entry_ended(e) && image) {
		peer_error(peer, INTERFACE ".NoSuchImage", o);
	} else if (e->state == ENTRY_FAILED || (bundle && entry_ended(e))) {
		control_add(
			o, "cause",
			json_object_new_string(*e->error ? e->error : "its bundle is not there"));
		peer_error(peer, INTERFACE ".Failed", o);
	} else {
		peer_error(peer, INTERFACE ".NotDecoded", o);
	}
}

void control_send_fd(struct peer *peer, const char *name, const char *media_type, int fd,
		     uint64_t size)
{
	struct json_object *o = control_object("fileDescriptor", json_object_new_int(0));

	control_add(o, "sizeBytes", json_object_new_uint64(size));
	control_add(o, "mediaType", json_object_new_string(media_type));
	control_add(o, "name", json_object_new_string(name));
	peer_reply_fd(peer, o, fd);
}

static void get_wanted(struct control *c, struct peer *peer, const struct entry *e,
		       const struct wanted *w)
{
	static const char *const media_types[] = {[STORE_REPORT] = "application/json",
						  [STORE_BUNDLE] = "application/x-tar",
						  [STORE_IMAGES] = "text/plain"};
	char name[STORE_NAME_SIZE + 32];
	uint64_t size;
	int fd, r = -EBUSY;

	if (entry_ended(e))
		r = w->image ? store_open_image(c->store, e, w->index, &fd, &size)
			     : store_open(c->store, e, w->part, &fd, &size);
	if (r < 0) {
		control_get_refuse(peer, e, w->image || w->part == STORE_IMAGES,
				   w->part == STORE_BUNDLE);
		return;
	}
	if (w->image)
		snprintf(name, sizeof(name), "%s.image%" PRIu32, e->id, w->index);
	else
		store_file_name(e->id, w->part, name);
	control_send_fd(peer, name, w->image ? "application/octet-stream" : media_types[w->part],
			fd, size);
}

/* Finds the snapshot that ID means; NULL, after the error was answered: there is none. */
static const struct entry *find(struct control *c, struct peer *peer, const char *id)
{
	const struct entry *e = NULL;
	int r = store_find(c->store, id, &e);

	if (r == 0)
		return e;
	if (r == STORE_AMBIGUOUS)
		peer_error(peer, INTERFACE ".AmbiguousReport",
			   control_object("id", json_object_new_string(id)));
	else
		control_no_such_report(peer, id);
	return NULL;
}

void control_get(struct control *c, struct peer *peer, struct json_object *parameters)
{
	const char *id = NULL, *format = "report";
	struct wanted wanted;
	const struct entry *e;

	if (varlink_get_string(parameters, "id", &id) < 0 || !id) {
		control_invalid(peer, "id");
		return;
	}
	if (varlink_get_string(parameters, "format", &format) < 0) {
		control_invalid(peer, "format");
		return;
	}
	if (!wanted_read(format, &wanted)) {
		peer_error(peer, INTERFACE ".UnsupportedFormat",
			   control_object("format", json_object_new_string(format)));
		return;
	}
	e = find(c, peer, id);
	if (!e)
		return;
	if (access_rank_of(&c->access, peer) >= ACCESS_ADMIN)
		get_wanted(c, peer, e, &wanted);
	else if (!wanted.image && wanted.part == STORE_REPORT)
		control_get_for_user(c, peer, e);
	else
		control_denied(c, peer,
			       wanted.part == STORE_BUNDLE ? "Get of a bundle" : "Get of images");
}

/* Logs WHAT the peer did with snapshot ID. */
static void tell(struct peer *peer, const char *id, const char *what)
{
	char who[PEER_NAME_SIZE];

	peer_name(peer, who);
	log_line(LOG_INFO, id, "snapshot %s %s by %s", id, what, who);
}

static void pin(struct control *c, struct peer *peer, const char *id, bool pinned)
{
	struct store_pins pins;
	struct json_object *o;
	int r = store_pin(c->store, id, pinned, &pins);

	if (r == -EBUSY) {
		control_busy(peer);
	} else if (r == -EDQUOT) {
		o = control_object("bytes", json_object_new_uint64(pins.bytes));
		control_add(o, "maxBytes", json_object_new_uint64(pins.max_bytes));
		control_add(o, "snapshots", json_object_new_uint64(pins.n));
		control_add(o, "maxSnapshots", json_object_new_uint64(pins.max_n));
		peer_error(peer, INTERFACE ".TooManyPinned", o);
	} else if (r < 0) {
		o = control_object("id", json_object_new_string(id));
		control_add(o, "cause",
			    json_object_new_string(r == -ENODATA ? "not all of it is on the disk"
								 : strerror(-r)));
		peer_error(peer, INTERFACE ".Failed", o);
	} else {
		tell(peer, id, pinned ? "pinned" : "unpinned");
		peer_reply(peer, NULL, false);
	}
}

/* Reads the parameter id. "latest" is valid only with LATEST, as it must not choose what is lost.
 */
static bool read_id(struct json_object *parameters, bool latest, const char **ret)
{
	*ret = NULL;
	return varlink_get_string(parameters, "id", ret) >= 0 && *ret &&
	       (latest || strcmp(*ret, "latest") != 0);
}

void control_pin(struct control *c, struct peer *peer, struct json_object *parameters)
{
	struct json_object *value = NULL;
	const struct entry *e;
	const char *id;
	char known[ENTRY_ID_SIZE];
	bool pinned;

	if (!json_object_object_get_ex(parameters, "pinned", &value) ||
	    !json_object_is_type(value, json_type_boolean)) {
		control_invalid(peer, "pinned");
		return;
	}
	pinned = json_object_get_boolean(value);
	if (!read_id(parameters, pinned, &id)) {
		control_invalid(peer, "id");
		return;
	}
	e = find(c, peer, id);
	if (!e)
		return;
	strcpy(known, e->id);
	pin(c, peer, known, pinned);
}

void control_delete(struct control *c, struct peer *peer, struct json_object *parameters)
{
	const struct entry *e;
	const char *id;
	char known[ENTRY_ID_SIZE];
	int r;

	if (!read_id(parameters, false, &id)) {
		control_invalid(peer, "id");
		return;
	}
	e = find(c, peer, id);
	if (!e)
		return;
	strcpy(known, e->id);
	r = store_delete(c->store, known);
	if (r == -EPERM) {
		peer_error(peer, INTERFACE ".Pinned",
			   control_object("id", json_object_new_string(known)));
	} else if (r < 0) {
		control_busy(peer);
	} else {
		tell(peer, known, "deleted");
		peer_reply(peer, NULL, false);
	}
}
