/*
 * Names of units in paths of control groups and of the bus.
 *
 * A path is nested as units are: /user.slice/user-1000.slice/user@1000.service/app.slice/x.service.
 * Below a unit's own group (Delegate=, containers), names are no units, or those of another
 * systemd, which is then the nearer one.
 */
#include "daemon/base/unitname.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "proto/base.h"

#define MAX_CGROUP_BYTES 65536u
#define SLICE		 ".slice"
#define BUS_PREFIX	 "/org/freedesktop/systemd1/unit/"

static bool has_suffix(const char *name, const char *suffix)
{
	size_t n = strlen(name), m = strlen(suffix);

	return n > m && strcmp(name + n - m, suffix) == 0;
}

/* Whether NAME ends in the suffix of a type of unit. */
static bool has_unit_type(const char *name)
{
	static const char *const types[] = {".service", ".scope",     ".slice", ".socket",
					    ".mount",	".swap",      ".timer", ".path",
					    ".target",	".automount", ".device"};

	for (size_t i = 0; i < ARRAY_SIZE(types); i++)
		if (has_suffix(name, types[i]))
			return true;
	return false;
}

bool unitname_is_valid(const char *name)
{
	size_t n = 0, ats = 0;

	if (*name == '@' || *name == '.')
		return false;
	for (; name[n] && n < ENTRY_UNIT_SIZE; n++) {
		ats += name[n] == '@';
		if (!isalnum((unsigned char)name[n]) && !strchr(":-_.\\@", name[n]))
			return false;
	}
	return n < ENTRY_UNIT_SIZE && ats <= 1 && has_unit_type(name);
}

/* Copies ELEMENT of a path to RET if it is a unit's name. systemd puts "_" before names that the
 * kernel uses itself (src/basic/cgroup-util.c, cg_escape()). */
static bool take_element(const char *element, size_t size, char ret[ENTRY_UNIT_SIZE])
{
	if (size > 0 && *element == '_') {
		element++;
		size--;
	}
	if (size == 0 || size >= ENTRY_UNIT_SIZE)
		return false;
	memcpy(ret, element, size);
	ret[size] = '\0';
	return strlen(ret) == size && unitname_is_valid(ret);
}

/* Finds the innermost unit in PATH, which has SIZE bytes. */
static bool take_path(const char *path, size_t size, char ret[ENTRY_UNIT_SIZE])
{
	const char *end = path + size;
	char name[ENTRY_UNIT_SIZE];
	bool found = false, slice = true;

	while (path < end) {
		const char *next = memchr(path, '/', (size_t)(end - path));
		size_t n = (size_t)((next ? next : end) - path);

		if (take_element(path, n, name) && (slice || !has_suffix(name, SLICE))) {
			strcpy(ret, name);
			slice = has_suffix(name, SLICE);
			found = true;
		}
		path += n + (next != NULL);
	}
	return found;
}

/* The path in LINE, which has SIZE bytes; NULL: not of systemd's hierarchy (cgroups(7)). */
static const char *line_path(const char *line, size_t size)
{
	const char *colon = memchr(line, ':', size), *controllers, *path;
	size_t left;

	if (!colon)
		return NULL;
	controllers = colon + 1;
	left = size - (size_t)(controllers - line);
	path = memchr(controllers, ':', left);
	if (!path)
		return NULL;
	left = (size_t)(path - controllers);
	if ((left == 0 && colon == line + 1 && *line == '0') ||
	    (left == strlen("name=systemd") && memcmp(controllers, "name=systemd", left) == 0))
		return path + 1;
	return NULL;
}

int unitname_of_cgroup(const char *text, size_t size, char ret[ENTRY_UNIT_SIZE])
{
	const char *end = text + size;
	bool found = false;

	/* With both versions of cgroups, only the line of version 1 has systemd's names; the path
	 * of the other one is "/", in which nothing is found. */
	while (text < end && !found) {
		const char *newline = memchr(text, '\n', (size_t)(end - text));
		size_t n = (size_t)((newline ? newline : end) - text);
		const char *path = line_path(text, n);

		if (path)
			found = take_path(path, n - (size_t)(path - text), ret);
		text += n + (newline != NULL);
	}
	if (!found)
		*ret = '\0';
	return found ? 0 : -ENOENT;
}

int unitname_of_pid(const char *proc, uint64_t pid, char ret[ENTRY_UNIT_SIZE])
{
	CLEANUP_FREE char *text = NULL;
	CLEANUP_CLOSE int fd = -EBADF;
	char path[PATH_MAX];
	size_t used = 0;
	ssize_t n;

	*ret = '\0';
	/* 0: a process of another pid namespace, or the kernel. */
	if (pid == 0 || pid > INT32_MAX)
		return -ENOENT;
	snprintf(path, sizeof(path), "%s/%" PRIu64 "/cgroup", proc, pid);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	text = fd >= 0 ? malloc(MAX_CGROUP_BYTES) : NULL;
	if (!text)
		return -ENOENT;
	while (used < MAX_CGROUP_BYTES && (n = read(fd, text + used, MAX_CGROUP_BYTES - used)) > 0)
		used += (size_t)n;
	return unitname_of_cgroup(text, used, ret);
}

/* -1: not a digit. */
static int hex_digit(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

int unitname_of_bus_path(const char *path, char ret[ENTRY_UNIT_SIZE])
{
	char name[ENTRY_UNIT_SIZE];
	size_t n = 0;

	if (strncmp(path, BUS_PREFIX, strlen(BUS_PREFIX)) != 0)
		return -EINVAL;
	for (path += strlen(BUS_PREFIX); *path; path++) {
		int high = 0, low = 0;

		if (n == sizeof(name) - 1)
			return -EINVAL;
		if (*path != '_') {
			name[n++] = *path;
			continue;
		}
		high = hex_digit(path[1]);
		low = high < 0 ? -1 : hex_digit(path[2]);
		if (low < 0 || (high == 0 && low == 0))
			return -EINVAL;
		name[n++] = (char)(16 * high + low);
		path += 2;
	}
	name[n] = '\0';
	if (!unitname_is_valid(name))
		return -EINVAL;
	strcpy(ret, name);
	return 0;
}
