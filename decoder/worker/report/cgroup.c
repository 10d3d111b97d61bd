/*
 * Unit and container out of a control group's path. Used by report_processes.c.
 *
 * Paths seen: /system.slice/nginx.service; /user.slice/user-0.slice/session-1.scope;
 * /system.slice/docker-ID.scope; /docker/ID; /kubepods.slice/.../cri-containerd-ID.scope;
 * /kubepods.slice/.../crio-ID.scope; /machine.slice/libpod-ID.scope/container;
 * /kubepods/besteffort/podUID/ID;
 * /system.slice/containerd.service/kubepods-PODUID.slice:cri-containerd:ID; /lxc.payload.NAME/...;
 * /lxc/NAME; /machine.slice/machine-NAME.scope/payload;
 * /machine.slice/systemd-nspawn@NAME.service/payload.
 *
 * Who watches over a container (conmon, lxc.monitor) is not in it.
 */
#include "decoder/worker/report/cgroup.h"

#include <stdbool.h>
#include <string.h>

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

static bool is_unit(struct part p)
{
	static const char *const kinds[] = {".service", ".scope", ".mount", ".swap", ".socket"};

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (ends_with(p, kinds[i]))
			return true;
	return false;
}

static bool is_hex(const char *s, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if (!strchr("0123456789abcdef", s[i]))
			return false;
	return true;
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
	if (!is_hex(id, ID_DIGITS) || (id != p.s && id[-1] != '-' && id[-1] != ':'))
		return false;
	*ret = (struct part){id, ID_DIGITS};
	p.size -= ID_DIGITS;
	return !ends_with(p, "-conmon-");
}

/* Machines of systemd-machined; virtual machines (libvirt's) are no containers. */
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

/* BEFORE: the component before P, which is the first one where SIZE is 0. */
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

/* systemd's escapes, "\x2d" for "-"; an escaped control character stays as it is. */
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
	struct cgroup_names names = {0};
	struct part before = {0}, p, found;

	for (; path != NULL && *path != '\0'; path += p.size + (path[p.size] == '/')) {
		p = (struct part){path, strcspn(path, "/")};
		if (p.size == 0)
			continue;
		if (is_unit(p)) {
			/* So that no file of the group has its name: systemd's cg_escape(). */
			size_t escape = p.s[0] == '_';

			names.unit = p.s + escape;
			names.unit_size = p.size - escape;
		}
		if (take_id(p, &found) || take_machine(p, &found) || take_lxc(before, p, &found))
			copy_name(found, names.container);
		before = p;
	}
	return names;
}
