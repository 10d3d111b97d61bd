/*
 * The trace of a perf.data: its pieces, put together for each CPU or thread.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "proto/bundle/bundle.h"
#include "proto/bundle/manifest.h"
#include "proto/perf/perfdata.h"

struct import_piece {
	uint32_t cpu, tid; /* one of them is PERFDATA_ANY */
	uint64_t offset;   /* in the trace */
	const uint8_t *bytes;
	size_t size;
	size_t place; /* in the file */
};

struct import_traces {
	struct import_piece *pieces;
	size_t n, capacity;
	uint64_t dropped; /* bytes of pieces before a PSB, where what came before them is lost */
	uint64_t seams;	  /* where that is so */
};

void import_traces_done(struct import_traces *t);
/* An AUXTRACE record. 0; -EBADMSG: it is neither of a CPU nor of a thread; -ENOMEM. */
int import_traces_add(struct import_traces *t, const struct perfdata_record *record);
/* All traces become CPUs of the manifest and members of the bundle. SNAPSHOT: pieces may overlap
 * (perf record --snapshot). 0, or an exit code after a message about PATH. */
int import_traces_write(struct import_traces *t, const char *path, bool snapshot,
			struct manifest *m, struct bundle_writer *w);
/* How many of B's first bytes are A's last ones, and hold a PSB, by which they are known to be the
 * same; 0: none. */
size_t import_traces_overlap(const uint8_t *a, size_t a_size, const uint8_t *b, size_t b_size);
