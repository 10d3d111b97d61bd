/*
 * Memory for what is known of steps, by step: zero at first; pages that are never touched cost
 * nothing.
 */
#pragma once

#include <stddef.h>

#include "decoder/hot/nodes.h"

struct steps_table {
	void *records;	/* of all nodes below N_NODES, and of the steps that name a place */
	size_t n_nodes; /* 0: there are none */
	size_t size;	/* of a record */
};

/* Makes room for all steps of NODES, which may move the records. 0 or -ENOMEM. */
int steps_table_reserve(struct steps_table *t, const struct nodes *nodes);
/* All are zero again. */
void steps_table_clear(struct steps_table *t);
void steps_table_done(struct steps_table *t);
