/*
 * One perf record of a foreign layout, as libipt's sideband decoder reads and prints it. Part of
 * pevent.c.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decoder/worker/view/lines.h"
#include "proto/bundle/manifest.h"

#define PEVENT_FIELDS 11u

struct pevent_record {
	uint32_t type; /* PERF_RECORD_* */
	uint16_t misc, size;
	const struct pevent_kind *kind; /* NULL: a type that is not taken apart */
	uint64_t fields[PEVENT_FIELDS]; /* in the order of the record */
	const char *text;		/* borrowed from the bytes; NULL: the kind has none */
	bool sampled;			/* the layout has a sample_type */
	/* Its sample_id; a bit of PERF_SAMPLE_* in HAS for each that is there. */
	uint64_t has;
	uint32_t pid, tid, cpu;
	uint64_t time, id, stream_id, identifier;
	uint64_t tsc; /* TIME converted, less tsc_offset; 0: it has no time */
};

enum pevent_read {
	PEVENT_OK = 0,
	PEVENT_END,	   /* there is no record, or not all of it */
	PEVENT_BAD_TEXT,   /* a string without an end */
	PEVENT_BAD_SIZE,   /* it is longer or shorter than its contents */
	PEVENT_BAD_CONFIG, /* the clock's multiplier is 0 */
};

/* The record at POS, laid out as M says. Only with PEVENT_OK *ret is complete. */
enum pevent_read pevent_record_read(const uint8_t *pos, const uint8_t *end,
				    const struct manifest_pevent *m, struct pevent_record *ret);
/* The record without what stands before it, by WORKER_SHOW_SB_COMPACT or .._VERBOSE, with a
 * newline. Its strings are escaped. */
void pevent_record_print(const struct pevent_record *r, uint64_t show, struct lines *l);
/* TEXT, all but printable ASCII as \xNN. */
void pevent_put_text(struct lines *l, const char *text);
