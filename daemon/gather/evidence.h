/*
 * What the loop knows about the moment of a snapshot, gathered for the job that writes it down: the
 * manifest, the sideband records and the images' fds.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "proto/bundle/manifest.h"
#include "proto/bytes.h"

#include "daemon/config/config.h"
#include "daemon/record/intake.h"
#include "daemon/store/entry.h"

struct evidence_image {
	int fd; /* owned; -1: missing */
	uint64_t size;
};

/* Handed over whole: from the loop to the job. */
struct evidence {
	struct manifest manifest; /* cpus[]: all but what the freeze measured */
	struct bytes_out sideband;
	struct evidence_image *images; /* as many as the manifest has */
	size_t images_capacity;
	struct memory_region *regions;
	size_t n_regions;
	struct bytes_out *texts; /* as many as the manifest has; each owned */
	size_t texts_capacity;
	bool traced; /* some CPU has a trace ring: images are needed */
};

/* One more image of the manifest with its bytes (FD is taken over, also on failure; -1: missing),
 * or one more text (BYTES: taken over, empty after). Used by the loop and, later, by the job. NULL:
 * no memory, or the manifest's limit. */
struct manifest_image *evidence_add_image(struct evidence *e, int fd, uint64_t size);
struct manifest_text *evidence_add_text(struct evidence *e, struct bytes_out *bytes);

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
