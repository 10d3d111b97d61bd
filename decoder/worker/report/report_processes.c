/*
 * The processes that the recorder knew at the trigger, with the unit and the container of each.
 *
 * Paths of control groups that were seen: /system.slice/nginx.service;
 * /user.slice/user-0.slice/session-1.scope; /system.slice/docker-ID.scope; /docker/ID;
 * /kubepods.slice/.../cri-containerd-ID.scope; /kubepods.slice/.../crio-ID.scope;
 * /machine.slice/libpod-ID.scope/container; /kubepods/besteffort/podUID/ID;
 * /system.slice/containerd.service/kubepods-PODUID.slice:cri-containerd:ID; /lxc.payload.NAME/...;
 * /lxc/NAME; /machine.slice/machine-NAME.scope/payload;
 * /machine.slice/systemd-nspawn@NAME.service/payload.
 *
 * A process that watches over a container (conmon, lxc.monitor) is not in the container.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "decoder/worker/report/report_parts.h"
#include "proto/base.h"

#define ID_DIGITS 64

/* One component of a path, not terminated. */
struct part {
	const char *s;
	size_t size;
};

static bool ends_with(struct part p, const char *suffix)
{
	size_t n = strlen(suffix);

	return p.size > n && memcmp(p.s + p.size - n, suffix, n) == 0;
}

static bool begins_with(struct part p, const char *prefix)
{
	size_t n = strlen(prefix);

	return p.size > n && memcmp(p.s, prefix, n) == 0;
}

static bool is(struct part p, const char *name)
{
	return p.size == strlen(name) && memcmp(p.s, name, p.size) == 0;
}

static struct part cut(struct part p, size_t front, size_t back)
{
	return (struct part){p.s + front, p.size - front - back};
}

/* The id at the end of "ID", "docker-ID.scope", "SLICE:cri-containerd:ID". */
static bool take_id(struct part p, struct part *ret)
{
	const char *id;

	if (ends_with(p, ".scope"))
		p.size -= strlen(".scope");
	if (p.size < ID_DIGITS)
		return false;
	id = p.s + p.size - ID_DIGITS;
	for (size_t i = 0; i < ID_DIGITS; i++)
		if (!strchr("0123456789abcdef", id[i]))
			return false;
	if (id != p.s && id[-1] != '-' && id[-1] != ':')
		return false;
	*ret = (struct part){id, ID_DIGITS};
	p.size -= ID_DIGITS;
	return !ends_with(p, "-conmon-");
}

/* A container of systemd-machined; virtual machines (libvirt's) are no containers. */
static bool take_machine(struct part p, struct part *ret)
{
	if (begins_with(p, "machine-") && ends_with(p, ".scope"))
		*ret = cut(p, strlen("machine-"), strlen(".scope"));
	else if (begins_with(p, "systemd-nspawn@") && ends_with(p, ".service"))
		*ret = cut(p, strlen("systemd-nspawn@"), strlen(".service"));
	else
		return false;
	return !begins_with(*ret, "qemu\\x2d");
}

/* BEFORE: the component before P; its size is 0 if P is the first. */
static bool take_lxc(struct part before, struct part p, struct part *ret)
{
	if (begins_with(p, "lxc.payload."))
		*ret = cut(p, strlen("lxc.payload."), 0);
	else if (is(before, "lxc.payload") || is(before, "lxc"))
		*ret = p;
	else
		return false;
	return true;
}

static int hex_value(char c)
{
	static const char digits[] = "0123456789abcdef";
	const char *at = c ? strchr(digits, c) : NULL;

	return at ? (int)(at - digits) : -1;
}

/* Undoes systemd's escapes ("\x2d" for "-"); an escaped control character stays escaped. */
static void copy_name(struct part p, char ret[CGROUP_CONTAINER_MAX + 1])
{
	size_t n = 0;

	for (size_t i = 0; i < p.size && n < CGROUP_CONTAINER_MAX; i++) {
		bool escape = p.size - i >= 4 && p.s[i] == '\\' && p.s[i + 1] == 'x' &&
			      hex_value(p.s[i + 2]) >= 2 && hex_value(p.s[i + 3]) >= 0;

		ret[n++] = escape ? (char)(hex_value(p.s[i + 2]) * 16 + hex_value(p.s[i + 3]))
				  : p.s[i];
		i += escape ? 3 : 0;
	}
	ret[n] = '\0';
}

struct cgroup_names cgroup_parse(const char *path)
{
	static const char *const kinds[] = {".service", ".scope", ".mount", ".swap", ".socket"};
	struct cgroup_names names = {0};
	struct part before = {0}, p, found;

	for (; path && *path != '\0'; path += p.size + (path[p.size] == '/')) {
		p = (struct part){path, strcspn(path, "/")};
		if (p.size == 0)
			continue;
		for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
			/* systemd's cg_escape() puts a "_" in front of a name that a file of the
			 * group could have. */
			size_t escape = p.s[0] == '_';

			if (!ends_with(p, kinds[i]))
				continue;
			names.unit = p.s + escape;
			names.unit_size = p.size - escape;
		}
		if (take_id(p, &found) || take_machine(p, &found) || take_lxc(before, p, &found))
			copy_name(found, names.container);
		before = p;
	}
	return names;
}

static void report_process(const struct report *r, struct json_writer *w, size_t i)
{
	const struct manifest_process *p = &r->m->processes[r->processes[i]];
	const struct cgroup_names names = cgroup_parse(p->cgroup);

	json_begin_object(w, NULL);
	json_u64(w, "pid", p->pid);
	/* A user is not told the pid of another user's process. */
	report_u64(w, "ppid",
		   permit_pid(r->d->replay->permit, p->ppid) ? p->ppid : MANIFEST_ABSENT);
	report_u64(w, "startNSec", p->start_ns);
	report_string_cut(w, "exe", p->exe, REPORT_MAX_STRING);
	report_string_cut(w, "cmdline", p->cmdline, REPORT_MAX_CMDLINE);
	report_u64(w, "uid", p->uid);
	report_string_cut(w, "cgroup", p->cgroup, REPORT_MAX_STRING);
	if (names.unit_size == 0)
		json_null(w, "unit");
	else
		json_string_n(w, "unit", names.unit,
			      MIN_OF(names.unit_size, (size_t)REPORT_MAX_STRING));
	report_string_cut(w, "containerId", *names.container ? names.container : NULL,
			  REPORT_MAX_STRING);
	report_u64(w, "mountNamespace", p->mount_ns);
	report_u64(w, "nsPid", p->ns_pid);
	json_end_object(w);
}

int report_prepare_processes(struct report *r)
{
	r->processes = calloc(r->m->n_processes + 1, sizeof(*r->processes));
	if (!r->processes)
		return -ENOMEM;
	for (size_t i = 0; i < r->m->n_processes; i++)
		if (permit_process(r->d->replay->permit, &r->m->processes[i]))
			r->processes[r->n_processes++] = (uint32_t)i;
	r->lists[REPORT_PROCESSES] = (struct report_list){
		.key = "processes", .total = r->n_processes, .element = report_process};
	return 0;
}
