/*
 * The triggers as --test-config tells them. Called by config_show.c.
 */
#include <string.h>

#include "daemon/config/trigger_set.h"
#include "proto/base.h"
#include "proto/json.h"

/* Comments, as ptsnapd.conf cannot say them. */
static void show_object(FILE *to, const struct trigger_object *o)
{
	char buffer[TRIGGER_TEXT_SIZE];

	fprintf(to, "\n# Trigger %s (%s)\n", o->name, o->file ? o->file : "built in");
	for (size_t i = 0; i < TRIGGER_N_KEYS; i++) {
		enum trigger_key_id key = (enum trigger_key_id)i;

		fprintf(to, "#   %s=%s", trigger_keys[i].name, trigger_object_text(o, key, buffer));
		if (o->values[i].text)
			fprintf(to, "  # line %u", o->values[i].line);
		fputc('\n', to);
	}
}

void trigger_set_show(const struct trigger_set *s, FILE *to)
{
	for (size_t i = 0; i < s->n; i++)
		show_object(to, &s->all[i]);
}

static void show_key(struct json_writer *w, const struct trigger_object *o, enum trigger_key_id key)
{
	const struct trigger_value *v = &o->values[key];
	char buffer[TRIGGER_TEXT_SIZE];

	json_begin_object(w, NULL);
	json_string(w, "key", trigger_keys[key].name);
	json_string(w, "text", trigger_object_text(o, key, buffer));
	json_string(w, "origin", v->text ? "file" : "default");
	if (v->text)
		json_u64(w, "line", v->line);
	json_end_object(w);
}

void trigger_set_show_json(const struct trigger_set *s, struct json_writer *w)
{
	json_begin_array(w, "triggers");
	for (size_t i = 0; i < s->n; i++) {
		const struct trigger_object *o = &s->all[i];

		json_begin_object(w, NULL);
		json_string(w, "name", o->name);
		json_bool(w, "builtIn", o->built_in);
		json_string(w, "file", o->file);
		json_begin_array(w, "settings");
		for (size_t k = 0; k < TRIGGER_N_KEYS; k++)
			show_key(w, o, (enum trigger_key_id)k);
		json_end_array(w);
		json_end_object(w);
	}
	json_end_array(w);
}
