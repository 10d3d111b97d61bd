/*
 * A snapshot's entry to and from JSON: the control protocol's type Report, and the file ID.entry.
 */
#include "daemon/store/entry.h"

#include <assert.h>
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
	assert(state < ARRAY_SIZE(entry_states));
	return entry_states[state];
}

static struct json_object *text_or_null(const char *s)
{
	return *s ? json_object_new_string(s) : NULL;
}

static struct json_object *labels_or_null(const struct labels *l)
{
	struct json_object *o = l->n > 0 ? json_object_new_object() : NULL;

	for (size_t i = 0; o && i < l->n; i++) {
		struct json_object *value = json_object_new_string(l->list[i].value);

		if (json_object_object_add(o, l->list[i].key, value) < 0)
			json_object_put(value);
	}
	return o;
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
		{"name", text_or_null(e->name)},
		{"reason", text_or_null(e->reason)},
		{"unit", text_or_null(e->unit)},
		{"labels", labels_or_null(&e->labels)},
		{"pid", number_or_null(e->pid)},
		{"uid", number_or_null(e->uid)},
		{"senderUnit", text_or_null(e->sender_unit)},
		{"coredump", text_or_null(e->coredump)},
		{"realtimeUSec", json_object_new_uint64(e->realtime_usec)},
		{"bootId", json_object_new_string(e->boot_id)},
		{"rawBytes", json_object_new_uint64(e->raw_bytes)},
		{"bundleBytes", number_or_null(e->bundle_bytes)},
		{"reportBytes", number_or_null(e->report_bytes)},
		{"gaps", number_or_null(e->gaps)},
		{"error", text_or_null(e->error)},
		{"pinned", json_object_new_boolean(e->pinned)},
	};
	struct json_object *o = json_object_new_object();

	for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
		if (!o || json_object_object_add(o, fields[i].key, fields[i].value) < 0)
			json_object_put(fields[i].value);
	return o;
}

/* Whether VALUE is a string without \u0000: what follows one would be lost. */
static bool is_c_string(struct json_object *value)
{
	return json_object_is_type(value, json_type_string) &&
	       strlen(json_object_get_string(value)) == (size_t)json_object_get_string_len(value);
}

int entry_read_labels(struct json_object *list, struct labels *ret)
{
	int r = 0;

	if (!json_object_is_type(list, json_type_object))
		return -EBADMSG;
	json_object_object_foreach(list, key, value)
	{
		if (!is_c_string(value))
			return -EBADMSG;
		if (r == 0)
			r = labels_add(ret, key, json_object_get_string(value));
	}
	return r;
}

static int read_text(struct json_object *o, const char *key, char *ret, size_t size)
{
	const char *text = "";

	if (varlink_get_string(o, key, &text) < 0 || strlen(text) >= size)
		return -EBADMSG;
	strcpy(ret, text);
	return 0;
}

/* Labels beyond the limits are left out. */
static int read_labels(struct json_object *o, struct labels *ret)
{
	struct json_object *list;

	*ret = (struct labels){0};
	if (!json_object_object_get_ex(o, "labels", &list) || !list)
		return 0;
	return entry_read_labels(list, ret) == -EBADMSG ? -EBADMSG : 0;
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
	    read_text(o, "name", e.name, sizeof(e.name)) < 0 ||
	    read_text(o, "reason", e.reason, sizeof(e.reason)) < 0 ||
	    read_text(o, "unit", e.unit, sizeof(e.unit)) < 0 || read_labels(o, &e.labels) < 0 ||
	    read_text(o, "senderUnit", e.sender_unit, sizeof(e.sender_unit)) < 0 ||
	    read_text(o, "coredump", e.coredump, sizeof(e.coredump)) < 0 ||
	    read_text(o, "bootId", e.boot_id, sizeof(e.boot_id)) < 0 ||
	    read_text(o, "error", e.error, sizeof(e.error)) < 0 ||
	    varlink_get_u64(o, "pid", &e.pid) < 0 || varlink_get_u64(o, "uid", &e.uid) < 0 ||
	    varlink_get_u64(o, "realtimeUSec", &e.realtime_usec) < 0 ||
	    varlink_get_u64(o, "rawBytes", &e.raw_bytes) < 0 ||
	    varlink_get_u64(o, "bundleBytes", &e.bundle_bytes) < 0 ||
	    varlink_get_u64(o, "reportBytes", &e.report_bytes) < 0 ||
	    varlink_get_u64(o, "gaps", &e.gaps) < 0 || varlink_get_bool(o, "pinned", &e.pinned) < 0)
		return -EBADMSG;
	*ret = e;
	return 0;
}

void entry_log_fields(const struct entry *e, struct log_fields *ret)
{
	*ret = (struct log_fields)LOG_NO_FIELDS;
	ret->report = e->id;
	ret->trigger = *e->name ? e->name : e->trigger;
	ret->trigger_unit = *e->unit ? e->unit : e->sender_unit;
	ret->trigger_pid = e->pid;
	ret->bytes = e->report_bytes;
}
