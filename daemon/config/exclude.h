/*
 * ExcludeUnits= and ExcludeUsers=: processes to leave alone. Their code is never decoded, and their
 * files and memory are not read.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/config/names.h"

struct exclude;

/* UNITS are globs of names of units (services, scopes, slices), USERS names or numbers; both are
 * separated by commas or blanks, and may be NULL. *ret is NULL if nothing is excluded. 0 or
 * -ENOMEM. In all functions but exclude_add(), X may be NULL. */
int exclude_new(const char *units, const char *users, struct exclude **ret);
void exclude_free(struct exclude *x);
/* Adds units and users. 0 or -ENOMEM. */
int exclude_add(struct exclude *x, const char *units, const char *users);
/* Looks the users up. A number that NAMES found once stays excluded. Until this is called, only
 * units and numbers are. 0; EXCLUDE_UNKNOWN: some users are not known yet; -ENOMEM. */
#define EXCLUDE_UNKNOWN 1
int exclude_look_up(struct exclude *x, const struct names *names);
/* Grows with each unit and user that is added and with each user that is found. */
size_t exclude_size(const struct exclude *x);
/* Whether CGROUP, a process's control group (NULL: not known), is in an excluded unit. */
bool exclude_has_cgroup(const struct exclude *x, const char *cgroup);
/* Whether UID is excluded; MANIFEST_ABSENT is not. */
bool exclude_has_uid(const struct exclude *x, uint64_t uid);
