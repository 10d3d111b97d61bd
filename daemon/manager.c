/*
 * Makes, connects and frees all long-lived objects, runs the event loop, and ends the recorder.
 *
 * The recorder ends when nothing is under way any more: no job runs and COMMAND is gone. A first
 * SIGTERM is passed on to COMMAND, which has two seconds; jobs that decode are cancelled and keep
 * their bundles.
 */
#include "daemon/manager.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <time.h>

#include <systemd/sd-daemon.h>
#include <systemd/sd-event.h>

#include "daemon/base/log.h"
#include "daemon/job/jobs.h"
#include "daemon/manager_private.h"
#include "proto/base.h"

/* How many processes with code in memory without a file are remembered. */
#define MAX_MEMORY_PROCESSES 4096u
/* How often files that no mapping names any more are closed. */
#define TIDY_USEC 60000000u

/* Ends the loop when nothing is under way. */
static void manager_maybe_end(struct manager *m)
{
	const struct command *c = m->command;
	bool ended = c->pid && !c->running && m->config->exit_with_command;

	if (!m->stopping && !ended)
		return;
	if (m->exit_wanted || c->running || jobs_running(m->jobs))
		return;
	server_flush(m->server);
	if (m->status_server)
		server_flush(m->status_server);
	sd_event_exit(m->event, ended ? c->exit_status : 0);
}

/* --exit-with-command: takes the last snapshot, or, when too many are under way, waits for the end
 * of one of them. */
static void manager_fire_exit(struct manager *m)
{
	struct trigger_answer answer;
	struct request q;
	int r;

	request_init(&q, "exit", m->command->argv[0]);
	command_tell_end(m->command, q.reason, sizeof(q.reason));
	q.pid = (uint64_t)m->command->pid;
	r = trigger_fire(&m->trigger, &q, &answer);
	m->exit_wanted = r == TRIGGER_BUSY;
	if (r < 0)
		log_error("no snapshot at the command's end: %s", strerror(-r));
}

static int manager_on_command(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	struct manager *m = userdata;
	char how[ENTRY_REASON_SIZE];

	(void)fd;
	(void)revents;
	/* A job has the source now; manager_on_captured() turns this event on again. */
	if (jobs_capturing(m->jobs)) {
		sd_event_source_set_enabled(source, SD_EVENT_OFF);
		return 0;
	}
	if (!command_reap(m->command))
		return 0;
	sd_event_source_set_enabled(source, SD_EVENT_OFF);
	command_tell_end(m->command, how, sizeof(how));
	log_info("%s", how);
	intake_drain(&m->intake);
	/* Processes that COMMAND started go on and are recorded, up to the last snapshot. */
	if (m->config->exit_with_command)
		jobs_no_resume(m->jobs);
	if (m->config->exit_with_command && !m->stopping)
		manager_fire_exit(m);
	manager_maybe_end(m);
	return 0;
}

static int manager_on_intake(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	struct manager *m = userdata;

	(void)source;
	(void)fd;
	(void)revents;
	intake_some(&m->intake);
	if (m->intake.stopped)
		hotplug_on_stop(m->hotplug);
	m->intake.stopped = false;
	return 0;
}

static int manager_on_files(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	struct manager *m = userdata;

	(void)source;
	(void)fd;
	(void)revents;
	files_on_fd(m->files);
	return 0;
}

/* Removes some snapshots in each turn of the loop, as there may be thousands of files. */
static int manager_on_trim(sd_event_source *source, void *userdata)
{
	struct manager *m = userdata;

	return store_trim(m->store) ? 0 : sd_event_source_set_enabled(source, SD_EVENT_OFF);
}

static int manager_on_names(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	struct manager *m = userdata;

	(void)source;
	(void)fd;
	(void)revents;
	manager_take_names(m);
	return 0;
}

static int manager_on_tidy(sd_event_source *source, uint64_t usec, void *userdata)
{
	struct log_fields fields = LOG_NO_FIELDS;
	struct manager *m = userdata;
	uint64_t lost = 0;
	int r;

	(void)usec;
	files_tidy(m->files);
	manager_tidy_reload(m);
	for (size_t i = 0; i < m->source->n_cpus; i++)
		lost += m->intake.cpus[i].lost + m->intake.cpus[i].aux_lost;
	if (lost != m->lost_told) {
		fields.lost = lost - m->lost_told;
		log_event(LOG_WARNING, LOG_EVENT_TRACE_LOST, &fields,
			  "%" PRIu64 " records were lost within a minute", fields.lost);
		m->lost_told = lost;
	}
	manager_tidy_names(m);
	trigger_look(&m->trigger);
	r = sd_event_source_set_time_relative(source, TIDY_USEC);
	return r < 0 ? r : sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

static int manager_on_grace(sd_event_source *source, uint64_t usec, void *userdata)
{
	struct manager *m = userdata;

	(void)source;
	(void)usec;
	log_warning("the command did not end in time: killed");
	command_kill(m->command, SIGKILL);
	return 0;
}

static int manager_on_stop(sd_event_source *source, const struct signalfd_siginfo *si,
			   void *userdata)
{
	struct manager *m = userdata;

	(void)source;
	if (m->stopping) {
		command_kill(m->command, SIGKILL);
		return 0;
	}
	log_info("%s: ending", strsignal((int)si->ssi_signo));
	sd_notify(0, "STOPPING=1");
	m->stopping = true;
	m->exit_wanted = false;
	m->trigger.closed = true;
	jobs_cancel(m->jobs);
	command_kill(m->command, (int)si->ssi_signo);
	if (m->command->running)
		sd_event_add_time_relative(m->event, &m->grace_timer, CLOCK_MONOTONIC,
					   m->config->command_grace_usec, 0, manager_on_grace, m);
	manager_maybe_end(m);
	return 0;
}

/* SIGHUP of a process means a reload; of the kernel, that the terminal is gone. */
static int manager_on_hangup(sd_event_source *source, const struct signalfd_siginfo *si,
			     void *userdata)
{
	struct manager *m = userdata;
	char why[1024];

	if (si->ssi_code == SI_KERNEL)
		return manager_on_stop(source, si, userdata);
	(void)manager_reload(m, NULL, why, sizeof(why));
	return 0;
}

static void manager_on_progress(void *userdata, const char *id, enum job_phase phase,
				uint32_t percent)
{
	struct manager *m = userdata;

	control_on_progress(&m->control, id, phase, percent);
}

/* Does what waited for a job that had the events. */
static void manager_tend(struct manager *m)
{
	lease_on_captured(&m->lease);
	hotplug_on_captured(m->hotplug);
	trigger_look(&m->trigger);
}

/* --- Processes that a snapshot looks at --- */

struct known {
	uint32_t *pids;
	size_t n, capacity;
};

static int add_known(void *userdata, const struct procs_told *told)
{
	struct known *k = userdata;

	if (told->excluded)
		return 0;
	if (ARRAY_RESERVE(k->pids, k->capacity, k->n + 1) < 0)
		return -ENOMEM;
	k->pids[k->n++] = told->info->pid;
	return 0;
}

/* Without memory for all, it is those that fit. */
static size_t manager_processes(void *userdata, uint32_t **ret)
{
	const struct manager *m = userdata;
	struct known k = {0};

	(void)procs_foreach(m->procs, add_known, &k);
	*ret = k.pids;
	return k.n;
}

static int manager_on_captured(void *userdata, const struct request *request, const char *id,
			       uint64_t previous_stop_ns, struct evidence **ret)
{
	struct manager *m = userdata;
	const struct evidence_from from = {
		.config = m->config,
		.intake = &m->intake,
		.request = request,
		.id = id,
		.previous_stop_ns = previous_stop_ns,
	};
	int r;

	/* Takes in all records up to the stop of the CPUs. */
	intake_drain(&m->intake);
	intake_settle(&m->intake);
	silence_judge(&m->intake);
	procs_refresh(m->procs, SIZE_MAX);
	files_await(m->files);
	if (m->command_io && m->command->running)
		sd_event_source_set_enabled(m->command_io, SD_EVENT_ON);
	r = evidence_new(&from, ret);
	manager_tend(m);
	return r;
}

static void manager_on_looked(void *userdata, struct evidence *e)
{
	struct manager *m = userdata;

	intake_drain(&m->intake);
	intake_settle(&m->intake);
	evidence_look_at_records(e, m->memory);
}

static void manager_on_ended(void *userdata, const char *id)
{
	struct manager *m = userdata;

	control_on_ended(&m->control, id);
	manager_tend(m); /* the job may have ended before it had copied */
	if (m->exit_wanted && !m->stopping)
		manager_fire_exit(m);
	manager_maybe_end(m);
}

static void manager_on_lease(void *userdata, int r)
{
	struct manager *m = userdata;

	control_on_lease(&m->control, r);
}

static void manager_on_lease_changed(void *userdata)
{
	struct manager *m = userdata;

	hotplug_look(m->hotplug);
	trigger_look(&m->trigger);
}

/* How many mapped files may be open: they have the descriptors that clients, snapshots and events
 * leave, once for the list and once for each snapshot that is being taken. */
static uint32_t manager_max_files(const struct manager *m)
{
	uint64_t others = config_other_fds(m->config, m->source->n_cpus);
	uint64_t lists = m->config->max_jobs_queued + 2;
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return m->config->max_files;
	if (limit.rlim_cur <= others)
		return 0;
	return (uint32_t)MIN_OF((limit.rlim_cur - others) / lists, (rlim_t)m->config->max_files);
}

/* Makes what remembers the kernel's records, and what takes them in. 0; -EINTR: a signal to end is
 * pending; or -errno. */
static int manager_build_memory(struct manager *m)
{
	struct intake_parts parts = {.source = m->source,
				     .queue_bytes = m->config->queue_bytes,
				     .period_usec = m->config->intake_usec};
	int r = timeline_new_within(m->config->timeline_max, &m->timeline);

	if (r == 0)
		r = names_new(names_ask_host, &m->names);
	if (r == 0)
		r = exclude_new(m->config->exclude_units, m->config->exclude_users, &m->exclude);
	if (r == 0)
		r = manager_look_up(m);
	if (r == 0)
		r = files_new("/proc", manager_max_files(m), &m->files);
	if (r == 0)
		r = files_open_aside(m->files);
	if (r == 0)
		r = procs_new("/proc", m->config->max_processes, m->source, &m->procs);
	if (r == 0)
		r = memory_new(MAX_MEMORY_PROCESSES, &m->memory);
	/* The software PMU tells the mappings of its processes again by itself. */
	if (r == 0 && !m->command->emulated)
		r = reread_new("/proc", &m->reread);
	if (r < 0)
		return r;
	files_use(m->files, m->timeline, m->procs);
	manager_begin_exclusion(m);
	parts.timeline = m->timeline;
	parts.files = m->files;
	parts.procs = m->procs;
	parts.memory = m->memory;
	parts.reread = m->reread;
	return intake_init(&m->intake, &parts);
}

/* Makes what takes snapshots and answers clients. */
static int manager_build_service(struct manager *m)
{
	const struct jobs_handler on_job = {
		.userdata = m,
		.on_progress = manager_on_progress,
		.processes = manager_processes,
		.on_captured = manager_on_captured,
		.on_looked = manager_on_looked,
		.on_ended = manager_on_ended,
	};
	const struct lease_handler on_lease = {m, manager_on_lease, manager_on_lease_changed};
	int r = jobs_new(m->event, m->config, m->source, m->store, &on_job, &m->jobs);

	if (r < 0)
		return r;
	r = trigger_init(&m->trigger, m->source, m->store, m->jobs, m->config);
	if (r < 0)
		return r;
	lease_init(&m->lease, m->event, m->source, m->jobs, &on_lease);
	m->control = (struct control){
		.event = m->event,
		.config = m->config,
		.lease = &m->lease,
		.reload = manager_reload,
		.reload_userdata = m,
		.trigger = &m->trigger,
		.store = m->store,
		.status = {&m->intake, m->store, m->jobs, &m->trigger, m->command,
			   now_usec(CLOCK_MONOTONIC), &m->lease, &m->metrics.self},
	};
	control_listen(&m->control);
	m->trigger.on_tested = (struct trigger_tested){&m->control, control_on_tested};
	m->control.names = m->trigger.names = m->names;
	access_use(&m->control.access, m->config->admin_group, m->names);
	r = hotplug_new(m->event, m->source, m->jobs, &m->hotplug);
	if (r == 0)
		r = metrics_writer_init(&m->metrics, m->event, m->config, &m->control.status);
	return r;
}

/* Makes the servers of the sockets. */
static int manager_build_servers(struct manager *m, const struct manager_parts *parts)
{
	const struct peer_handler on_peer = {&m->control, control_on_call, control_on_gone};
	const struct peer_handler on_status = {&m->control, control_on_status_call,
					       control_on_gone};
	struct server_limits limits;
	int r;

	server_limits_of(m->config, &limits);
	r = server_new(m->event, &limits, &m->control.access, parts->listener, &on_peer,
		       &m->server);
	if (r < 0 || parts->status_listener->fd < 0)
		return r;
	server_limits_of_status(m->config, &limits);
	return server_new(m->event, &limits, &m->control.access, parts->status_listener, &on_status,
			  &m->status_server);
}

static int manager_add_sources(struct manager *m)
{
	static const int stops[MANAGER_N_STOP_SIGNALS] = {SIGTERM, SIGINT};
	/* Records wait in a long queue, so they have no priority: a storm of records does not keep
	 * clients out. */
	int r = sd_event_add_io(m->event, &m->intake_io, intake_fd(&m->intake), EPOLLIN,
				manager_on_intake, m);

	if (r >= 0)
		r = sd_event_add_io(m->event, &m->files_io, files_fd(m->files), EPOLLIN,
				    manager_on_files, m);
	if (r >= 0)
		r = sd_event_add_defer(m->event, &m->trim, manager_on_trim, m);
	if (r >= 0)
		r = sd_event_source_set_enabled(m->trim, SD_EVENT_OFF);
	if (r >= 0)
		r = sd_event_add_io(m->event, &m->names_io, names_fd(m->names), EPOLLIN,
				    manager_on_names, m);
	for (int i = 0; i < MANAGER_N_STOP_SIGNALS && r >= 0; i++)
		r = sd_event_add_signal(m->event, &m->stop_signals[i], stops[i], manager_on_stop,
					m);
	if (r >= 0)
		r = trigger_add_signal(&m->trigger, m->event, &m->usr2);
	if (r >= 0)
		r = trigger_watch_units(&m->trigger, m->event);
	if (r >= 0)
		r = trigger_arm(&m->trigger, m->event);
	if (r >= 0)
		r = sd_event_add_signal(m->event, &m->hup, SIGHUP, manager_on_hangup, m);
	if (r >= 0 && m->command->running)
		r = sd_event_add_io(m->event, &m->command_io, m->command->pidfd, EPOLLIN,
				    manager_on_command, m);
	if (r >= 0)
		r = sd_event_add_time_relative(m->event, &m->tidy_timer, CLOCK_MONOTONIC, TIDY_USEC,
					       TIDY_USEC / 10, manager_on_tidy, m);
	if (r >= 0)
		r = sd_event_set_watchdog(m->event, true);
	return r < 0 ? r : 0;
}

int manager_new(const struct manager_parts *parts, struct manager **ret)
{
	CLEANUP(manager_freep) struct manager *m = calloc(1, sizeof(*m));
	int r;

	if (!m)
		return -ENOMEM;
	m->config = parts->config;
	reload_init(&m->reload, parts->config);
	m->command = parts->command;
	m->source = parts->source;
	m->store = parts->store;
	r = sd_event_new(&m->event);
	if (r >= 0)
		r = manager_build_memory(m);
	if (r >= 0)
		r = manager_build_service(m);
	if (r >= 0)
		r = manager_build_servers(m, parts);
	if (r >= 0)
		r = manager_add_sources(m);
	if (r < 0) {
		m->source = NULL; /* source and store stay the caller's */
		m->store = NULL;
		return r;
	}
	recover_all(m->jobs, m->store, parts->kept, parts->n_kept);
	*ret = TAKE_PTR(m);
	return 0;
}

static void manager_free(struct manager *m)
{
	if (!m)
		return;
	sd_event_source_disable_unref(m->intake_io);
	sd_event_source_disable_unref(m->files_io);
	sd_event_source_disable_unref(m->trim);
	sd_event_source_disable_unref(m->names_io);
	sd_event_source_disable_unref(m->command_io);
	sd_event_source_disable_unref(m->grace_timer);
	sd_event_source_disable_unref(m->tidy_timer);
	sd_event_source_disable_unref(m->usr2);
	sd_event_source_disable_unref(m->hup);
	for (int i = 0; i < MANAGER_N_STOP_SIGNALS; i++)
		sd_event_source_disable_unref(m->stop_signals[i]);
	control_listen(NULL);
	metrics_writer_done(&m->metrics);
	server_free(m->server);
	server_free(m->status_server);
	control_done(&m->control);
	hotplug_free(m->hotplug);
	lease_done(&m->lease);
	trigger_done(&m->trigger);
	jobs_free(m->jobs);
	intake_done(&m->intake);
	procs_free(m->procs);
	exclude_free(m->exclude);
	names_free(m->names);
	reread_free(m->reread);
	memory_free(m->memory);
	files_free(m->files);
	timeline_free(m->timeline);
	store_free(m->store);
	source_free(m->source);
	reload_done(&m->reload);
	sd_event_unref(m->event);
	free(m);
}

void manager_freep(struct manager **m)
{
	manager_free(*m);
}

static void manager_tell_begin(const struct manager *m)
{
	const struct source *s = m->source;
	const char *terms = s->pt_terms ? s->pt_terms : "default terms";
	const struct log_fields none = LOG_NO_FIELDS;
	size_t n = 0;

	for (size_t i = 0; i < s->n_cpus; i++)
		n += s->cpus[i].state == SOURCE_CPU_TRACING;
	if (n == 0)
		log_event(LOG_WARNING, LOG_EVENT_PT_UNAVAILABLE, &none,
			  "no CPU is traced: only the kernel's records of threads and processes "
			  "are recorded");
	else if (n < s->n_cpus)
		log_event(LOG_WARNING, LOG_EVENT_RINGS_DEGRADED, &none,
			  "%zu of %zu CPUs are traced", n, s->n_cpus);
	if (s->sizes_note && *s->sizes_note)
		log_event(LOG_WARNING, LOG_EVENT_RINGS_DEGRADED, &none, "%s", s->sizes_note);
	log_event(LOG_INFO, LOG_EVENT_STARTED, &none, "%s (%s: %s); waiting for triggers",
		  n > 0 ? "tracing" : "recording", s->ops->name, terms);
}

int manager_run(struct manager *m)
{
	/* Hardware traces all that runs, and processes from before us are in /proc only. The rings
	 * have been open since before the scan; their records are taken in after it and win. */
	if (!m->command->emulated) {
		int r = procscan_all("/proc", intake_record, &m->intake);

		if (r < 0)
			log_warning("/proc cannot be read: %s", strerror(-r));
	}
	manager_tell_begin(m);
	sd_notify(0, "READY=1\nSTATUS=recording");
	return sd_event_loop(m->event);
}
