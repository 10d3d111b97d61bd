/*
 * Applies the configuration: names of users and groups, exclusion, and a new configuration while
 * the recorder runs.
 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include <systemd/sd-daemon.h>

#include "daemon/base/log.h"
#include "daemon/manager_private.h"
#include "proto/base.h"

/* How many configurations are kept at most. A reload is refused while there are more. */
#define MAX_OWNED 64u

/* Facts of a process are read so long after its beginning: programs that run for less time are
 * known by their records alone. */
#define PROCS_DELAY_NS 50000000u
/* How long a reload waits for names. The host's own lists of users and groups answer at once. */
#define NAMES_NS 1000000000u
/* The time between two looks whether names are known, while the recording must wait for them. */
#define LOOK_UP_MSEC 1000
/* After each of these looks systemd waits for so many us before it takes us for hung. */
#define LOOK_UP_EXTEND "30000000"

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

void manager_tidy_reload(struct manager *m)
{
	struct reload *l = &m->reload;

	/* Jobs, checks and remakes read the configuration that they began with. */
	if (l->n_owned < 2 || jobs_running(m->jobs) > 0 || !control_is_idle(&m->control))
		return;
	for (size_t i = 0; i + 1 < l->n_owned; i++)
		owned_free(l->owned[i]);
	l->owned[0] = l->owned[l->n_owned - 1];
	l->n_owned = 1;
}

static void on_config_line(void *userdata, const char *text)
{
	struct json_object *warnings = userdata;

	log_warning("%s", text);
	if (warnings)
		json_object_array_add(warnings, json_object_new_string(text));
}

/* Reads the files again. Logs what is wrong in them and what takes effect only after a restart, and
 * adds both to WARNINGS (may be NULL). 0: l->now is the new configuration; -EINVAL with WHY, or
 * -ENOMEM: nothing has changed. */
static int reload_read(struct reload *l, struct json_object *warnings, char *why, size_t why_size)
{
	struct config_warn warn = {.userdata = warnings, .line = on_config_line};
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

static void on_name_news(bool warn, const char *text)
{
	log_line(warn ? LOG_WARNING : LOG_INFO, NULL, "%s", text);
}

/* Applies what is known of the users and groups that settings name. */
static void manager_use_names(struct manager *m)
{
	names_news(m->names, on_name_news);
	access_use(&m->control.access, m->config->admin_group, m->names);
	if (exclude_look_up(m->exclude, m->names) < 0)
		log_error("ExcludeUsers=: no memory");
	if (exclude_size(m->exclude) != m->n_excluded)
		procs_exclude_again(m->procs);
	m->n_excluded = exclude_size(m->exclude);
}

void manager_begin_exclusion(struct manager *m)
{
	procs_set_exclude(m->procs, m->exclude);
	/* Whether a process is excluded must be known soon, whatever that costs. */
	procs_set_delay(m->procs, m->exclude ? 0 : PROCS_DELAY_NS);
}

void manager_take_names(struct manager *m)
{
	if (names_take(m->names))
		manager_use_names(m);
	else
		names_news(m->names, on_name_news);
}

void manager_tidy_names(struct manager *m)
{
	names_tidy(m->names);
	names_news(m->names, on_name_news);
}

/* Excluded users must be known before anything is recorded. Nothing else waits for names. */
int manager_look_up(struct manager *m)
{
	struct pollfd p = {.fd = names_fd(m->names), .events = POLLIN};
	sigset_t pending;

	names_use(m->names, m->config);
	(void)names_await(m->names, NAMES_NS);
	names_news(m->names, on_name_news);
	while (exclude_look_up(m->exclude, m->names) == EXCLUDE_UNKNOWN) {
		sigpending(&pending);
		if (sigismember(&pending, SIGTERM) || sigismember(&pending, SIGINT))
			return -EINTR;
		sd_notify(0, "STATUS=waiting for the lists of users, for ExcludeUsers=\n"
			     "EXTEND_TIMEOUT_USEC=" LOOK_UP_EXTEND);
		(void)poll(&p, 1, LOOK_UP_MSEC);
		names_tidy(m->names);
		(void)names_await(m->names, NAMES_NS);
		names_news(m->names, on_name_news);
	}
	m->n_excluded = exclude_size(m->exclude);
	return 0;
}

/* Tells C to everybody who keeps a pointer to the configuration or a setting that can change. */
static void manager_use(struct manager *m, const struct config *c)
{
	const struct store_limits limits = {c->store_max_use, c->store_max_entries,
					    c->store_in_memory};
	int r;

	m->config = c;
	if (store_use_limits(m->store, &limits))
		sd_event_source_set_enabled(m->trim, SD_EVENT_ON);
	jobs_use(m->jobs, c);
	if (trigger_use(&m->trigger, c) < 0 || trigger_arm(&m->trigger, m->event) < 0)
		log_error("the triggers stay as they were: no memory");
	if (trigger_watch_units(&m->trigger, m->event) < 0)
		log_warning("units that fail cannot be watched: no memory");
	control_use(&m->control, c);
	/* A reload can add to what is excluded. */
	r = m->exclude ? exclude_add(m->exclude, c->exclude_units, c->exclude_users)
		       : exclude_new(c->exclude_units, c->exclude_users, &m->exclude);
	if (r < 0)
		log_error("ExcludeUnits=, ExcludeUsers=: no memory");
	manager_begin_exclusion(m);
	manager_use_names(m);
	metrics_writer_use(&m->metrics, c);
}

static void on_name_line(void *userdata, const char *text)
{
	json_object_array_add(userdata, json_object_new_string(text));
}

int manager_reload(void *userdata, struct json_object *warnings, char *why, size_t why_size)
{
	struct manager *m = userdata;
	int r;

	if (m->stopping) {
		snprintf(why, why_size, "the recorder ends");
		return -EINVAL;
	}
	sd_notifyf(0, "RELOADING=1\nMONOTONIC_USEC=%" PRIu64, now_usec(CLOCK_MONOTONIC));
	manager_tidy_reload(m);
	r = reload_read(&m->reload, warnings, why, why_size);
	if (r == 0) {
		names_use(m->names, m->reload.now);
		(void)names_await(m->names, NAMES_NS);
		manager_use(m, m->reload.now);
		if (warnings)
			names_tell(m->names, on_name_line, warnings);
		log_info("configuration read again");
	} else {
		log_error("the configuration stays as it was: %s", why);
	}
	sd_notify(0, "READY=1");
	return r;
}
