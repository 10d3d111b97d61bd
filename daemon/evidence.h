/*
 * What the loop knows about the moment of a snapshot, gathered for the job that writes it down: the
 * manifest, the sideband records and the images' fds.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "proto/bytes.h"
#include "proto/manifest.h"

#include "daemon/config.h"
#include "daemon/intake.h"
#include "daemon/request.h"

struct evidence_image {
	int fd; /* borrowed from struct files, which never closes one before the end; -1: missing */
	uint64_t size;
};

/* Handed over whole: from the loop to the job. */
struct evidence {
	struct manifest manifest; /* cpus[]: all but what the freeze measured */
	struct bytes_out sideband;
	struct evidence_image *images; /* as many as the manifest has */
	bool traced;		       /* some CPU has a trace ring: images are needed */
};

/* All borrowed. */
struct evidence_from {
	const struct config *config;
	struct intake *intake; /* with its source, timeline, files, processes */
	const struct request *request;
	const char *id;
	uint64_t previous_stop_ns; /* ENTRY_ABSENT */
};

/* 0, -ENOMEM, -E2BIG (sideband beyond its limit). */
int evidence_new(const struct evidence_from *from, struct evidence **ret);
void evidence_free(struct evidence *e);
void evidence_freep(struct evidence **e);
