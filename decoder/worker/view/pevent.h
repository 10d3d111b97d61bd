/*
 * Sideband records as libipt's tools show them, for the views of packets and of ptxed's lines.
 *
 * The records are those of perf's files that a bundle has besides its own sideband
 * (manifest_pevent). They are printed when the time of the trace reaches their time. The timeline,
 * not this file, decides what the records mean for the decoding.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decoder/worker/view/views.h"
#include "proto/bundle/bundle.h"
#include "proto/bundle/manifest.h"
#include "proto/decode_options.h"

struct pevent;

/* Where execution is after an event of the trace. */
struct pevent_event {
	uint64_t tsc;
	enum {
		PEVENT_NOWHERE,	      /* the event does not say */
		PEVENT_AT,	      /* at IP */
		PEVENT_ACROSS,	      /* it went from user code to the kernel, or back */
		PEVENT_ACROSS_FROM,   /* the same, from IP */
		PEVENT_LIKELY_KERNEL, /* something that only a kernel does */
	} where;
	uint64_t ip;
};

/* Uses OPTIONS->show and ->kernel_start. *ret is NULL if the bundle has no such file. All arguments
 * are borrowed until pevent_free. 0 or -ENOMEM. */
int pevent_new(const struct bundle *b, const struct decode_options *options, struct lines *l,
	       struct pevent **ret);
void pevent_free(struct pevent *p);
void pevent_freep(struct pevent **p);
/* Prints the records of all files up to TSC, in the order of time. P may be NULL. */
void pevent_until(struct pevent *p, uint64_t tsc);
/* The same, with what else ptxed does: warnings about what a record means for the decoding (with
 * WORKER_SHOW_SB_WARN; errors always), and with WORKER_SHOW_SB_SWITCH "[context: pid-N]" when the
 * next context of a primary file is taken, which is delayed until execution is in the kernel. To be
 * called at every event, behind the event's own line. P may be NULL. */
void pevent_event(struct pevent *p, const struct pevent_event *event);

/* --- One record: pevent_record.c --- */

#define PEVENT_FIELDS 11u

struct pevent_record {
	uint32_t type; /* PERF_RECORD_* */
	uint16_t misc, size;
	const struct pevent_kind *kind; /* NULL: a type whose fields are not read */
	uint64_t fields[PEVENT_FIELDS]; /* in the order of the record */
	const char *text;		/* borrowed from the bytes; NULL: the kind has none */
	bool sampled;			/* the layout has a sample_type */
	/* The sample_id; HAS has a bit of PERF_SAMPLE_* for each field that the record has. */
	uint64_t has;
	uint32_t pid, tid, cpu;
	uint64_t time, id, stream_id, identifier;
	uint64_t tsc; /* TIME converted, less tsc_offset; 0: no time */
};

enum pevent_read {
	PEVENT_OK = 0,
	PEVENT_END,	   /* no record, or a part of one */
	PEVENT_BAD_TEXT,   /* a string without an end */
	PEVENT_BAD_SIZE,   /* the size does not fit the contents */
	PEVENT_BAD_CONFIG, /* the clock's multiplier is 0 */
};

/* Reads the record at POS, laid out as M says. *ret is complete only with PEVENT_OK. */
enum pevent_read pevent_record_read(const uint8_t *pos, const uint8_t *end,
				    const struct manifest_pevent *m, struct pevent_record *ret);
/* Prints the record as WORKER_SHOW_SB_COMPACT or _VERBOSE says, without the columns before it, and
 * with a newline. Strings are escaped. */
void pevent_record_print(const struct pevent_record *r, uint64_t show, struct lines *l);
/* Prints TEXT; all bytes but printable ASCII as \xNN. */
void pevent_put_text(struct lines *l, const char *text);
