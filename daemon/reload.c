/*
 * Old and new configurations. Called by the manager, in the loop's thread.
 *
 * A job, a check or a remake keeps the configuration that it began with, and reads it in a thread
 * of its own; so an old one is freed when none of them is at work. The first one is main.c's and
 * outlives all.
 */
#include "daemon/reload.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "daemon/base/log.h"
#include "proto/base.h"

/* Old ones that wait, at most: files are not read again while there are more. */
#define MAX_OWNED 64u

void reload_init(struct reload *l, const struct config *first)
{
	*l = (struct reload){.now = first};
}

static void owned_free(struct config *c)
{
	config_done(c);
	free(c);
}

void reload_done(struct reload *l)
{
	for (size_t i = 0; i < l->n_owned; i++)
		owned_free(l->owned[i]);
	free(TAKE_PTR(l->owned));
	l->n_owned = 0;
}

void reload_tidy(struct reload *l)
{
	if (l->n_owned < 2)
		return;
	for (size_t i = 0; i + 1 < l->n_owned; i++)
		owned_free(l->owned[i]);
	l->owned[0] = l->owned[l->n_owned - 1];
	l->n_owned = 1;
}

static void on_line(void *userdata, const char *text)
{
	struct json_object *warnings = userdata;

	log_warning("%s", text);
	if (warnings)
		json_object_array_add(warnings, json_object_new_string(text));
}

int reload_read(struct reload *l, struct json_object *warnings, char *why, size_t why_size)
{
	struct config_warn warn = {.userdata = warnings, .line = on_line};
	struct config *c;
	int r;

	snprintf(why, why_size, "too many snapshots have been under way since the last reloads");
	if (l->n_owned == MAX_OWNED)
		return -EINVAL;
	snprintf(why, why_size, "no memory");
	if (ARRAY_EXTEND(l->owned, l->n_owned) < 0)
		return -ENOMEM;
	c = malloc(sizeof(*c));
	r = c ? config_reload(l->now, config_directories, c, &warn, why, why_size) : -ENOMEM;
	if (r < 0) {
		free(c);
		return r;
	}
	l->owned[l->n_owned++] = c;
	l->now = c;
	return 0;
}
