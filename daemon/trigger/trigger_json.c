/*
 * What became of each trigger, as Status tells it. Called by status.c.
 */
#include "daemon/trigger/trigger.h"

#include "proto/base.h"

static void put(struct json_object *to, const char *key, struct json_object *value)
{
	if (json_object_object_add(to, key, value) < 0)
		json_object_put(value);
}

static struct json_object *one(const struct trigger_object *o, const struct gate_trigger *g)
{
	struct json_object *to = json_object_new_object();

	put(to, "name", json_object_new_string(o->name));
	put(to, "on", json_object_new_string(trigger_on_name(o->on)));
	put(to, "enabled", json_object_new_boolean(o->enabled));
	put(to, "fired", json_object_new_uint64(g->fired));
	put(to, "joined", json_object_new_uint64(g->joined));
	put(to, "refused", json_object_new_uint64(g->refused));
	put(to, "limited", json_object_new_uint64(g->limited));
	return to;
}

struct json_object *trigger_to_json(const struct trigger *t)
{
	struct json_object *list = json_object_new_array();

	for (size_t i = 0; list && i < t->set->n; i++)
		json_object_array_add(list, one(&t->set->all[i], &t->gate.triggers[i]));
	return list;
}
