/*
 * What perf.data says of its host, at the file's end. Called by export_perfdata.c.
 */
#pragma once

#include "proto/bundle/manifest.h"
#include "proto/bytes.h"

#include "ctl/perfdata/export_layout.h"
#include "ctl/perfdata/export_records.h"

struct features {
	uint64_t bits; /* of the header */
	size_t n;
	struct perfdata_section sections[LAYOUT_MAX_FEATURES]; /* offsets within CONTENT */
	struct bytes_out content;
};

/* INDEX: where the AUXTRACE records of M's traces lie in the file, n_cpus of them. f->content.error
 * tells what went wrong. */
void features_compose(struct features *f, const struct manifest *m, const struct records *records,
		      const struct perfdata_section *index);
void features_done(struct features *f);
/* The table of sections and their content, for a place AT in the file. */
void features_table(const struct features *f, uint64_t at, struct bytes_out *out);
