/*
 * What systemd (251 and later) tells a unit that it starts for OnFailure=: which unit has failed,
 * and how, in $MONITOR_... (systemd.exec(5)).
 */
#pragma once

#include <stdbool.h>

#include "proto/bundle/label.h"

#define MONITOR_REASON_SIZE 257

struct monitor_env {
	const char *unit; /* of the environment; NULL: it says nothing */
	char reason[MONITOR_REASON_SIZE];
	struct labels labels;
};

/* False: $MONITOR_UNIT is not set or empty. */
bool monitor_env_read(struct monitor_env *ret);
