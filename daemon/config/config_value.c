/*
 * Who said what: the values of a struct config, in the order default, files, command line. Called
 * by config.c and config_file.c.
 */
#include "daemon/config/config_setting.h"
#include "daemon/config/trigger_set.h"

#include <stdio.h>
#include <string.h>

#include "proto/base.h"

static void value_replace(struct config_value *v, char *text, char *file, unsigned line,
			  enum config_origin origin)
{
	free(v->text);
	free(v->file);
	*v = (struct config_value){text, origin, file, line};
}

/* What the setting would be with TEXT, said by ORIGIN. NULL: no memory. */
static char *value_joined(const struct config_value *v, const struct config_type *type,
			  const char *text, enum config_origin origin)
{
	char *joined;

	if (!type->list || v->origin != origin)
		return strdup(text);
	return asprintf(&joined, "%s,%s", v->text, text) < 0 ? NULL : joined;
}

int config_set(struct config *c, size_t index, const char *text, enum config_origin origin,
	       const char *file, unsigned line)
{
	const struct config_setting *s = &config_settings[index];
	struct config_value *v = &c->values[index];
	CLEANUP_FREE char *joined = value_joined(v, s->type, text, origin);
	CLEANUP_FREE char *name = file ? strdup(file) : NULL;
	struct config trial = *c;
	int r;

	if (!joined || (file && !name))
		return -ENOMEM;
	r = *text ? s->type->take(s, joined, &trial) : -EINVAL;
	if (r < 0 || origin < v->origin)
		return r;
	*c = trial;
	value_replace(v, TAKE_PTR(joined), TAKE_PTR(name), line, origin);
	return 0;
}

int config_reset(struct config *c, size_t index)
{
	const struct config_setting *s = &config_settings[index];
	char *text = strdup(s->initial);

	if (!text)
		return -ENOMEM;
	if (s->type->take(s, text, c) < 0)
		abort(); /* the table is wrong */
	value_replace(&c->values[index], text, NULL, 0, CONFIG_BY_DEFAULT);
	return 0;
}

void config_done(struct config *c)
{
	for (size_t i = 0; c->values && i < config_n_settings; i++) {
		free(c->values[i].text);
		free(c->values[i].file);
	}
	for (size_t i = 0; i < c->n_files; i++)
		free(c->files[i]);
	free(TAKE_PTR(c->values));
	free(TAKE_PTR(c->files));
	trigger_set_free(TAKE_PTR(c->triggers));
	c->n_files = 0;
}
