/*
 * The recorder's numbers for Prometheus: a file in its text format, made anew again and again, as
 * node_exporter's textfile collector reads it
 * (https://prometheus.io/docs/instrumenting/exposition_formats/).
 */
#pragma once

#include <stddef.h>

#include "daemon/check/selfstat.h"
#include "daemon/check/status.h"

/* How often a file is made anew: as often as Prometheus asks for it. */
#define METRICS_USEC 15000000u
/* The newest snapshots, each with its labels. */
#define METRICS_SNAPSHOTS 16u

/* The text, *ret (free()) of *ret_size bytes. 0 or -ENOMEM. */
int metrics_make(const struct status_from *from, char **ret, size_t *ret_size);
/* TEXT as file PATH: complete, by rename, for everybody to read. May take for ever where the file
 * system does. 0 or -errno. */
int metrics_write(const char *path, const char *text, size_t size);
