/*
 * Names of core files -> the one that belongs to a snapshot. Called by a job, as a directory may be
 * slow.
 */
#include "daemon/gather/coredump.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/unitname.h"
#include "proto/base.h"

#define BOOT_DIGITS 32u

/* The last field of NAME, which is *SIZE bytes long, and is then the part before it. */
static const char *last_field(const char *name, size_t *size, size_t *ret_size)
{
	size_t at = *size;

	while (at > 0 && name[at - 1] != '.')
		at--;
	*ret_size = *size - at;
	*size = at > 0 ? at - 1 : 0;
	return name + at;
}

static bool read_number(const char *text, size_t size, uint64_t *ret)
{
	char digits[24];

	if (size == 0 || size >= sizeof(digits))
		return false;
	memcpy(digits, text, size);
	digits[size] = '\0';
	if (strspn(digits, "0123456789") != size)
		return false;
	errno = 0;
	*ret = strtoull(digits, NULL, 10);
	return errno == 0;
}

bool coredump_parse(const char *name, struct coredump_name *ret)
{
	size_t left = strlen(name), n;
	const char *field;

	if (strncmp(name, "core.", 5) != 0)
		return false;
	field = last_field(name, &left, &n);
	/* zst, lz4, xz */
	if (!read_number(field, n, &ret->realtime_usec)) {
		field = last_field(name, &left, &n);
		if (!read_number(field, n, &ret->realtime_usec))
			return false;
	}
	field = last_field(name, &left, &n);
	if (!read_number(field, n, &ret->pid))
		return false;
	field = last_field(name, &left, &n);
	if (n != BOOT_DIGITS || strspn(field, "0123456789abcdef") != n)
		return false;
	memcpy(ret->boot_id, field, n);
	ret->boot_id[n] = '\0';
	field = last_field(name, &left, &n);
	return read_number(field, n, &ret->uid) && left > 4;
}

static bool is_of_boot(const struct coredump_name *name, const char *boot_id)
{
	size_t n = 0;

	for (; *boot_id; boot_id++)
		if (*boot_id != '-' && (n >= BOOT_DIGITS || name->boot_id[n++] != *boot_id))
			return false;
	return n == BOOT_DIGITS;
}

/* How many bytes of CGROUP, a path of systemd's hierarchy, name a unit of the host's own systemd:
 * slices, and what is in them. What lies below, a user's systemd may have made, or a container's,
 * with any unit's name. */
static size_t own_unit_size(const char *cgroup)
{
	static const char slice[] = ".slice";
	size_t n, end = 0;

	do {
		end += strspn(cgroup + end, "/");
		n = strcspn(cgroup + end, "/");
		end += n;
	} while (n >= strlen(slice) &&
		 strncmp(cgroup + end - strlen(slice), slice, strlen(slice)) == 0);
	return end;
}

static bool is_in_unit(const char *cgroup, const char *unit)
{
	CLEANUP_FREE char *line = NULL;
	char name[ENTRY_UNIT_SIZE];
	size_t size = own_unit_size(cgroup);
	int n = size <= INT_MAX ? asprintf(&line, "0::%.*s\n", (int)size, cgroup) : -1;

	return n >= 0 && unitname_of_cgroup(line, (size_t)n, name) == 0 && strcmp(name, unit) == 0;
}

static bool is_of_unit(const struct manifest *m, const char *unit, uint64_t pid)
{
	for (size_t i = 0; i < m->n_processes; i++) {
		const struct manifest_process *p = &m->processes[i];

		if (p->pid == pid && p->cgroup && is_in_unit(p->cgroup, unit))
			return true;
	}
	return false;
}

static bool belongs(const struct manifest *m, const struct coredump_name *name, const char *unit,
		    uint64_t pid)
{
	uint64_t now = m->realtime_ns / 1000;

	if (!m->boot_id || !is_of_boot(name, m->boot_id) || name->realtime_usec > now + 1000000 ||
	    name->realtime_usec + COREDUMP_MAX_AGE_USEC < now)
		return false;
	return name->pid == pid || (*unit && is_of_unit(m, unit, name->pid));
}

int coredump_find(const char *dir, const struct manifest *m, const char *unit, uint64_t pid,
		  char ret[ENTRY_CORE_SIZE])
{
	struct coredump_name name;
	uint64_t newest = 0;
	struct dirent *d;
	DIR *list = opendir(dir);

	*ret = '\0';
	if (!list)
		return -errno;
	while ((d = readdir(list))) {
		if (!coredump_parse(d->d_name, &name) || name.realtime_usec <= newest ||
		    !belongs(m, &name, unit, pid))
			continue;
		newest = name.realtime_usec;
		snprintf(ret, ENTRY_CORE_SIZE, "%s", d->d_name);
	}
	closedir(list);
	return 0;
}
