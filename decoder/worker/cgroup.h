/*
 * What a control group's path tells about its process.
 */
#pragma once

#include <stddef.h>

#define CGROUP_CONTAINER_ID 64

/* Both point into PATH and are not terminated; size 0: none. UNIT: the innermost component that is
 * a systemd service or scope. CONTAINER: the innermost 64-digit hex id. */
struct cgroup_names {
	const char *unit, *container;
	size_t unit_size, container_size;
};

/* PATH may be NULL. */
struct cgroup_names cgroup_parse(const char *path);
