/*
 * What the configuration says of others: users and groups by name, who is to be left alone; and
 * another configuration while the recorder runs. Called by manager.c.
 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>

#include <systemd/sd-daemon.h>

#include "daemon/base/log.h"
#include "daemon/manager_private.h"
#include "proto/base.h"

/* Programs that run for less time are known by their records alone. */
#define PROCS_DELAY_NS 50000000u
/* Lists of users and groups that are this host's own answer at once. */
#define NAMES_NS 1000000000u
/* Between two looks at whether they answer, where nothing goes on without. */
#define LOOK_UP_MSEC 1000
/* So long after each of them the service manager does not take that for a hang. */
#define LOOK_UP_EXTEND "30000000"

static void on_name_news(bool warn, const char *text)
{
	log_line(warn ? LOG_WARNING : LOG_INFO, NULL, "%s", text);
}

/* Whom settings name is known, or is another. */
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
	/* Who is to be left alone has to be known soon, whatever that costs. */
	procs_set_delay(m->procs, m->exclude ? 0 : PROCS_DELAY_NS);
}

/* Whom C excludes besides those before. */
static void manager_use_exclusion(struct manager *m, const struct config *c)
{
	int r = m->exclude ? exclude_add(m->exclude, c->exclude_units, c->exclude_users)
			   : exclude_new(c->exclude_units, c->exclude_users, &m->exclude);

	if (r < 0)
		log_error("ExcludeUnits=, ExcludeUsers=: no memory");
	manager_begin_exclusion(m);
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

/* Whoever is to be left alone must be known before anything is recorded, however long that takes;
 * nobody else waits for it. A signal to end ends it. */
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

/* Old configurations go when no thread can look at them. */
void manager_tidy_reload(struct manager *m)
{
	if (jobs_running(m->jobs) == 0 && control_is_idle(&m->control))
		reload_tidy(&m->reload);
}

/* What can change while the recorder runs. */
static void manager_use(struct manager *m, const struct config *c)
{
	const struct store_limits limits = {c->store_max_use, c->store_max_entries,
					    c->store_in_memory};

	m->config = c;
	if (store_use_limits(m->store, &limits))
		sd_event_source_set_enabled(m->trim, SD_EVENT_ON);
	jobs_use(m->jobs, c);
	trigger_use(&m->trigger, c);
	if (trigger_watch_units(&m->trigger, m->event) < 0)
		log_warning("units that fail cannot be watched: no memory");
	control_use(&m->control, c);
	manager_use_exclusion(m, c);
	manager_use_names(m);
	watch_use(&m->watch, c);
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
