/*
 * Files of perf records of a foreign layout (--pevent:...), into the bundle: as they are, for the
 * views that show them, and translated, for the sideband.
 */
#pragma once

#include <stdbool.h>

#include "proto/bundle/bundle.h"
#include "proto/bundle/manifest.h"
#include "proto/bytes.h"

#include "ctl/decode/pevent_option.h"
#include "ctl/perfdata/import_images.h"

struct import_pevents {
	const struct pevent_options *options; /* borrowed */
	struct import_images images;	      /* of the files that the records map */
	int fds[MANIFEST_MAX_PEVENTS];
	bool switches;	/* the records say whose the trace is */
	uint64_t n_bad; /* records that do not parse, and what is behind them */
};

void import_pevents_init(struct import_pevents *i, const struct pevent_options *options);
void import_pevents_done(struct import_pevents *i);
/* The records, as the sideband has them, appended to OUT; a file that has no record within sight of
 * what a record is ends there. M gets its pevents and the records' clock. 0, or an exit code after
 * a message. */
int import_pevents_read(struct import_pevents *i, struct manifest *m, struct bytes_out *out);
/* The members: the files, and with IMAGES (the bundle has none yet) those that the records map. 0,
 * or an exit code after a message. */
int import_pevents_write(struct import_pevents *i, bool images, struct manifest *m,
			 struct bundle_writer *w);
