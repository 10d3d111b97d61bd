/*
 * What the recorder is doing, as Status tells it.
 */
#pragma once

#include <stdint.h>

#include <json-c/json.h>

#include "daemon/command.h"
#include "daemon/intake.h"
#include "daemon/jobs.h"
#include "daemon/store.h"
#include "daemon/trigger.h"

/* All borrowed. */
struct status_from {
	const struct intake *intake;
	const struct store *store;
	const struct jobs *jobs;
	const struct trigger *trigger;
	const struct command *command;
	uint64_t started_usec; /* CLOCK_MONOTONIC */
};

/* The caller's; NULL: no memory. */
struct json_object *status_to_json(const struct status_from *from);
