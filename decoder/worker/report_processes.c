/*
 * The processes that the recorder knew at the trigger.
 */
#include "decoder/worker/cgroup.h"
#include "decoder/worker/report_parts.h"
#include "proto/base.h"

static void write_part(struct json_writer *w, const char *key, const char *v, size_t size)
{
	if (size == 0)
		json_null(w, key);
	else
		json_string_n(w, key, v, MIN_OF(size, (size_t)REPORT_MAX_STRING));
}

void report_process(const struct report *r, struct json_writer *w, size_t i)
{
	const struct manifest_process *p = &r->m->processes[i];
	const struct cgroup_names names = cgroup_parse(p->cgroup);

	json_begin_object(w, NULL);
	json_u64(w, "pid", p->pid);
	report_u64(w, "ppid", p->ppid);
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
	r->lists[REPORT_PROCESSES] =
		(struct report_list){"processes", r->m->n_processes, 0, report_process, false};
	return 0;
}
