/*
 * The manager's parts, made in order: what remembers what the kernel tells, and whom clients reach.
 * Called by manager_new() in manager.c.
 */
#include <sys/resource.h>

#include "daemon/manager_private.h"
#include "proto/base.h"

/* Processes whose code in memory that is no file's is remembered. */
#define MAX_MEMORY_PROCESSES 4096u

/* Files that are mapped may take what clients, snapshots and events leave: once for the list, once
 * for each snapshot that is being taken. */
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

int manager_build_memory(struct manager *m)
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
	if (r < 0)
		return r;
	files_use(m->files, m->timeline, m->procs);
	manager_begin_exclusion(m);
	parts.timeline = m->timeline;
	parts.files = m->files;
	parts.procs = m->procs;
	parts.memory = m->memory;
	return intake_init(&m->intake, &parts);
}

int manager_build_servers(struct manager *m, const struct manager_parts *parts)
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
