/*
 * What manager.c, manager_build.c and manager_settings.c share: all that the manager owns.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <systemd/sd-event.h>

#include "daemon/check/watch.h"
#include "daemon/config/exclude.h"
#include "daemon/config/names.h"
#include "daemon/control/control.h"
#include "daemon/control/server.h"
#include "daemon/hotplug.h"
#include "daemon/job/jobs.h"
#include "daemon/job/lease.h"
#include "daemon/manager.h"
#include "daemon/record/files.h"
#include "daemon/record/intake.h"
#include "daemon/record/memory.h"
#include "daemon/record/procs.h"
#include "daemon/reload.h"
#include "daemon/trigger/trigger.h"
#include "sideband/timeline/timeline.h"

#define MANAGER_N_STOP_SIGNALS 2

struct manager {
	const struct config *config;
	struct command *command;
	sd_event *event;
	struct source *source;
	struct timeline *timeline;
	struct files *files;
	struct procs *procs;
	struct names *names;
	struct exclude *exclude;
	size_t n_excluded; /* exclude_size, when all processes were judged by it */
	struct memory *memory;
	struct intake intake;
	struct store *store;
	struct jobs *jobs;
	struct trigger trigger;
	struct lease lease;
	struct hotplug *hotplug;
	struct control control;
	struct server *server, *status_server; /* the latter NULL: there is none */
	struct reload reload;
	struct watch watch;
	sd_event_source *trim, *intake_io, *files_io, *names_io, *command_io, *grace_timer,
		*tidy_timer, *usr2, *hup;
	sd_event_source *stop_signals[MANAGER_N_STOP_SIGNALS];
	uint64_t lost_told; /* records whose loss was logged */
	bool stopping;	    /* a signal asked us to end */
	bool exit_wanted;   /* COMMAND has ended: its last snapshot is still to be begun */
};

/* manager_build.c. What is remembered and what is taken in: 0 or -errno; -EINTR: a signal to end is
 * there. Whom clients reach: 0 or -errno. */
int manager_build_memory(struct manager *m);
int manager_build_servers(struct manager *m, const struct manager_parts *parts);

/* manager_settings.c: what the configuration says of others, and another configuration. */

/* Waits for who must not be recorded. 0; -EINTR: a signal to end is there. */
int manager_look_up(struct manager *m);
/* The processes' book knows whom to leave alone. */
void manager_begin_exclusion(struct manager *m);
/* Answers about names are there, or time has gone by. */
void manager_take_names(struct manager *m);
void manager_tidy_names(struct manager *m);
void manager_tidy_reload(struct manager *m);
/* control.h: struct control.reload. */
int manager_reload(void *userdata, struct json_object *warnings, char *why, size_t why_size);
