/*
 * The configuration, read again while the recorder runs. Called by reload.c in the loop's thread.
 *
 * What was opened with the old settings (rings, store, socket) goes on as it is: those settings
 * keep their old values, so that nobody acts on one that is not in force, and what the files say of
 * them by now is told.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/config/config_setting.h"
#include "daemon/config/trigger_set.h"
#include "proto/base.h"

/* Between the words of lists that grow. */
#define SEPARATORS ", \t"

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

/* TEXT as people know it. */
static const char *shown(const struct config_setting *s, const char *text)
{
	return *text ? text : s->initially ? s->initially : "nothing";
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
			    is->line, s->key, is->text, shown(s, was->text));
	else
		reload_warn(warn, "%s=%s (no longer %s) takes effect after a restart", s->key,
			    shown(s, is->text), shown(s, was->text));
	r = copy_value(was, is);
	/* It was taken before, so it is valid; the field borrows the new text. */
	return r < 0 ? r : s->type->take(s, is->text, c);
}

static bool has_word(const char *text, const char *word, size_t size)
{
	for (text += strspn(text, SEPARATORS); *text; text += strspn(text, SEPARATORS)) {
		size_t n = strcspn(text, SEPARATORS);

		if (n == size && memcmp(text, word, n) == 0)
			return true;
		text += n;
	}
	return false;
}

/* What of TEXT is not in OTHER, behind *RET (owned; NULL: nothing yet). 0 or -ENOMEM. */
static int add_others(const char *text, const char *other, char **ret)
{
	for (text += strspn(text, SEPARATORS); *text; text += strspn(text, SEPARATORS)) {
		size_t n = strcspn(text, SEPARATORS);
		char *grown = NULL;

		if (!has_word(other, text, n)) {
			if (asprintf(&grown, "%s%s%.*s", *ret ? *ret : "", *ret && **ret ? "," : "",
				     (int)n, text) < 0)
				return -ENOMEM;
			free(*ret);
			*ret = grown;
		}
		text += n;
	}
	return 0;
}

/* A list that grows at once: what is in force, and what was added; what was taken away needs a
 * restart. */
static int grow_setting(const struct config *old, struct config *c, size_t index,
			struct config_warn *warn)
{
	const struct config_setting *s = &config_settings[index];
	const struct config_value *was = &old->values[index];
	struct config_value *is = &c->values[index];
	CLEANUP_FREE char *gone = NULL;
	char *all = strdup(was->text);
	int r = all ? add_others(was->text, is->text, &gone) : -ENOMEM;

	if (r == 0)
		r = add_others(is->text, was->text, &all);
	if (r < 0) {
		free(all);
		return r;
	}
	if (gone)
		reload_warn(warn, "%s=%s is no longer said, which takes effect after a restart",
			    s->key, gone);
	if (is->origin == CONFIG_BY_DEFAULT)
		is->origin = was->origin;
	free(is->text);
	is->text = all;
	return s->type->take(s, is->text, c);
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
		if (config_settings[i].grows)
			r = grow_setting(old, &c, i, warn);
		else if (!config_settings[i].live)
			r = keep_setting(old, &c, i, warn);
	if (r < 0) {
		config_done(&c);
		return r;
	}
	*ret = c;
	return 0;
}
