/*
 * All triggers of a configuration: those that are always there ("control", "signal", "unit",
 * "exit"), changed by files of their names, and those that files add. Owned by struct config; const
 * once it is read.
 */
#pragma once

#include <stdio.h>

#include "daemon/config/trigger_object.h"

#define TRIGGER_SET_MAX 64u

struct trigger_set {
	struct trigger_object *all; /* owned: the built-in ones, then those of files by name */
	size_t n;
};

/* The built-in ones. 0 or -ENOMEM. */
int trigger_set_new(struct trigger_set **ret);
void trigger_set_free(struct trigger_set *s);

/* NULL: there is none. */
struct trigger_object *trigger_set_find(const struct trigger_set *s, const char *name);
/* Who fires for UNIT that has failed: the first that is no built-in one, watches for such a unit
 * and is enabled, else "unit", if that does. So also for SIGUSR2 of UID (ENTRY_ABSENT: not known).
 * NULL: nobody. WATCHED: among those with Watch=yes. */
const struct trigger_object *trigger_set_for_unit(const struct trigger_set *s, const char *unit,
						  bool watched);
const struct trigger_object *trigger_set_for_signal(const struct trigger_set *s,
						    const struct names *names, uint64_t uid);
/* Does any trigger want to be told of units that fail? */
bool trigger_set_watches(const struct trigger_set *s);

struct config_warn;
struct json_writer;

/* trigger_file.c: the files *.conf of directories triggers.d (see conffile_read_drop_ins), or, with
 * ONLY, of the directory ONLY ("": none). What is wrong is told and left out. 0 or -ENOMEM. */
int trigger_set_read(struct trigger_set *s, const char *const *directories, const char *only,
		     struct config_warn *warn);

/* trigger_show.c: for --test-config. */
void trigger_set_show(const struct trigger_set *s, FILE *to);
void trigger_set_show_json(const struct trigger_set *s, struct json_writer *w);
