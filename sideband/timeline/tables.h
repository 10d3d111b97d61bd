/*
 * The two hash tables of a timeline: processes and threads by their number (idmap), and mapped
 * files by their identity (filetable). Both take their memory from a pool.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/perf/perfrecord.h"
#include "sideband/timeline/pool.h"
#include "sideband/timeline/space.h"

/* --- By pid or tid --- */

/* Embedded as the first member of whatever an idmap finds. */
struct idnode {
	struct idnode *next;
	uint32_t id;
};

/* A zeroed struct is an empty map. */
struct idmap {
	struct idnode **buckets;
	unsigned bits; /* log2 of the number of buckets */
	size_t n;
};

struct idnode *idmap_find(const struct idmap *map, uint32_t id);
/* Adds NODE, whose id must not be in the map yet. False: no memory. */
bool idmap_add(struct idmap *map, struct pool *pool, struct idnode *node);
/* Removes NODE, which must be in the map. */
void idmap_remove(struct idmap *map, struct idnode *node);

/* --- Files --- */

/* The files that mappings name, each once. The recorder sweeps out the files that no mapping uses
 * any more; the decoder keeps all. */
struct filetable {
	struct pool *pool; /* borrowed */
	struct file_entry **buckets;
	size_t n_buckets;
	struct file_entry **list; /* by index */
	size_t n, capacity;
};

void filetable_init(struct filetable *t, struct pool *pool);
/* Finds or adds the file that the MMAP2 record R names; the table keeps a copy of the path. NULL:
 * no memory. */
const struct space_file *filetable_intern(struct filetable *t, const struct perfrecord *r);
/* NULL: no such index. */
const struct space_file *filetable_at(const struct filetable *t, size_t index);
/* Mark every file in use, then sweep: files without a mark are freed, the others get new indexes
 * and lose the mark. */
void filetable_mark(const struct space_file *file);
void filetable_sweep(struct filetable *t);
