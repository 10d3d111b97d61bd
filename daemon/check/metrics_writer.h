/*
 * Looks at what the recorder costs, and writes the file of its metrics, every 15 seconds.
 */
#pragma once

#include <stddef.h>

#include <systemd/sd-event.h>

#include "daemon/base/aside.h"
#include "daemon/check/status.h"
#include "daemon/config/config.h"

/* The time between two files: as often as Prometheus asks for one. */
#define METRICS_USEC 15000000u
/* How many of the newest snapshots the file has, each with its labels. */
#define METRICS_SNAPSHOTS 16u

struct metrics_writer {
	const struct config *config;	/* borrowed; metrics_writer_use */
	const struct status_from *from; /* borrowed; its self is ours */
	struct selfstat self;
	sd_event_source *timer, *written;
	struct aside *aside; /* owned */
	int error;	     /* of the last file, 0 or -errno; each error is logged once */
	uint64_t asked_usec; /* when the last file was to be written */
	bool slow;	     /* a file takes longer than METRICS_USEC; logged once */
};

/* FROM is not looked at before the loop runs. 0 or -errno. */
int metrics_writer_init(struct metrics_writer *w, sd_event *event, const struct config *config,
			const struct status_from *from);
void metrics_writer_done(struct metrics_writer *w);
/* CONFIG is the configuration from now on. */
void metrics_writer_use(struct metrics_writer *w, const struct config *config);

/* The recorder's numbers in Prometheus' text format, as node_exporter's textfile collector reads
 * them (https://prometheus.io/docs/instrumenting/exposition_formats/). *ret (free()) has *ret_size
 * bytes. 0 or -ENOMEM. */
int metrics_make(const struct status_from *from, char **ret, size_t *ret_size);
/* Writes TEXT as file PATH: complete, by rename, readable for everybody. May never return where the
 * file system hangs. 0 or -errno. */
int metrics_write(const char *path, const char *text, size_t size);
