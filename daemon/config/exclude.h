/*
 * ExcludeUnits= and ExcludeUsers=: processes that are nobody's business. Their code is never
 * decoded, their files and memory are not touched.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/config/names.h"

struct exclude;

/* UNITS: globs of the names of units (services, scopes, slices), USERS: names or numbers; both
 * separated by commas or blanks, NULL: none. *RET is NULL where nothing is excluded. 0 or -ENOMEM.
 */
int exclude_new(const char *units, const char *users, struct exclude **ret);
/* X may be NULL. Whom NAMES know by now is excluded; whom they said before stays so. Without it
 * only units are. 0; EXCLUDE_UNKNOWN: of some it is not known who they are; -ENOMEM. */
#define EXCLUDE_UNKNOWN 1
int exclude_look_up(struct exclude *x, const struct names *names);
void exclude_free(struct exclude *x);
/* These, too, from now on. 0 or -ENOMEM. */
int exclude_add(struct exclude *x, const char *units, const char *users);
/* Grows with each unit and user that is added, and with each user that was found. X may be NULL: 0.
 */
size_t exclude_size(const struct exclude *x);
/* NULL excludes nobody. CGROUP: a process' control group, NULL where it is not known. */
bool exclude_has_cgroup(const struct exclude *x, const char *cgroup);
/* MANIFEST_ABSENT is nobody. */
bool exclude_has_uid(const struct exclude *x, uint64_t uid);
