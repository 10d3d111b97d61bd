/*
 * The table of methods: what each takes, who may call it, and the function that answers.
 */
#include "daemon/control/control_private.h"

#include <string.h>

#include "proto/base.h"
#include "proto/varlink.h"

#ifndef PTSNAP_VERSION
#define PTSNAP_VERSION "0"
#endif

#define INTERFACE  CONTROL_INTERFACE
#define SERVICE	   "org.varlink.service"
#define RETRY_USEC 1000000

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

struct method {
	const char *interface, *name;
	enum access_rank rank;	/* who may call it */
	const char *fields[10]; /* NULL-terminated */
	void (*answer)(struct control *c, struct peer *peer, struct json_object *parameters);
};

void control_invalid(struct peer *peer, const char *field)
{
	peer_service_error(peer, "InvalidParameter", "parameter", field);
}

void control_denied(const struct control *c, struct peer *peer, const char *action)
{
	struct json_object *o = control_object("action", json_object_new_string(action));

	if (c->access.have_admins)
		control_add(o, "group", json_object_new_string(c->access.admin_group));
	peer_error(peer, INTERFACE ".PermissionDenied", o);
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

void control_busy(struct peer *peer)
{
	peer_error(peer, INTERFACE ".Busy",
		   control_object("retryAfterUSec", json_object_new_int(RETRY_USEC)));
}

static void status(struct control *c, struct peer *peer, struct json_object *parameters)
{
	struct json_object *o = status_to_json(&c->status);

	(void)parameters;
	if (access_rank_of(&c->access, peer) < ACCESS_ADMIN)
		o = control_status_for_user(o);
	peer_reply(peer, control_object("status", o), false);
}

static void reload(struct control *c, struct peer *peer, struct json_object *parameters)
{
	struct json_object *warnings = json_object_new_array();
	char why[1024];

	(void)parameters;
	if (c->reload(c->reload_userdata, warnings, why, sizeof(why)) == 0) {
		peer_reply(peer, control_object("warnings", warnings), false);
		return;
	}
	json_object_put(warnings);
	peer_error(peer, INTERFACE ".NotReloaded",
		   control_object("cause", json_object_new_string(why)));
}

/* clang-format off */
static const struct method methods[] = {
	{SERVICE, "GetInfo", ACCESS_ANYBODY, {NULL}, get_info},
	{SERVICE, "GetInterfaceDescription", ACCESS_ANYBODY, {"interface", NULL}, get_description},
	{INTERFACE, "Snapshot", ACCESS_USER,
		{"reason", "trigger", "unit", "labels", "windowBytes", "windowUSec", "decode",
		 "deadlineUSec", NULL}, control_snapshot},
	{INTERFACE, "List", ACCESS_USER, {"limit", "before", NULL}, control_list},
	{INTERFACE, "Get", ACCESS_USER, {"id", "format", NULL}, control_get},
	{INTERFACE, "Pin", ACCESS_ADMIN, {"id", "pinned", NULL}, control_pin},
	{INTERFACE, "Delete", ACCESS_ADMIN, {"id", NULL}, control_delete},
	{INTERFACE, "AddTrigger", ACCESS_ADMIN, {"name", "settings", NULL}, control_add_trigger},
	{INTERFACE, "RemoveTrigger", ACCESS_ADMIN, {"name", NULL}, control_remove_trigger},
	{INTERFACE, "ListTriggers", ACCESS_ADMIN, {NULL}, control_list_triggers},
	{INTERFACE, "TestTrigger", ACCESS_ADMIN, {"name", NULL}, control_test_trigger},
	{INTERFACE, "Status", ACCESS_ANYBODY, {NULL}, status},
	{INTERFACE, "Monitor", ACCESS_ADMIN, {NULL}, control_monitor},
	{INTERFACE, "Check", ACCESS_ADMIN, {NULL}, control_check},
	{INTERFACE, "Yield", ACCESS_ADMIN, {"forUSec", NULL}, control_yield},
	{INTERFACE, "Resume", ACCESS_ADMIN, {NULL}, control_resume},
	{INTERFACE, "Reload", ACCESS_ADMIN, {NULL}, reload},
};
/* clang-format on */

static const struct method *control_find(const struct varlink_call *call)
{
	for (size_t i = 0; i < ARRAY_SIZE(methods); i++)
		if (strcmp(call->interface, methods[i].interface) == 0 &&
		    strcmp(call->name, methods[i].name) == 0)
			return &methods[i];
	return NULL;
}

void control_on_call(void *userdata, struct peer *peer, const struct varlink_call *call)
{
	const struct method *m = control_find(call);
	struct control *c = userdata;
	const char *unknown;

	if (!m &&
	    (strcmp(call->interface, INTERFACE) == 0 || strcmp(call->interface, SERVICE) == 0)) {
		peer_service_error(peer, "MethodNotFound", "method", call->method);
	} else if (!m) {
		peer_service_error(peer, "InterfaceNotFound", "interface", call->interface);
	} else if (access_rank_of(&c->access, peer) < m->rank) {
		control_denied(c, peer, m->name);
	} else if ((unknown = varlink_unknown_field(call->parameters, m->fields))) {
		control_invalid(peer, unknown);
	} else {
		m->answer(c, peer, call->parameters);
	}
}

/* Credentials are ignored on the socket for everybody; administrators use the control socket. */
void control_on_status_call(void *userdata, struct peer *peer, const struct varlink_call *call)
{
	const struct method *m = control_find(call);
	struct control *c = userdata;
	struct json_object *o;

	if (m && (m->rank > ACCESS_ANYBODY || !c->config->status_to_all)) {
		o = control_object("action", json_object_new_string(m->name));
		control_add(o, "socket", json_object_new_string(c->config->socket));
		peer_error(peer, INTERFACE ".PermissionDenied", o);
	} else if (m && m->answer == status &&
		   !varlink_unknown_field(call->parameters, m->fields)) {
		peer_reply(peer, control_object("status", status_for_all(&c->status)), false);
	} else {
		control_on_call(userdata, peer, call);
	}
}

static void control_forget(struct control_waits *w, const struct peer *peer)
{
	for (size_t i = 0; i < CONTROL_MAX_WAITS; i++)
		if (w->peers[i] == peer)
			w->peers[i] = NULL;
}

void control_on_gone(void *userdata, struct peer *peer)
{
	struct control *c = userdata;

	for (size_t i = 0; i < CONTROL_MAX_WAITS; i++)
		if (c->snapshot_waits[i].peer == peer)
			c->snapshot_waits[i].peer = NULL;
	control_forget(&c->lease_waits, peer);
	control_forget(&c->check_waits, peer);
	control_forget(&c->monitor_waits, peer);
	control_forget(&c->remake_waits, peer);
	control_forget(&c->test_waits, peer);
}

bool control_wait(struct control_waits *w, struct peer *peer)
{
	for (size_t i = 0; i < CONTROL_MAX_WAITS; i++) {
		if (w->peers[i])
			continue;
		w->peers[i] = peer;
		return true;
	}
	return false;
}

struct peer *control_take(struct control_waits *w)
{
	for (size_t i = 0; i < CONTROL_MAX_WAITS; i++)
		if (w->peers[i])
			return TAKE_PTR(w->peers[i]);
	return NULL;
}

void control_use(struct control *c, const struct config *config)
{
	c->config = config;
	access_use(&c->access, config->admin_group, c->names);
	if (c->remake)
		remake_use(c->remake, config);
}

bool control_is_idle(const struct control *c)
{
	return !c->check && (!c->remake || !remake_is_running(c->remake));
}

void control_done(struct control *c)
{
	check_job_free(c->check);
	c->check = NULL;
	remake_free(c->remake);
	c->remake = NULL;
	c->test_timer = sd_event_source_disable_unref(c->test_timer);
}

void control_on_progress(struct control *c, const char *id, enum job_phase phase, uint32_t percent)
{
	for (size_t i = 0; i < CONTROL_MAX_WAITS; i++) {
		struct control_snapshot_wait *w = &c->snapshot_waits[i];

		struct json_object *o;

		/* A client that reads slowly misses steps. */
		if (!w->peer || strcmp(w->id, id) != 0 || !peer_is_drained(w->peer))
			continue;
		o = control_object("id", json_object_new_string(id));
		control_add(o, "phase", json_object_new_string(job_phase_name(phase)));
		control_add(o, "percent",
			    percent == JOB_NO_PERCENT ? NULL : json_object_new_int((int)percent));
		peer_reply(w->peer, control_object("progress", o), true);
	}
}

void control_on_ended(struct control *c, const char *id)
{
	const struct entry *e = NULL;

	if (store_find(c->store, id, &e) != 0)
		e = NULL;
	for (size_t i = 0; i < CONTROL_MAX_WAITS; i++) {
		struct control_snapshot_wait *w = &c->snapshot_waits[i];
		struct peer *peer = w->peer;

		if (!peer || strcmp(w->id, id) != 0)
			continue;
		w->peer = NULL;
		if (e)
			peer_reply(peer, control_report(c, peer, e), false);
		else
			control_no_such_report(peer, id);
	}
}
