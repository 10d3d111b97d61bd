/*
 * What the recorder is doing, as Status tells it.
 */
#pragma once

#include <stdint.h>

#include <json-c/json.h>

#include "daemon/check/selfstat.h"
#include "daemon/job/jobs.h"
#include "daemon/job/lease.h"
#include "daemon/record/command.h"
#include "daemon/record/intake.h"
#include "daemon/store/store.h"
#include "daemon/trigger/trigger.h"

/* All borrowed. */
struct status_from {
	const struct intake *intake;
	const struct store *store;
	const struct jobs *jobs;
	const struct trigger *trigger;
	const struct command *command;
	uint64_t started_usec;	   /* CLOCK_MONOTONIC */
	const struct lease *lease; /* NULL: nothing can be handed back */
	struct selfstat *self;	   /* NULL: not known */
};

/* Looks at ourselves: FROM's self is up to date. */
void status_look(const struct status_from *from);

/* "tracing", "partial" (some CPUs that are there are not traced), "degraded" (none is), "yielded",
 * "ended" (COMMAND has, and all that it started). */
const char *status_state(const struct status_from *from);

/* What may be told to everybody who has an account here: how the recorder is, nothing of who did
 * what. The caller's; NULL: no memory. */
struct json_object *status_for_all(const struct status_from *from);

/* The caller's; NULL: no memory. */
struct json_object *status_to_json(const struct status_from *from);
