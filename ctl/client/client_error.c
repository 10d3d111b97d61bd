/*
 * One table from error names to exit codes and sentences. The errors are those of
 * proto/io.ptsnap.recorder.varlink and of org.varlink.service. Called by client.c.
 */
#include "ctl/client/client_error.h"

#include <inttypes.h>
#include <string.h>

#include "proto/varlink.h"

#include "ctl/base/say.h"
#include "ctl/client/client.h"

static const char *word(struct json_object *parameters, const char *field)
{
	const char *text = "?";

	(void)varlink_get_string(parameters, field, &text);
	return text;
}

static uint64_t number(struct json_object *parameters, const char *field)
{
	uint64_t value = 0;

	(void)varlink_get_u64(parameters, field, &value);
	return value;
}

static int no_such_report(struct json_object *p)
{
	return say_error(EXIT_CODE_NO_REPORT, "%s: no such report; `ptsnapctl list' shows them",
			 word(p, "id"));
}

static int ambiguous_report(struct json_object *p)
{
	return say_error(EXIT_CODE_NO_REPORT,
			 "%s: several reports begin so; give more of the id (`ptsnapctl list')",
			 word(p, "id"));
}

static int no_such_image(struct json_object *p)
{
	return say_error(EXIT_CODE_FAILURE, "%s: the recorder has kept no such image",
			 word(p, "id"));
}

static int pinned(struct json_object *p)
{
	const char *id = word(p, "id");

	return say_error(EXIT_CODE_FAILURE, "%s: it is pinned; `ptsnapctl unpin %s' first", id, id);
}

static int too_many_pinned(struct json_object *p)
{
	return say_error(EXIT_CODE_FAILURE,
			 "too much would be pinned: %" PRIu64 " snapshots of at most %" PRIu64
			 ", %" PRIu64 " bytes of at most %" PRIu64 ", the half of MaxSnapshots= "
			 "and MaxUse=; unpin others (`ptsnapctl list' shows them), or take the "
			 "bytes with `ptsnapctl fetch --format=bundle'",
			 number(p, "snapshots"), number(p, "maxSnapshots"), number(p, "bytes"),
			 number(p, "maxBytes"));
}

static int not_decoded(struct json_object *p)
{
	return say_error(EXIT_CODE_NO_REPORT,
			 "%s: this snapshot has no report; fetch it with --format=bundle and run "
			 "`ptsnapctl decode'",
			 word(p, "id"));
}

static int busy(struct json_object *p)
{
	return say_error(EXIT_CODE_BUSY, "the recorder is busy; try again in %" PRIu64 " ms",
			 (number(p, "retryAfterUSec") + 999) / 1000);
}

static int rate_limited(struct json_object *p)
{
	return say_error(
		EXIT_CODE_BUSY,
		"too many snapshots of this kind, or of yours; the recorder takes the next "
		"one in %" PRIu64 " ms",
		(number(p, "retryAfterUSec") + 999) / 1000);
}

static int no_such_trigger(struct json_object *p)
{
	return say_error(EXIT_CODE_USAGE,
			 "the recorder has no trigger %s, or it is not for this unit, or not "
			 "enabled; `ptsnapctl status --json' lists them",
			 word(p, "trigger"));
}

static int not_reloaded(struct json_object *p)
{
	return say_error(EXIT_CODE_FAILURE, "the recorder keeps its configuration: %s",
			 word(p, "cause"));
}

static int not_tracing(struct json_object *p)
{
	return say_error(EXIT_CODE_NOT_TRACING, "the recorder takes no snapshot: %s",
			 word(p, "cause"));
}

static int failed(struct json_object *p)
{
	return say_error(EXIT_CODE_FAILURE, "snapshot %s failed: %s", word(p, "id"),
			 word(p, "cause"));
}

static int unsupported_format(struct json_object *p)
{
	return say_error(EXIT_CODE_USAGE, "the recorder has no format %s", word(p, "format"));
}

static int not_supported(struct json_object *p)
{
	return say_error(EXIT_CODE_FAILURE, "the recorder cannot do that: %s", word(p, "cause"));
}

static int no_space(struct json_object *p)
{
	return say_error(EXIT_CODE_FAILURE,
			 "the recorder's disk is full: %" PRIu64 " bytes needed, %" PRIu64
			 " free; remove old snapshots from its state directory",
			 number(p, "needBytes"), number(p, "haveBytes"));
}

static int denied(struct json_object *p)
{
	const char *action = NULL, *group = NULL, *socket = NULL;

	(void)varlink_get_string(p, "action", &action);
	(void)varlink_get_string(p, "group", &group);
	(void)varlink_get_string(p, "socket", &socket);
	if (!action)
		return say_error(EXIT_CODE_PERMISSION, "the recorder refuses this to you; run as "
						       "root or ask its administrator");
	if (socket)
		return say_error(EXIT_CODE_PERMISSION,
				 "the recorder refuses you this: %s is not for everybody; run as "
				 "root or as a member of the group that owns %s",
				 action, socket);
	if (!group)
		return say_error(EXIT_CODE_PERMISSION,
				 "the recorder refuses you this: %s is for root (the group that "
				 "AdminGroup= in ptsnapd.conf names does not exist)",
				 action);
	return say_error(EXIT_CODE_PERMISSION,
			 "the recorder refuses you this: %s is for root and members of the group "
			 "%s",
			 action, group);
}

static int invalid_parameter(struct json_object *p)
{
	return say_error(EXIT_CODE_USAGE, "the recorder does not accept the value of %s",
			 word(p, "parameter"));
}

static int unknown_method(struct json_object *p)
{
	(void)p;
	return say_error(EXIT_CODE_FAILURE,
			 "the recorder does not know this request; is it older than ptsnapctl?");
}

static const struct {
	const char *name;
	int (*say)(struct json_object *parameters);
} ERRORS[] = {
	{CLIENT_INTERFACE ".NoSuchReport", no_such_report},
	{CLIENT_INTERFACE ".AmbiguousReport", ambiguous_report},
	{CLIENT_INTERFACE ".NoSuchImage", no_such_image},
	{CLIENT_INTERFACE ".Pinned", pinned},
	{CLIENT_INTERFACE ".TooManyPinned", too_many_pinned},
	{CLIENT_INTERFACE ".NotDecoded", not_decoded},
	{CLIENT_INTERFACE ".Busy", busy},
	{CLIENT_INTERFACE ".RateLimited", rate_limited},
	{CLIENT_INTERFACE ".NoSuchTrigger", no_such_trigger},
	{CLIENT_INTERFACE ".NotReloaded", not_reloaded},
	{CLIENT_INTERFACE ".NotTracing", not_tracing},
	{CLIENT_INTERFACE ".Failed", failed},
	{CLIENT_INTERFACE ".UnsupportedFormat", unsupported_format},
	{CLIENT_INTERFACE ".NotSupported", not_supported},
	{CLIENT_INTERFACE ".NoSpace", no_space},
	{CLIENT_INTERFACE ".PermissionDenied", denied},
	{"org.varlink.service.PermissionDenied", denied},
	{"org.varlink.service.InvalidParameter", invalid_parameter},
	{"org.varlink.service.MethodNotFound", unknown_method},
	{"org.varlink.service.MethodNotImplemented", unknown_method},
	{"org.varlink.service.InterfaceNotFound", unknown_method},
};

int client_error_say(const char *error, struct json_object *parameters)
{
	for (size_t i = 0; i < sizeof(ERRORS) / sizeof(ERRORS[0]); i++)
		if (strcmp(ERRORS[i].name, error) == 0)
			return ERRORS[i].say(parameters);
	return say_error(EXIT_CODE_FAILURE, "the recorder answers with %s", error);
}
