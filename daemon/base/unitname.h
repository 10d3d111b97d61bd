/*
 * The systemd unit of a process, by its control group, and the form of names of units. Whoever may
 * make control groups chooses their names, so names are untrusted.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/base/log.h"

/* Whether systemd would take NAME for a unit (src/basic/unit-name.c, unit_name_is_valid()): up to
 * 255 letters, digits, ":-_.\\" and one "@" not in front, ending in the suffix of a type of unit.
 */
bool unitname_is_valid(const char *name);

/* Finds the innermost unit in TEXT, SIZE bytes of a /proc/PID/cgroup: in the path in systemd's
 * hierarchy (line "0::/...", or "N:name=systemd:/..." of cgroup v1), the last element that is a
 * unit's name and no slice, else the last slice. 0; -ENOENT: there is none. */
int unitname_of_cgroup(const char *text, size_t size, char ret[ENTRY_UNIT_SIZE]);

/* Finds the unit that process PID of PROC ("/proc") is in now. The result is a hint and must
 * grant no rights: the process may have ended, and another one have its pid. 0; -ENOENT: none is
 * known. */
int unitname_of_pid(const char *proc, uint64_t pid, char ret[ENTRY_UNIT_SIZE]);

/* Finds the unit of the object path that it has on the bus (sd_bus_path_encode(3)). 0; -EINVAL:
 * PATH is not such a path, or not that of a valid name. */
int unitname_of_bus_path(const char *path, char ret[ENTRY_UNIT_SIZE]);
