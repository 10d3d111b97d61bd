/*
 * $MONITOR_... -> unit, reason, labels. Called by cmd_snapshot.c.
 */
#include "ctl/monitor_env.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base.h"

static const char *value(const char *name)
{
	const char *text = getenv(name);

	return text && *text ? text : NULL;
}

static void add_text(char reason[MONITOR_REASON_SIZE], const char *before, const char *text)
{
	size_t used = strlen(reason);

	if (text)
		snprintf(reason + used, MONITOR_REASON_SIZE - used, "%s%s", before, text);
}

bool monitor_env_read(struct monitor_env *ret)
{
	static const struct {
		const char *name, *key;
	} labels[] = {
		{"MONITOR_SERVICE_RESULT", "result"},
		{"MONITOR_EXIT_CODE", "exit_code"},
		{"MONITOR_EXIT_STATUS", "exit_status"},
		{"MONITOR_INVOCATION_ID", "invocation"},
	};

	*ret = (struct monitor_env){.unit = value("MONITOR_UNIT")};
	if (!ret->unit)
		return false;
	snprintf(ret->reason, sizeof(ret->reason), "%s failed", ret->unit);
	add_text(ret->reason, ": ", value("MONITOR_SERVICE_RESULT"));
	add_text(ret->reason, ", ", value("MONITOR_EXIT_CODE"));
	add_text(ret->reason, " ", value("MONITOR_EXIT_STATUS"));
	/* What cannot be a label is in the reason. */
	for (size_t i = 0; i < ARRAY_SIZE(labels); i++)
		if (value(labels[i].name))
			(void)labels_add(&ret->labels, labels[i].key, value(labels[i].name));
	return true;
}
