/*
 * All that the manager owns, for manager.c and manager_settings.c; and hotplug.c, which the manager
 * calls.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <systemd/sd-event.h>

#include "daemon/check/metrics_writer.h"
#include "daemon/config/exclude.h"
#include "daemon/config/names.h"
#include "daemon/control/control.h"
#include "daemon/control/server.h"
#include "daemon/job/jobs.h"
#include "daemon/job/lease.h"
#include "daemon/manager.h"
#include "daemon/record/files.h"
#include "daemon/record/intake.h"
#include "daemon/record/memory.h"
#include "daemon/record/procs.h"
#include "daemon/trigger/trigger.h"
#include "sideband/timeline/timeline.h"

struct hotplug;

#define MANAGER_N_STOP_SIGNALS 2

/* The configuration in force, and older ones that a thread may still read. */
struct reload {
	const struct config *now; /* in force; the first one is borrowed */
	struct config **owned;	  /* all but the first: the old ones and, last, the one in force */
	size_t n_owned;
};

void reload_init(struct reload *l, const struct config *first);
void reload_done(struct reload *l);

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
	size_t n_excluded; /* exclude_size() when all processes were last judged */
	struct memory *memory;
	struct reread *reread; /* NULL: the source tells mappings again by itself */
	struct intake intake;
	struct store *store;
	struct jobs *jobs;
	struct trigger trigger;
	struct lease lease;
	struct hotplug *hotplug;
	struct control control;
	struct server *server, *status_server; /* status_server NULL: there is none */
	struct reload reload;
	struct metrics_writer metrics;
	sd_event_source *trim, *intake_io, *files_io, *names_io, *command_io, *grace_timer,
		*tidy_timer, *usr2, *hup;
	sd_event_source *stop_signals[MANAGER_N_STOP_SIGNALS];
	uint64_t lost_told; /* lost records that were logged */
	bool stopping;	    /* a signal asked us to end */
	bool exit_wanted;   /* COMMAND has ended, and its last snapshot has not begun */
};

/* manager_settings.c. */

/* Waits until the excluded users are known. 0; -EINTR: a signal to end is pending. */
int manager_look_up(struct manager *m);
/* Tells procs which processes are excluded. */
void manager_begin_exclusion(struct manager *m);
/* Takes answers about names of users and groups. */
void manager_take_names(struct manager *m);
/* Call now and then: looks after names, and frees old configurations that nobody reads. */
void manager_tidy_names(struct manager *m);
void manager_tidy_reload(struct manager *m);
/* Reads the configuration again and uses it. For struct control.reload. */
int manager_reload(void *userdata, struct json_object *warnings, char *why, size_t why_size);

/*
 * hotplug.c: has the source look after its events when CPUs go or come, when the host has slept,
 * and as time passes (another user of Intel PT, events in error), and logs the changes.
 */

/* SOURCE and JOBS are borrowed. Without messages of the kernel changes are found a little later. 0
 * or -errno. With a source that has no ops->tend nothing is ever done. */
int hotplug_new(sd_event *event, struct source *source, struct jobs *jobs, struct hotplug **ret);
void hotplug_free(struct hotplug *h);
/* Does what had to wait for a job, and looks at once if a CPU does not trace again. Call when a job
 * has copied. */
void hotplug_on_captured(struct hotplug *h);
/* Looks soon if the kernel stopped an event that the recorder did not stop. Call when an AUX record
 * has come. */
void hotplug_on_stop(struct hotplug *h);

/* Looks now, as something has happened; if a job has the events, when the job has copied. */
void hotplug_look(struct hotplug *h);
/* The time from the last look to the next one. */
uint64_t hotplug_period_usec(const struct hotplug *h);

/* Whether MESSAGE, of SIZE bytes, is a uevent of the kernel about a CPU. The form is that of
 * lib/kobject_uevent.c: "ACTION@DEVPATH", NUL, "KEY=VALUE", NUL, ... */
bool hotplug_is_cpu_event(const char *message, size_t size);
