/*
 * The parts of import_perfdata.c: translated records, compressed records, joined traces.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/bundle/bundle.h"
#include "proto/bundle/manifest.h"
#include "proto/bytes.h"
#include "proto/perf/perfdata.h"

#include "ctl/perfdata/import_images.h"

/* --- The kernel's records, in the layout of a bundle's sideband (import_records.c) --- */

struct import_records {
	const struct perfdata *data; /* borrowed */
	bool timeless;
	uint64_t n;		      /* translated records */
	uint64_t bad;		      /* invalid records, left out */
	uint64_t last_ns;	      /* time of the latest record; 0 if timeless */
	struct bytes_out out;	      /* the sideband, in the order of the file */
	struct import_images *images; /* borrowed: gets executable mappings */
	uint8_t *buffer;
};

/* TIMELESS: nothing relates the records' times to the trace. The records then get the times 1, 2,
 * and so on, in the order of the file. 0 or -ENOMEM. */
int import_records_init(struct import_records *r, const struct perfdata *data, bool timeless,
			struct import_images *images);
void import_records_done(struct import_records *r);
/* Translates RECORD. 0, also for an invalid record, which is counted; -ENOMEM; -E2BIG: more than a
 * bundle may hold. */
int import_records_add(struct import_records *r, const struct perfdata_record *record);

/* --- Compressed records, of `perf record -z' (import_records.c) --- */

/* All compressed records of a file are together one zstd stream. The stream's content is a series
 * of records, and a record may begin in one piece of the stream and end in another. */
struct import_zstd;

/* FN gets each record, valid until FN returns. A result of FN other than 0 ends the stream. 0 or
 * -ENOMEM. */
int import_zstd_new(int (*fn)(void *userdata, const struct perfdata_record *record), void *userdata,
		    struct import_zstd **ret);
void import_zstd_free(struct import_zstd *z);
/* Takes the next piece of the stream. 0; -EBADMSG: the stream is damaged; -E2BIG: the content is
 * too large; -ENOMEM; or the result of FN. */
int import_zstd_feed(struct import_zstd *z, const uint8_t *bytes, size_t size);
/* The number of bytes of a last record that is not complete. */
size_t import_zstd_left(const struct import_zstd *z);

/* --- The trace: pieces, joined for each CPU or thread (import_traces.c) --- */

struct import_piece {
	uint32_t cpu, tid; /* one of them is PERFDATA_ANY */
	uint64_t offset;   /* in the trace, or with --snapshot in the ring */
	const uint8_t *bytes;
	size_t size;
	size_t place; /* number of the piece in the file */
};

struct import_traces {
	struct import_piece *pieces;
	size_t n, capacity;
	/* Pieces that do not continue the piece before them and do not begin with a PSB: left out
	 * up to their first PSB, or as a whole. */
	uint64_t cut;
	uint64_t left_out; /* pieces left out because the manifest holds no more seams */
	bool tasks;	   /* the traces are of tasks that perf record was asked for */
	uint64_t copies;   /* seams of snapshots whose place in the trace is not known */
};

void import_traces_done(struct import_traces *t);
/* Adds an AUXTRACE record. 0; -EBADMSG: the trace is neither a CPU's nor a thread's; -ENOMEM. */
int import_traces_add(struct import_traces *t, const struct perfdata_record *record);
/* Makes each trace a CPU of the manifest and a member of the bundle, and seams of the manifest
 * where pieces do not continue each other. SNAPSHOT: pieces may overlap
 * (perf record --snapshot). 0, or an exit code after a message about PATH. */
int import_traces_write(struct import_traces *t, const char *path, bool snapshot,
			struct manifest *m, struct bundle_writer *w);
/* Returns how many bytes at B's beginning are also A's end. 0 if none, or if they contain no PSB,
 * which proves that they are the same bytes of one trace. */
size_t import_traces_overlap(const uint8_t *a, size_t a_size, const uint8_t *b, size_t b_size);
