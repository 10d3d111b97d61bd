/*
 * Fuzzes the parsers of /proc/PID/cgroup and of bus paths. Invariant: the result is a valid unit
 * name, or empty.
 */
#include "daemon/base/unitname.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	static const char prefix[] = "/org/freedesktop/systemd1/unit/";
	char *path = malloc(sizeof(prefix) + size);
	char name[ENTRY_UNIT_SIZE];

	if (!path)
		return 0;
	if (unitname_of_cgroup((const char *)bytes, size, name) == 0)
		assert(unitname_is_valid(name) && strlen(name) < ENTRY_UNIT_SIZE);
	else
		assert(*name == '\0');
	strcpy(path, prefix);
	memcpy(path + strlen(prefix), bytes, size);
	path[strlen(prefix) + size] = '\0';
	if (unitname_of_bus_path(path, name) == 0)
		assert(unitname_is_valid(name));
	free(path);
	return 0;
}
