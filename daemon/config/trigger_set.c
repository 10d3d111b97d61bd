/*
 * All triggers: read from the files of triggers.d, each of which has the name of its trigger, and
 * found by what fires them.
 *
 * As with ptsnapd.conf, nothing that is wrong in a file is fatal.
 */
#include "daemon/config/trigger_set.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/config/conffile.h"
#include "daemon/config/config.h"
#include "proto/base.h"

#define DIRECTORY "triggers.d"
#define SECTION	  "Trigger"
#define SUFFIX	  ".conf"

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

struct trigger_set *trigger_set_copy(const struct trigger_set *from)
{
	struct trigger_set *s = calloc(1, sizeof(*s));

	if (s)
		s->all = calloc(TRIGGER_SET_MAX, sizeof(*s->all));
	for (size_t i = 0; s && s->all && i < from->n; i++, s->n++)
		if (trigger_object_copy(&from->all[i], &s->all[i]) < 0)
			break;
	if (s && s->all && s->n == from->n)
		return s;
	trigger_set_free(s);
	return NULL;
}

int trigger_set_add(struct trigger_set *s, struct trigger_object *o)
{
	if (s->n == TRIGGER_SET_MAX)
		return -ENOSPC;
	s->all[s->n++] = *o;
	*o = (struct trigger_object){0};
	return 0;
}

void trigger_set_remove(struct trigger_set *s, const char *name)
{
	struct trigger_object *o = trigger_set_find(s, name);

	if (!o)
		return;
	trigger_object_done(o);
	s->n--;
	memmove(o, o + 1, (size_t)(&s->all[s->n] - o) * sizeof(*o));
	s->all[s->n] = (struct trigger_object){0};
}

struct trigger_object *trigger_set_find(const struct trigger_set *s, const char *name)
{
	for (size_t i = 0; i < s->n; i++)
		if (strcmp(s->all[i].name, name) == 0)
			return &s->all[i];
	return NULL;
}

/* --- Files --- */

struct reading {
	struct trigger_set *set;
	struct config_warn *warn;
	struct trigger_object *object; /* whose file is being read; NULL: the file is ignored */
	int r;			       /* -ENOMEM */
};

/* Tells one line about FILE. LINE 0: the whole file. LOST: as in struct config_warn. */
static void PRINTF_LIKE(5, 6) reading_warn(struct reading *g, const char *file, unsigned line,
					   bool lost, const char *format, ...)
{
	char what[1024], text[1400];
	va_list args;

	va_start(args, format);
	vsnprintf(what, sizeof(what), format, args);
	va_end(args);
	if (line)
		snprintf(text, sizeof(text), "%s:%u: %s", file, line, what);
	else
		snprintf(text, sizeof(text), "%s: %s", file, what);
	g->warn->n_lost += lost;
	g->warn->line(g->warn->userdata, text);
}

/* A file was opened: what follows is about its trigger. */
static void on_file(void *userdata, const char *file)
{
	struct reading *g = userdata;
	struct trigger_set *s = g->set;
	const char *slash = strrchr(file, '/'), *base = slash ? slash + 1 : file;
	size_t n = strlen(base);
	char name[ENTRY_NAME_SIZE] = "";

	g->object = NULL;
	/* "DIR/NAME.conf" -> "NAME" */
	n -= MIN_OF(n, strlen(SUFFIX));
	if (n < sizeof(name))
		memcpy(name, base, n);
	if (!trigger_name_is_valid(name)) {
		reading_warn(g, file, 0, true,
			     "not the name of a trigger, ignored; valid: up to 63 letters, digits, "
			     "-, _ and . before .conf");
		return;
	}
	g->object = trigger_set_find(s, name);
	if (!g->object && s->n == TRIGGER_SET_MAX) {
		reading_warn(g, file, 0, true, "more than %u triggers, ignored", TRIGGER_SET_MAX);
		return;
	}
	if (!g->object) {
		g->object = &s->all[s->n++];
		trigger_object_init(g->object, name, TRIGGER_ON_CONTROL, false);
	}
	free(g->object->file);
	g->object->file = strdup(file);
	if (!g->object->file)
		g->r = -ENOMEM;
}

static bool on_section(void *userdata, const char *name)
{
	(void)userdata;
	return strcmp(name, SECTION) == 0;
}

static void on_setting(void *userdata, const struct conffile_setting *setting)
{
	struct reading *g = userdata;
	enum trigger_key_id key = trigger_key_find(setting->key);
	int r;

	if (!g->object)
		return;
	if (key == TRIGGER_N_KEYS) {
		reading_warn(g, setting->file, setting->line, false,
			     "unknown key %s in section [%s], ignored", setting->key,
			     setting->section);
		return;
	}
	r = trigger_object_set(g->object, key, setting->value, setting->line);
	if (r == -EINVAL)
		reading_warn(g, setting->file, setting->line, true,
			     "%s=%s is not valid, ignored; valid: %s", setting->key, setting->value,
			     trigger_keys[key].valid);
	else if (r < 0)
		g->r = r;
}

static void on_warning(void *userdata, const struct conffile_warning *w)
{
	reading_warn(userdata, w->file, w->line, w->lost, "%s", w->text);
}

/* Leaves out what does not fit in O; a condition that cannot be meant disables the trigger. */
static int check_object(struct reading *g, struct trigger_object *o)
{
	struct trigger_problem problem;
	int r;

	while (trigger_object_check(o, &problem)) {
		reading_warn(g, o->file, o->values[problem.key].line, true, "%s, %s", problem.needs,
			     problem.drop ? "ignored" : "the trigger is disabled");
		if (!problem.drop)
			return trigger_object_set(o, TRIGGER_ENABLED, "no", 0);
		r = trigger_object_set(o, problem.key, "", 0);
		if (r < 0)
			return r;
	}
	return 0;
}

int trigger_set_read(struct trigger_set *s, const char *const *directories, const char *only,
		     struct config_warn *warn)
{
	struct reading g = {.set = s, .warn = warn};
	const struct conffile_handler handler = {&g, on_file, on_section, on_setting, on_warning};

	if (!only)
		conffile_read_drop_ins(directories, DIRECTORY, &handler);
	else if (*only)
		conffile_read_drop_ins((const char *const[]){only, NULL}, "", &handler);
	for (size_t i = 0; i < s->n && g.r == 0; i++)
		g.r = check_object(&g, &s->all[i]);
	return g.r;
}

/* --- Events --- */

const struct trigger_object *trigger_set_for_unit(const struct trigger_set *s, const char *unit,
						  bool watched)
{
	const struct trigger_object *built_in = NULL;

	for (size_t i = 0; i < s->n; i++) {
		const struct trigger_object *o = &s->all[i];

		if (!o->enabled || o->on != TRIGGER_ON_UNIT || (watched && !o->watch) ||
		    !trigger_object_has_unit(o, unit))
			continue;
		if (!o->built_in)
			return o;
		built_in = o;
	}
	return built_in;
}

const struct trigger_object *trigger_set_for_signal(const struct trigger_set *s,
						    const struct names *names, uint64_t uid)
{
	const struct trigger_object *built_in = NULL;

	for (size_t i = 0; i < s->n; i++) {
		const struct trigger_object *o = &s->all[i];

		if (!o->enabled || o->on != TRIGGER_ON_SIGNAL ||
		    !trigger_object_has_user(o, names, uid))
			continue;
		if (!o->built_in)
			return o;
		built_in = o;
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
