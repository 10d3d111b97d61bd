/*
 * The processes that the recorder knew at the trigger.
 */
#include <stdlib.h>

#include "decoder/worker/report/cgroup.h"
#include "decoder/worker/report/report_parts.h"
#include "proto/base.h"

static void write_part(struct json_writer *w, const char *key, const char *v, size_t size)
{
	if (size == 0)
		json_null(w, key);
	else
		json_string_n(w, key, v, MIN_OF(size, (size_t)REPORT_MAX_STRING));
}

/* A number of another's process says that there is one. */
static uint64_t parent_of(const struct report *r, const struct manifest_process *p)
{
	return permit_pid(r->d->replay->permit, p->ppid) ? p->ppid : MANIFEST_ABSENT;
}

static void report_process(const struct report *r, struct json_writer *w, size_t i)
{
	const struct manifest_process *p = &r->m->processes[r->processes[i]];
	const struct cgroup_names names = cgroup_parse(p->cgroup);

	json_begin_object(w, NULL);
	json_u64(w, "pid", p->pid);
	report_u64(w, "ppid", parent_of(r, p));
	report_u64(w, "startNSec", p->start_ns);
	report_string_cut(w, "exe", p->exe, REPORT_MAX_STRING);
	report_string_cut(w, "cmdline", p->cmdline, REPORT_MAX_CMDLINE);
	report_u64(w, "uid", p->uid);
	report_string_cut(w, "cgroup", p->cgroup, REPORT_MAX_STRING);
	write_part(w, "unit", names.unit, names.unit_size);
	report_string_cut(w, "containerId", *names.container ? names.container : NULL,
			  REPORT_MAX_STRING);
	report_u64(w, "mountNamespace", p->mount_ns);
	report_u64(w, "nsPid", p->ns_pid);
	json_end_object(w);
}

int report_prepare_processes(struct report *r)
{
	size_t i;

	r->processes = calloc(r->m->n_processes + 1, sizeof(*r->processes));
	if (r->processes == NULL)
		return -ENOMEM;
	for (i = 0; i < r->m->n_processes; i++)
		if (permit_process(r->d->replay->permit, &r->m->processes[i]))
			r->processes[r->n_processes++] = (uint32_t)i;
	r->lists[REPORT_PROCESSES] =
		(struct report_list){"processes", r->n_processes, 0, report_process, false};
	return 0;
}
