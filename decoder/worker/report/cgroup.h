/*
 * What a control group's path tells about its process.
 */
#pragma once

#include <stddef.h>

#define CGROUP_CONTAINER_MAX 255 /* NAME_MAX */

/* UNIT points into PATH and is not terminated; size 0: none. It is the innermost component that is
 * a systemd unit: a service, scope, mount, swap or socket. CONTAINER: the id of the innermost
 * container, 64 hexadecimal digits, or the name of one of LXC or systemd-nspawn; "": none. */
struct cgroup_names {
	const char *unit;
	size_t unit_size;
	char container[CGROUP_CONTAINER_MAX + 1];
};

/* PATH may be NULL. */
struct cgroup_names cgroup_parse(const char *path);
