/*
 * The configurations of a recorder that was told to read its files again: the one that is in force,
 * and older ones that somebody may still be looking at.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include <json-c/json.h>

#include "daemon/config/config.h"

struct reload {
	const struct config *now; /* in force; the first one is borrowed */
	struct config **owned;	  /* all but the first: the old ones and, last, the one in force */
	size_t n_owned;
};

void reload_init(struct reload *l, const struct config *first);
void reload_done(struct reload *l);
/* Reads the files again. What is wrong in them, and what takes effect only after a restart, goes to
 * the log and, where that is not NULL, as texts to WARNINGS. 0: l->now is another one; -EINVAL with
 * WHY, -ENOMEM: it is as before. */
int reload_read(struct reload *l, struct json_object *warnings, char *why, size_t why_size);
/* Nobody looks at old ones any more. */
void reload_tidy(struct reload *l);
