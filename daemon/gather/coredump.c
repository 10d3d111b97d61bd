/*
 * Finds the core file that belongs to a snapshot, by its name. Runs in a job's thread, as a
 * directory may be slow.
 */
#include "daemon/gather/evidence.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/unitname.h"
#include "proto/base.h"

#define BOOT_DIGITS 32u

/* The last field of the first *SIZE bytes of NAME, where dots end fields. *SIZE becomes the size of
 * what stands before the field and its dot. */
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
	/* A compressed file ends in .zst, .lz4 or .xz. */
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

/* Whether CGROUP, a path of systemd's hierarchy, is in UNIT of the host's own systemd. Only slices
 * and the unit in them count: a cgroup further down can be made by the systemd of a user or of a
 * container, with the name of any unit. */
static bool is_in_unit(const char *cgroup, const char *unit)
{
	static const char slice[] = ".slice";
	CLEANUP_FREE char *line = NULL;
	char name[ENTRY_UNIT_SIZE];
	size_t size = 0, field;
	int n;

	do {
		size += strspn(cgroup + size, "/");
		field = strcspn(cgroup + size, "/");
		size += field;
	} while (field >= strlen(slice) &&
		 strncmp(cgroup + size - strlen(slice), slice, strlen(slice)) == 0);
	n = size <= INT_MAX ? asprintf(&line, "0::%.*s\n", (int)size, cgroup) : -1;
	return n >= 0 && unitname_of_cgroup(line, (size_t)n, name) == 0 && strcmp(name, unit) == 0;
}

static bool belongs(const struct manifest *m, const struct coredump_name *name, const char *unit,
		    uint64_t pid)
{
	uint64_t now = m->realtime_ns / 1000;

	if (!m->boot_id || !is_of_boot(name, m->boot_id) || name->realtime_usec > now + 1000000 ||
	    name->realtime_usec + COREDUMP_MAX_AGE_USEC < now)
		return false;
	if (name->pid == pid)
		return true;
	for (size_t i = 0; *unit && i < m->n_processes; i++) {
		const struct manifest_process *p = &m->processes[i];

		if (p->pid == name->pid && p->cgroup && is_in_unit(p->cgroup, unit))
			return true;
	}
	return false;
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
