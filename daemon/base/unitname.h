/*
 * The systemd unit of a process, by its cgroup; and what names of units look like. Names come from
 * strangers: whoever may make cgroups chooses them.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/base/entry_size.h"

/* Is NAME, up to 255 bytes, one that systemd would take for a unit (src/basic/unit-name.c,
 * unit_name_is_valid()): letters, digits, ":-_.\\" and one "@" not in front, then the suffix of a
 * type of unit? */
bool unitname_is_valid(const char *name);

/* TEXT, SIZE bytes, is a /proc/PID/cgroup. The innermost unit of its path in systemd's hierarchy
 * (line "0::/...", or "N:name=systemd:/..." of cgroup v1): the last element that is a unit's name
 * and no slice, or, where there are only slices, the last of them. 0; -ENOENT: there is none. */
int unitname_of_cgroup(const char *text, size_t size, char ret[ENTRY_UNIT_SIZE]);

/* The unit that process PID of PROC ("/proc") is in now. The process may have ended, and another
 * one have its number by now: whoever is told of a pid asks at once, and what comes out is a hint
 * and gives nobody a right. 0; -ENOENT: none is known. */
int unitname_of_pid(const char *proc, uint64_t pid, char ret[ENTRY_UNIT_SIZE]);

/* The unit behind the object path that systemd gives it on the bus (sd_bus_path_encode(3)). 0;
 * -EINVAL: PATH is not such a path, or not that of a valid name. */
int unitname_of_bus_path(const char *path, char ret[ENTRY_UNIT_SIZE]);
