/*
 * The configuration, read again while the recorder runs. Called by reload.c in the loop's thread.
 *
 * What was opened with the old settings (rings, store, socket) goes on as it is: those settings
 * keep their old values, so that nobody acts on one that is not in force, and what the files say of
 * them by now is told.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "daemon/config_setting.h"
#include "daemon/trigger_set.h"
#include "proto/base.h"

static void PRINTF_LIKE(2, 3) reload_warn(struct config_warn *warn, const char *format, ...)
{
	char text[1024];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	warn->n_lost++;
	warn->line(warn->userdata, text);
}

static int copy_value(const struct config_value *from, struct config_value *ret)
{
	char *text = strdup(from->text), *file = from->file ? strdup(from->file) : NULL;

	if (!text || (from->file && !file)) {
		free(text);
		free(file);
		return -ENOMEM;
	}
	free(ret->text);
	free(ret->file);
	*ret = (struct config_value){text, from->origin, file, from->line};
	return 0;
}

/* A setting that needs a restart, as it is in force. */
static int keep_setting(const struct config *old, struct config *c, size_t index,
			struct config_warn *warn)
{
	const struct config_setting *s = &config_settings[index];
	const struct config_value *was = &old->values[index];
	struct config_value *is = &c->values[index];
	int r;

	if (strcmp(was->text, is->text) == 0)
		return 0;
	if (is->origin == CONFIG_BY_FILE)
		reload_warn(warn, "%s:%u: %s=%s takes effect after a restart (now: %s)", is->file,
			    is->line, s->key, is->text, *was->text ? was->text : s->initially);
	else
		reload_warn(warn, "%s=%s (no longer %s) takes effect after a restart", s->key,
			    *is->text ? is->text : s->initially, was->text);
	r = copy_value(was, is);
	/* It was taken before, so it is valid; the field borrows the new text. */
	return r < 0 ? r : s->type->take(s, is->text, c);
}

int config_reload(const struct config *old, const char *const *directories, struct config *ret,
		  struct config_warn *warn, char *why, size_t why_size)
{
	struct config c;
	int r = config_parse(old->argc, old->argv, &c, why, why_size);

	if (r != 0)
		return r < 0 ? r : -EINVAL;
	r = config_read_files(&c, directories, warn, why, why_size);
	for (size_t i = 0; i < config_n_settings && r == 0; i++)
		if (!config_settings[i].live)
			r = keep_setting(old, &c, i, warn);
	if (r < 0) {
		config_done(&c);
		return r;
	}
	*ret = c;
	return 0;
}
