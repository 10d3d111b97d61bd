/*
 * The kernel's records of a perf.data, translated into the layout of a bundle's sideband.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "proto/bytes.h"
#include "proto/perf/perfdata.h"

#include "ctl/perfdata/import_images.h"

struct import_records {
	const struct perfdata *data; /* borrowed */
	bool timeless;
	uint64_t n;		      /* translated */
	uint64_t bad;		      /* that do not parse */
	uint64_t last_ns;	      /* time of the latest; 0: timeless */
	struct bytes_out out;	      /* the sideband */
	struct import_images *images; /* borrowed: gets what is mapped executable */
	uint8_t *buffer;
};

/* TIMELESS: nothing ties the records' times to the trace: they count from 1 on, in the order of the
 * file. 0 or -ENOMEM. */
int import_records_init(struct import_records *r, const struct perfdata *data, bool timeless,
			struct import_images *images);
void import_records_done(struct import_records *r);
/* 0; -ENOMEM; -E2BIG: more than a bundle may hold. One that does not parse is counted. */
int import_records_add(struct import_records *r, const struct perfdata_record *record);
