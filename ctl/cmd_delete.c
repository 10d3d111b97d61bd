/*
 * ptsnapctl delete: stored snapshots that nobody needs any more.
 */
#include "ctl/verb.h"

#include "proto/base.h"

#include "ctl/base/say.h"
#include "ctl/client/client.h"

static const struct option NO_OPTIONS[] = {{NULL, 0, NULL, 0}};

static int delete_one(struct client *c, const char *id)
{
	struct json_object *parameters = json_object_new_object(), *answer = NULL;
	int r;

	if (!parameters ||
	    json_object_object_add(parameters, "id", json_object_new_string(id)) < 0) {
		json_object_put(parameters);
		return say_error(EXIT_CODE_FAILURE, "out of memory");
	}
	r = client_call(c, "Delete", parameters, NULL, NULL, &answer);
	json_object_put(answer);
	return r;
}

/* The rest is tried, too; the first failure counts. */
static int delete_all(const struct settings *s, char **ids, int n)
{
	CLEANUP(client_freep) struct client *c = NULL;
	int r = client_open(s, CLIENT_TIMEOUT_USEC, &c), failed = 0;

	if (r != 0)
		return r;
	for (int i = 0; i < n; i++) {
		r = delete_one(c, ids[i]);
		failed = failed ? failed : r;
	}
	return failed;
}

int cmd_delete(struct settings *s, int argc, char **argv)
{
	if (option_next(s, argc, argv, NO_OPTIONS, "", true) != OPTION_END)
		return EXIT_CODE_USAGE;
	if (s->help || s->version)
		return 0;
	if (optind == argc)
		return say_error(EXIT_CODE_USAGE,
				 "delete takes IDs of `ptsnapctl list', at least one");
	return delete_all(s, argv + optind, argc - optind);
}
