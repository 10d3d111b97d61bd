/*
 * ExcludeUnits= and ExcludeUsers=: processes that are nobody's business. Their code is never
 * decoded, their files and memory are not touched.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "capture/procscan.h"

struct exclude;

/* UNITS: globs of the names of units (services, scopes, slices), USERS: names or numbers; both
 * separated by commas or blanks, NULL: none. A user that the host does not have is said here, once,
 * and is nobody. *RET is NULL where nothing is excluded. 0 or -ENOMEM. */
int exclude_new(const char *units, const char *users, struct exclude **ret);
void exclude_free(struct exclude *x);
/* NULL excludes nobody. CGROUP: a process' control group, NULL where it is not known. */
bool exclude_has_cgroup(const struct exclude *x, const char *cgroup);
/* MANIFEST_ABSENT is nobody. */
bool exclude_has_uid(const struct exclude *x, uint64_t uid);
