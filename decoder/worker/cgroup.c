/*
 * Unit and container out of a control group's path. Used by report_processes.c.
 *
 * Paths seen: /system.slice/nginx.service; /user.slice/user-0.slice/session-1.scope;
 * /system.slice/docker-ID.scope; /docker/ID; /kubepods.slice/.../cri-containerd-ID.scope;
 * /machine.slice/libpod-ID.scope/container; /kubepods/besteffort/podUID/ID.
 */
#include "decoder/worker/cgroup.h"

#include <stdbool.h>
#include <string.h>

static bool ends_with(const char *s, size_t size, const char *suffix)
{
	size_t n = strlen(suffix);

	return size > n && memcmp(s + size - n, suffix, n) == 0;
}

static bool is_unit(const char *s, size_t size)
{
	return ends_with(s, size, ".service") || ends_with(s, size, ".scope");
}

/* The id at the end of "ID", "docker-ID.scope", "cri-containerd-ID.scope"; NULL: none. */
static const char *find_container(const char *s, size_t size)
{
	const char *id;

	if (ends_with(s, size, ".scope"))
		size -= strlen(".scope");
	if (size < CGROUP_CONTAINER_ID)
		return NULL;
	id = s + size - CGROUP_CONTAINER_ID;
	if (strspn(id, "0123456789abcdef") < CGROUP_CONTAINER_ID)
		return NULL;
	return id == s || id[-1] == '-' || id[-1] == ':' ? id : NULL;
}

struct cgroup_names cgroup_parse(const char *path)
{
	struct cgroup_names names = {0};

	while (path != NULL && *path != '\0') {
		size_t size = strcspn(path, "/");
		const char *id = find_container(path, size);

		if (is_unit(path, size)) {
			names.unit = path;
			names.unit_size = size;
		}
		if (id != NULL) {
			names.container = id;
			names.container_size = CGROUP_CONTAINER_ID;
		}
		path += size;
		path += *path == '/';
	}
	return names;
}
