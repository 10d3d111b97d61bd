/*
 * The method Check: what a thread finds out about the host, then what the recorder knows of itself.
 * Whoever asks while one is under way gets its result. Called by control.c.
 */
#include "daemon/check/check.h"
#include "daemon/control/control_private.h"

static void collect(void *userdata, const struct finding *f)
{
	struct json_object *one = finding_to_json(f);

	if (one && json_object_array_add(userdata, one) < 0)
		json_object_put(one);
}

static void on_done(void *userdata, const struct finding *all, size_t n)
{
	struct control *c = userdata;
	struct json_object *found = json_object_new_array();
	struct peer *peer;

	for (size_t i = 0; found && i < n; i++)
		collect(found, &all[i]);
	if (found)
		check_live(&c->status, collect, found);
	while ((peer = control_take(&c->check_waits)))
		peer_reply(peer, control_object("findings", json_object_get(found)), false);
	json_object_put(found);
	check_job_free(c->check);
	c->check = NULL;
}

void control_check(struct control *c, struct peer *peer, struct json_object *parameters)
{
	const struct check_job_handler handler = {c, on_done};

	(void)parameters;
	if (!c->check && check_job_new(c->event, c->config, &handler, &c->check) < 0)
		control_busy(peer);
	else if (!control_wait(&c->check_waits, peer))
		control_busy(peer);
}
