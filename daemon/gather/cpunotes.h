/*
 * CPUs that do not trace, said in a manifest.
 */
#pragma once

#include "capture/ring/source.h"
#include "proto/bundle/manifest.h"

/* Adds to M a note for each state and reason that CPUs of S have for not tracing, with how many
 * have it. 0 or -ENOMEM. */
int cpunotes_add(const struct source *s, struct manifest *m);
