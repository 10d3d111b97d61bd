/*
 * The list of triggers, and which of them a thing that happens fires. Called by config.c, and by
 * trigger.c in the loop's thread.
 */
#include "daemon/config/trigger_set.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base.h"

int trigger_set_new(struct trigger_set **ret)
{
	static const enum trigger_on built_in[] = {TRIGGER_ON_CONTROL, TRIGGER_ON_SIGNAL,
						   TRIGGER_ON_UNIT, TRIGGER_ON_EXIT};
	struct trigger_set *s = calloc(1, sizeof(*s));

	if (s)
		s->all = calloc(TRIGGER_SET_MAX, sizeof(*s->all));
	if (!s || !s->all) {
		free(s);
		return -ENOMEM;
	}
	for (size_t i = 0; i < ARRAY_SIZE(built_in); i++)
		trigger_object_init(&s->all[s->n++], trigger_on_name(built_in[i]), built_in[i],
				    true);
	*ret = s;
	return 0;
}

void trigger_set_free(struct trigger_set *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->n; i++)
		trigger_object_done(&s->all[i]);
	free(s->all);
	free(s);
}

struct trigger_object *trigger_set_find(const struct trigger_set *s, const char *name)
{
	for (size_t i = 0; i < s->n; i++)
		if (strcmp(s->all[i].name, name) == 0)
			return &s->all[i];
	return NULL;
}

static bool fires_for_unit(const struct trigger_object *o, const char *unit, bool watched)
{
	return o->enabled && o->on == TRIGGER_ON_UNIT && (o->watch || !watched) &&
	       trigger_object_has_unit(o, unit);
}

static bool fires_for_signal(const struct trigger_object *o, const struct names *names,
			     uint64_t uid)
{
	return o->enabled && o->on == TRIGGER_ON_SIGNAL && trigger_object_has_user(o, names, uid);
}

const struct trigger_object *trigger_set_for_unit(const struct trigger_set *s, const char *unit,
						  bool watched)
{
	const struct trigger_object *built_in = NULL;

	for (size_t i = 0; i < s->n; i++) {
		if (!fires_for_unit(&s->all[i], unit, watched))
			continue;
		if (!s->all[i].built_in)
			return &s->all[i];
		built_in = &s->all[i];
	}
	return built_in;
}

const struct trigger_object *trigger_set_for_signal(const struct trigger_set *s,
						    const struct names *names, uint64_t uid)
{
	const struct trigger_object *built_in = NULL;

	for (size_t i = 0; i < s->n; i++) {
		if (!fires_for_signal(&s->all[i], names, uid))
			continue;
		if (!s->all[i].built_in)
			return &s->all[i];
		built_in = &s->all[i];
	}
	return built_in;
}

bool trigger_set_watches(const struct trigger_set *s)
{
	for (size_t i = 0; i < s->n; i++)
		if (s->all[i].enabled && s->all[i].on == TRIGGER_ON_UNIT && s->all[i].watch)
			return true;
	return false;
}
