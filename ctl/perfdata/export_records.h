/*
 * The bundle's sideband as records of a perf.data file: checked, those that perf takes for
 * something else left out, with the ids of the file's two events. Called by export_perfdata.c.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "proto/bundle/manifest.h"

#include "ctl/perfdata/export_sink.h"

struct records {
	const uint8_t *bytes; /* borrowed */
	size_t size;
	uint32_t n_traces;
	uint32_t slot[MANIFEST_MAX_CPUS]; /* by CPU: which trace; MANIFEST_ANY: none */
	/* found by records_measure */
	uint64_t bytes_out; /* that records_write will write */
	uint64_t n, skipped;
	uint32_t n_cpus; /* one more than the highest that a record names */
};

/* Ids: one a trace and event, from 1 on, the PT event's first. */
uint64_t records_pt_id(const struct records *r, uint32_t trace);
uint64_t records_dummy_id(const struct records *r, uint32_t trace);

/* BYTES: the sideband. Walks it once. */
void records_measure(struct records *r, const struct manifest *m, const uint8_t *bytes,
		     size_t size);
/* Exactly r->bytes_out bytes. */
void records_write(const struct records *r, struct sink *to);
