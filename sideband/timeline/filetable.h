/*
 * The files that mappings name, each kept once. The daemon sweeps out those that no mapping uses
 * any more, the worker keeps all.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/perf/perfrecord.h"
#include "sideband/timeline/pool.h"
#include "sideband/timeline/space.h"

struct filetable {
	struct pool *pool;
	struct file_entry **buckets;
	size_t n_buckets;
	struct file_entry **list; /* by index */
	size_t n, capacity;
};

void filetable_init(struct filetable *t, struct pool *pool);
/* The file that the MMAP2 record R names; NULL: no memory. */
const struct space_file *filetable_intern(struct filetable *t, const struct perfrecord *r);
const struct space_file *filetable_at(const struct filetable *t, size_t index);
/* Mark what is in use, then sweep the rest; that gives new indexes. */
void filetable_mark(const struct space_file *file);
void filetable_sweep(struct filetable *t);
