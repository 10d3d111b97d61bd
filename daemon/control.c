/*
 * One table of methods: what each takes, who may call it, the function that answers. A call is
 * looked up, authorized once and answered once. Called by server.c with each call, by the manager
 * with news of snapshots; in the loop's thread.
 */
#include "daemon/control_private.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "proto/base.h"
#include "proto/recorder_idl.h"
#include "proto/varlink.h"

#ifndef PTSNAP_VERSION
#define PTSNAP_VERSION "0"
#endif

#define INTERFACE	CONTROL_INTERFACE
#define SERVICE		"org.varlink.service"
#define RETRY_USEC	1000000
#define NSEC_PER_USEC	1000u
#define MEDIA_TYPE_JSON "application/json"
#define MEDIA_TYPE_TAR	"application/x-tar"
#define MEDIA_TYPE_TEXT "text/plain"
#define MEDIA_TYPE_ANY	"application/octet-stream"

/* The description that every varlink service gives of org.varlink.service itself. */
static const char service_idl[] =
	"# The Varlink Service Interface is provided by every varlink service. It\n"
	"# describes the service and the interfaces it implements.\n"
	"interface org.varlink.service\n"
	"\n"
	"method GetInfo() -> (\n"
	"  vendor: string,\n"
	"  product: string,\n"
	"  version: string,\n"
	"  url: string,\n"
	"  interfaces: []string\n"
	")\n"
	"\n"
	"method GetInterfaceDescription(interface: string) -> (description: string)\n"
	"\n"
	"error InterfaceNotFound (interface: string)\n"
	"error MethodNotFound (method: string)\n"
	"error MethodNotImplemented (method: string)\n"
	"error InvalidParameter (parameter: string)\n"
	"error PermissionDenied ()\n";

enum who {
	ANYBODY, /* who can connect */
	TRUSTED, /* root, our own user, the group that the socket's file lets in: a snapshot shows
		  * what other people's programs did */
};

struct method {
	const char *interface, *name;
	enum who who;
	const char *fields[6]; /* NULL-terminated */
	void (*answer)(struct control *c, struct peer *peer, struct json_object *parameters);
};

void control_invalid(struct peer *peer, const char *field)
{
	peer_service_error(peer, "InvalidParameter", "parameter", field);
}

struct json_object *control_object(const char *key, struct json_object *value)
{
	struct json_object *o = json_object_new_object();

	if (!o || json_object_object_add(o, key, value) < 0)
		json_object_put(value);
	return o;
}

void control_add(struct json_object *o, const char *key, struct json_object *value)
{
	if (!o || json_object_object_add(o, key, value) < 0)
		json_object_put(value);
}

static void no_such_report(struct peer *peer, const char *id)
{
	peer_error(peer, INTERFACE ".NoSuchReport",
		   control_object("id", json_object_new_string(id)));
}

static void get_info(struct control *c, struct peer *peer, struct json_object *parameters)
{
	struct json_object *o = json_object_new_object(), *interfaces = json_object_new_array();

	(void)c;
	(void)parameters;
	control_add(o, "vendor", json_object_new_string("ptsnap"));
	control_add(o, "product", json_object_new_string("ptsnapd"));
	control_add(o, "version", json_object_new_string(PTSNAP_VERSION));
	control_add(o, "url", json_object_new_string("man:ptsnapd(8)"));
	json_object_array_add(interfaces, json_object_new_string(SERVICE));
	json_object_array_add(interfaces, json_object_new_string(INTERFACE));
	control_add(o, "interfaces", interfaces);
	peer_reply(peer, o, false);
}

static void get_description(struct control *c, struct peer *peer, struct json_object *parameters)
{
	const char *interface = NULL, *text = NULL;

	(void)c;
	if (varlink_get_string(parameters, "interface", &interface) < 0 || !interface) {
		control_invalid(peer, "interface");
		return;
	}
	if (strcmp(interface, INTERFACE) == 0)
		text = recorder_idl;
	else if (strcmp(interface, SERVICE) == 0)
		text = service_idl;
	if (text)
		peer_reply(peer, control_object("description", json_object_new_string(text)),
			   false);
	else
		peer_service_error(peer, "InterfaceNotFound", "interface", interface);
}

static bool control_watch(struct control *c, struct peer *peer, const char *id)
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

static struct json_object *report_of(const struct entry *e)
{
	return control_object("report", e ? entry_to_json(e) : NULL);
}

/* The parameters of Snapshot. The name of a bad one, NULL: all good. */
static const char *snapshot_read(struct json_object *parameters, struct request *q)
{
	uint64_t usec = ENTRY_ABSENT;
	const char *reason = "";

	if (varlink_get_string(parameters, "reason", &reason) < 0 ||
	    strlen(reason) >= sizeof(q->reason))
		return "reason";
	strcpy(q->reason, reason);
	if (varlink_get_u64(parameters, "windowBytes", &q->last_bytes) < 0 || q->last_bytes == 0)
		return "windowBytes";
	if (varlink_get_u64(parameters, "windowUSec", &usec) < 0 || usec == 0)
		return "windowUSec";
	if (usec != ENTRY_ABSENT && __builtin_mul_overflow(usec, NSEC_PER_USEC, &q->last_ns))
		return "windowUSec";
	usec = ENTRY_ABSENT;
	if (varlink_get_u64(parameters, "deadlineUSec", &usec) < 0 ||
	    (usec != ENTRY_ABSENT && __builtin_mul_overflow(usec, NSEC_PER_USEC, &q->deadline_ns)))
		return "deadlineUSec";
	return varlink_get_bool(parameters, "decode", &q->decode) < 0 ? "decode" : NULL;
}

void control_busy(struct peer *peer)
{
	peer_error(peer, INTERFACE ".Busy",
		   control_object("retryAfterUSec", json_object_new_int(RETRY_USEC)));
}

static void snapshot_answer(struct control *c, struct peer *peer, int r, const char *id)
{
	const struct entry *e = NULL;

	if (r == TRIGGER_BUSY) {
		control_busy(peer);
	} else if (r == 0 && store_find(c->store, id, &e) == 0) {
		/* It may have ended within the call, when it could not even begin. */
		if (entry_ended(e) || !peer_wants_more(peer) || !control_watch(c, peer, id))
			peer_reply(peer, report_of(e), false);
	} else {
		const char *cause = r == TRIGGER_CLOSED ? "the recorder ends" : strerror(-r);

		peer_error(peer, INTERFACE ".NotTracing",
			   control_object("cause", json_object_new_string(cause)));
	}
}

static void snapshot(struct control *c, struct peer *peer, struct json_object *parameters)
{
	const struct ucred *who = peer_credentials(peer);
	char id[ENTRY_ID_SIZE] = "";
	struct request q;
	const char *bad;

	request_init(&q, "control", INTERFACE ".Snapshot");
	q.pid = (uint64_t)who->pid;
	q.uid = who->uid;
	bad = snapshot_read(parameters, &q);
	if (bad)
		control_invalid(peer, bad);
	else
		snapshot_answer(c, peer, trigger_fire(c->trigger, &q, id), id);
}

static void list(struct control *c, struct peer *peer, struct json_object *parameters)
{
	size_t n = store_count(c->store), i = 0;
	uint64_t limit = UINT64_MAX;

	if (varlink_get_u64(parameters, "limit", &limit) < 0 || limit == 0) {
		control_invalid(peer, "limit");
		return;
	}
	if (!peer_wants_more(peer))
		limit = 1;
	if (n > limit)
		i = n - limit;
	for (; i + 1 < n; i++)
		peer_reply(peer, report_of(store_at(c->store, i)), true);
	peer_reply(peer, report_of(n ? store_at(c->store, n - 1) : NULL), false);
}

/* What Get can be asked for: a part of a snapshot, or an image of the cache that it needs. */
struct wanted {
	enum store_part part;
	bool image;
	uint32_t index; /* of the image */
};

/* "report", "bundle", "images", "image:N" */
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

/* Why that of a snapshot cannot be had. */
static void get_refuse(struct peer *peer, const struct entry *e, const struct wanted *w)
{
	struct json_object *o = control_object("id", json_object_new_string(e->id));

	if (entry_ended(e) && (w->image || w->part == STORE_IMAGES)) {
		peer_error(peer, INTERFACE ".NoSuchImage", o);
	} else if (e->state == ENTRY_FAILED || (w->part == STORE_BUNDLE && entry_ended(e))) {
		control_add(
			o, "cause",
			json_object_new_string(*e->error ? e->error : "its bundle is not there"));
		peer_error(peer, INTERFACE ".Failed", o);
	} else {
		peer_error(peer, INTERFACE ".NotDecoded", o);
	}
}

static const char *media_type_of(const struct wanted *w)
{
	if (w->image)
		return MEDIA_TYPE_ANY;
	return w->part == STORE_REPORT	 ? MEDIA_TYPE_JSON
	       : w->part == STORE_BUNDLE ? MEDIA_TYPE_TAR
					 : MEDIA_TYPE_TEXT;
}

static int open_wanted(const struct control *c, const struct entry *e, const struct wanted *w,
		       int *ret_fd, uint64_t *ret_size)
{
	if (!entry_ended(e))
		return -EBUSY;
	if (w->image)
		return store_open_image(c->store, e, w->index, ret_fd, ret_size);
	return store_open(c->store, e, w->part, ret_fd, ret_size);
}

static void get_wanted(struct control *c, struct peer *peer, const struct entry *e,
		       const struct wanted *w)
{
	struct json_object *o;
	char name[STORE_NAME_SIZE + 32];
	uint64_t size;
	int fd;

	if (open_wanted(c, e, w, &fd, &size) < 0) {
		get_refuse(peer, e, w);
		return;
	}
	if (w->image)
		snprintf(name, sizeof(name), "%s.image%" PRIu32, e->id, w->index);
	else
		store_file_name(e->id, w->part, name);
	o = control_object("fileDescriptor", json_object_new_int(0));
	control_add(o, "sizeBytes", json_object_new_uint64(size));
	control_add(o, "mediaType", json_object_new_string(media_type_of(w)));
	control_add(o, "name", json_object_new_string(name));
	peer_reply_fd(peer, o, fd);
}

static void get(struct control *c, struct peer *peer, struct json_object *parameters)
{
	const char *id = NULL, *format = "report";
	const struct entry *e = NULL;
	struct wanted wanted;
	int r;

	if (varlink_get_string(parameters, "id", &id) < 0 || !id) {
		control_invalid(peer, "id");
		return;
	}
	if (varlink_get_string(parameters, "format", &format) < 0) {
		control_invalid(peer, "format");
		return;
	}
	r = store_find(c->store, id, &e);
	if (!wanted_read(format, &wanted))
		peer_error(peer, INTERFACE ".UnsupportedFormat",
			   control_object("format", json_object_new_string(format)));
	else if (r == STORE_AMBIGUOUS)
		peer_error(peer, INTERFACE ".AmbiguousReport",
			   control_object("id", json_object_new_string(id)));
	else if (r < 0)
		no_such_report(peer, id);
	else
		get_wanted(c, peer, e, &wanted);
}

static void status(struct control *c, struct peer *peer, struct json_object *parameters)
{
	(void)parameters;
	peer_reply(peer, control_object("status", status_to_json(&c->status)), false);
}

/* clang-format off */
static const struct method methods[] = {
	{SERVICE, "GetInfo", ANYBODY, {NULL}, get_info},
	{SERVICE, "GetInterfaceDescription", ANYBODY, {"interface", NULL}, get_description},
	{INTERFACE, "Snapshot", TRUSTED,
		{"reason", "windowBytes", "windowUSec", "decode", "deadlineUSec", NULL}, snapshot},
	{INTERFACE, "List", TRUSTED, {"limit", NULL}, list},
	{INTERFACE, "Get", TRUSTED, {"id", "format", NULL}, get},
	{INTERFACE, "Status", ANYBODY, {NULL}, status},
	{INTERFACE, "Check", TRUSTED, {NULL}, control_check},
	{INTERFACE, "Yield", TRUSTED, {"forUSec", NULL}, control_yield},
	{INTERFACE, "Resume", TRUSTED, {NULL}, control_resume},
};
/* clang-format on */

static bool control_allows(const struct control *c, const struct peer *peer, enum who who)
{
	uid_t uid = peer_credentials(peer)->uid;

	return who == ANYBODY || uid == 0 || uid == geteuid() ||
	       (c->have_group && peer_in_group(peer, c->group));
}

static const struct method *control_find(const struct varlink_call *call)
{
	for (size_t i = 0; i < ARRAY_SIZE(methods); i++)
		if (strcmp(call->interface, methods[i].interface) == 0 &&
		    strcmp(call->name, methods[i].name) == 0)
			return &methods[i];
	return NULL;
}

static bool control_has_interface(const char *name)
{
	return strcmp(name, INTERFACE) == 0 || strcmp(name, SERVICE) == 0;
}

void control_on_call(void *userdata, struct peer *peer, const struct varlink_call *call)
{
	const struct method *m = control_find(call);
	struct control *c = userdata;
	const char *unknown;

	if (!m && control_has_interface(call->interface)) {
		peer_service_error(peer, "MethodNotFound", "method", call->method);
	} else if (!m) {
		peer_service_error(peer, "InterfaceNotFound", "interface", call->interface);
	} else if (!control_allows(c, peer, m->who)) {
		peer_error(peer, SERVICE ".PermissionDenied", NULL);
	} else if ((unknown = varlink_unknown_field(call->parameters, m->fields))) {
		control_invalid(peer, unknown);
	} else {
		m->answer(c, peer, call->parameters);
	}
}

static void control_forget(struct control_waits *w, const struct peer *peer)
{
	for (size_t i = 0; i < CONTROL_MAX_WATCHES; i++)
		if (w->peers[i] == peer)
			w->peers[i] = NULL;
}

void control_on_gone(void *userdata, struct peer *peer)
{
	struct control *c = userdata;

	for (size_t i = 0; i < CONTROL_MAX_WATCHES; i++)
		if (c->watches[i].peer == peer)
			c->watches[i].peer = NULL;
	control_forget(&c->lease_waits, peer);
	control_forget(&c->check_waits, peer);
}

bool control_wait(struct control_waits *w, struct peer *peer)
{
	for (size_t i = 0; i < CONTROL_MAX_WATCHES; i++) {
		if (w->peers[i])
			continue;
		w->peers[i] = peer;
		return true;
	}
	return false;
}

struct peer *control_take(struct control_waits *w)
{
	for (size_t i = 0; i < CONTROL_MAX_WATCHES; i++)
		if (w->peers[i])
			return TAKE_PTR(w->peers[i]);
	return NULL;
}

void control_done(struct control *c)
{
	check_job_free(c->check);
	c->check = NULL;
}

static struct json_object *progress_of(const char *id, enum job_phase phase, uint32_t percent)
{
	struct json_object *o = json_object_new_object();

	control_add(o, "id", json_object_new_string(id));
	control_add(o, "phase", json_object_new_string(job_phase_name(phase)));
	control_add(o, "percent",
		    percent == JOB_NO_PERCENT ? NULL : json_object_new_int((int)percent));
	return control_object("progress", o);
}

void control_on_progress(struct control *c, const char *id, enum job_phase phase, uint32_t percent)
{
	for (size_t i = 0; i < CONTROL_MAX_WATCHES; i++) {
		struct control_watch *w = &c->watches[i];

		/* One that reads slowly is told of the next step. */
		if (w->peer && strcmp(w->id, id) == 0 && peer_is_drained(w->peer))
			peer_reply(w->peer, progress_of(id, phase, percent), true);
	}
}

void control_on_ended(struct control *c, const char *id)
{
	const struct entry *e = NULL;

	if (store_find(c->store, id, &e) != 0)
		e = NULL;
	for (size_t i = 0; i < CONTROL_MAX_WATCHES; i++) {
		struct control_watch *w = &c->watches[i];
		struct peer *peer = w->peer;

		if (!peer || strcmp(w->id, id) != 0)
			continue;
		w->peer = NULL;
		if (e)
			peer_reply(peer, report_of(e), false);
		else
			no_such_report(peer, id);
	}
}
