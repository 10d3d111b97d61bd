/*
 * What a running recorder knows of itself, as findings.
 */
#pragma once

#include "daemon/check/finding.h"
#include "daemon/check/status.h"

/* CPUs that are not traced and why, rings smaller than asked for, what was lost. */
void check_live(const struct status_from *from, finding_fn fn, void *userdata);
