/*
 * The control protocol's type Report. Used by control.c for replies and by store_file.c for the
 * file ID.entry.
 */
#include "daemon/entry.h"

#include <stdio.h>
#include <string.h>

#include "proto/base.h"
#include "proto/varlink.h"

static const char *const entry_states[] = {"queued", "capturing", "decoding", "done", "failed"};

void entry_init(struct entry *e)
{
	*e = (struct entry){
		.pid = ENTRY_ABSENT,
		.uid = ENTRY_ABSENT,
		.bundle_bytes = ENTRY_ABSENT,
		.report_bytes = ENTRY_ABSENT,
		.gaps = ENTRY_ABSENT,
	};
}

bool entry_ended(const struct entry *e)
{
	return e->state == ENTRY_DONE || e->state == ENTRY_FAILED;
}

const char *entry_state_name(enum entry_state state)
{
	return entry_states[state];
}

static struct json_object *text_or_null(const char *s)
{
	return *s ? json_object_new_string(s) : NULL;
}

static struct json_object *number_or_null(uint64_t v)
{
	return v != ENTRY_ABSENT ? json_object_new_uint64(v) : NULL;
}

struct json_object *entry_to_json(const struct entry *e)
{
	const struct {
		const char *key;
		struct json_object *value;
	} fields[] = {
		{"id", json_object_new_string(e->id)},
		{"state", json_object_new_string(entry_states[e->state])},
		{"trigger", json_object_new_string(e->trigger)},
		{"reason", text_or_null(e->reason)},
		{"pid", number_or_null(e->pid)},
		{"uid", number_or_null(e->uid)},
		{"realtimeUSec", json_object_new_uint64(e->realtime_usec)},
		{"bootId", json_object_new_string(e->boot_id)},
		{"rawBytes", json_object_new_uint64(e->raw_bytes)},
		{"bundleBytes", number_or_null(e->bundle_bytes)},
		{"reportBytes", number_or_null(e->report_bytes)},
		{"gaps", number_or_null(e->gaps)},
		{"error", text_or_null(e->error)},
	};
	struct json_object *o = json_object_new_object();

	for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
		if (!o || json_object_object_add(o, fields[i].key, fields[i].value) < 0)
			json_object_put(fields[i].value);
	return o;
}

static int read_text(struct json_object *o, const char *key, char *ret, size_t size)
{
	const char *text = "";

	if (varlink_get_string(o, key, &text) < 0 || strlen(text) >= size)
		return -EBADMSG;
	strcpy(ret, text);
	return 0;
}

static int read_state(struct json_object *o, enum entry_state *ret)
{
	const char *text = "";

	if (varlink_get_string(o, "state", &text) < 0)
		return -EBADMSG;
	for (size_t i = 0; i < ARRAY_SIZE(entry_states); i++)
		if (strcmp(text, entry_states[i]) == 0) {
			*ret = (enum entry_state)i;
			return 0;
		}
	return -EBADMSG;
}

int entry_from_json(struct json_object *o, struct entry *ret)
{
	struct entry e;

	entry_init(&e);
	if (read_text(o, "id", e.id, sizeof(e.id)) < 0 || read_state(o, &e.state) < 0 ||
	    read_text(o, "trigger", e.trigger, sizeof(e.trigger)) < 0 ||
	    read_text(o, "reason", e.reason, sizeof(e.reason)) < 0 ||
	    read_text(o, "bootId", e.boot_id, sizeof(e.boot_id)) < 0 ||
	    read_text(o, "error", e.error, sizeof(e.error)) < 0 ||
	    varlink_get_u64(o, "pid", &e.pid) < 0 || varlink_get_u64(o, "uid", &e.uid) < 0 ||
	    varlink_get_u64(o, "realtimeUSec", &e.realtime_usec) < 0 ||
	    varlink_get_u64(o, "rawBytes", &e.raw_bytes) < 0 ||
	    varlink_get_u64(o, "bundleBytes", &e.bundle_bytes) < 0 ||
	    varlink_get_u64(o, "reportBytes", &e.report_bytes) < 0 ||
	    varlink_get_u64(o, "gaps", &e.gaps) < 0)
		return -EBADMSG;
	*ret = e;
	return 0;
}
