/*
 * Tables by step. Used by tally_cache.c and steps_count.c in ptsnap-decode. Bounded, as nodes are.
 */
#include "decoder/worker/count/steps_table.h"

#include <string.h>
#include <sys/mman.h>

#include "proto/base.h"

#define FIRST_NODES ((size_t)1 << 12)

static size_t bytes_of(const struct steps_table *t, size_t n_nodes)
{
	return (n_nodes << NODE_STEP_BITS) * t->size;
}

int steps_table_reserve(struct steps_table *t, const struct nodes *nodes)
{
	size_t n = MAX_OF(nodes_count(nodes), nodes_count_places(nodes));
	size_t n_nodes = MAX_OF(t->n_nodes, FIRST_NODES);
	void *records;

	if (n <= t->n_nodes)
		return 0;
	while (n_nodes < n)
		n_nodes *= 2;
	if (t->n_nodes == 0)
		records = mmap(NULL, bytes_of(t, n_nodes), PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	else
		records = mremap(t->records, bytes_of(t, t->n_nodes), bytes_of(t, n_nodes),
				 MREMAP_MAYMOVE);
	if (records == MAP_FAILED)
		return -ENOMEM;
	/* They are read all over; where there are no large pages small ones do. */
	madvise(records, bytes_of(t, n_nodes), MADV_HUGEPAGE);
	t->records = records;
	t->n_nodes = n_nodes;
	return 0;
}

void steps_table_clear(struct steps_table *t)
{
	/* Most of it was never written. */
	if (t->n_nodes > 0 && madvise(t->records, bytes_of(t, t->n_nodes), MADV_DONTNEED) < 0)
		memset(t->records, 0, bytes_of(t, t->n_nodes));
}

void steps_table_done(struct steps_table *t)
{
	if (t->n_nodes > 0)
		munmap(t->records, bytes_of(t, t->n_nodes));
	t->records = NULL;
	t->n_nodes = 0;
}
