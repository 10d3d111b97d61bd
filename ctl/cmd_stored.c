/*
 * ptsnapctl pin, unpin, delete: one call to the recorder for each stored snapshot that is named.
 */
#include "ctl/verb.h"

#include "proto/base.h"

#include "ctl/base/say.h"
#include "ctl/client/client.h"

/* The call Delete, or Pin with PINNED. */
struct stored_call {
	const char *method;
	bool has_pinned, pinned;
};

static int call_one(struct client *c, const struct stored_call *call, const char *id)
{
	struct json_object *parameters = json_object_new_object(), *answer = NULL;
	int r;

	if (!parameters ||
	    json_object_object_add(parameters, "id", json_object_new_string(id)) < 0 ||
	    (call->has_pinned &&
	     json_object_object_add(parameters, "pinned", json_object_new_boolean(call->pinned)) <
		     0)) {
		json_object_put(parameters);
		return say_error(EXIT_CODE_FAILURE, "out of memory");
	}
	r = client_call(c, call->method, parameters, NULL, NULL, &answer);
	json_object_put(answer);
	return r;
}

/* Tries every ID. The exit code is that of the first failure. */
static int call_each(struct settings *s, int argc, char **argv, const struct stored_call *call)
{
	static const struct option no_options[] = {{NULL, 0, NULL, 0}};
	CLEANUP(client_freep) struct client *c = NULL;
	int r, failed = 0;

	if (option_next(s, argc, argv, no_options, "", true) != OPTION_END)
		return EXIT_CODE_USAGE;
	if (s->help || s->version)
		return 0;
	if (optind == argc)
		return say_error(EXIT_CODE_USAGE,
				 "%s takes at least one ID, as `ptsnapctl list' prints them",
				 argv[0]);
	r = client_open(s, CLIENT_TIMEOUT_USEC, &c);
	if (r != 0)
		return r;
	for (int i = optind; i < argc; i++) {
		r = call_one(c, call, argv[i]);
		failed = failed ? failed : r;
	}
	return failed;
}

int cmd_pin(struct settings *s, int argc, char **argv)
{
	return call_each(s, argc, argv, &(struct stored_call){"Pin", true, true});
}

int cmd_unpin(struct settings *s, int argc, char **argv)
{
	return call_each(s, argc, argv, &(struct stored_call){"Pin", true, false});
}

int cmd_delete(struct settings *s, int argc, char **argv)
{
	return call_each(s, argc, argv, &(struct stored_call){"Delete", false, false});
}
