/*
 * The map as JSON: docs/ptsnapctl.1.scd, --skim.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decoder/worker/replay/replay.h"
#include "decoder/worker/skim/skim_map.h"

struct skim_json {
	const struct replay *replay;
	const char *skim;		  /* "psb", "tip" */
	const struct skim_counts *counts; /* of each CPU of the manifest */
	const struct skim_map *map;	  /* NULL: only the totals */
	uint64_t limit;			  /* bytes; 0: none */
	bool pretty;
	int fd; /* borrowed */
};

/* Lists are halved until they fit. 0, -ENOMEM, -E2BIG: it does not fit with none; or -errno of
 * write. */
int skim_json_write(const struct skim_json *j);
