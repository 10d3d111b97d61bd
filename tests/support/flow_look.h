/*
 * Questions that only tests ask a flow. Reads decoder/flow's private state.
 */
#pragma once

#include "decoder/flow/flow_private.h"
#include "decoder/hot/nodes.h"

/* Waits until the threads that walk ahead are idle. Returns how many of their steps the flow has
 * used so far. */
static inline uint64_t flow_look_settle(struct flow *f)
{
	if (f->ahead.trace)
		ahead_settle(f->ahead.trace);
	return f->ahead.steps;
}

/* Counts walk WALK of BATCH (the newest batch) in the statistics of F, step by step: the plain form
 * of what tally_cache.c of ptsnap-decode does with a table. */
static inline void flow_look_count(struct flow *f, const struct flow_batch *batch, uint32_t walk)
{
	const struct flow_walk *w = &batch->walks[walk];
	const struct nodes *nodes = flow_nodes(f);
	uint64_t insns = 0, branches = 0;

	for (uint32_t i = 0; i < w->n; i++) {
		uint32_t step = batch->steps[w->first + i], node = node_of_step(step), n;

		if ((step & 15u) == NODE_STEP_PLACE)
			continue;
		n = node_decisions(step);
		for (uint32_t at = 0;; at++) {
			const struct node_info *info = nodes_info(nodes, node);
			bool taken = at < n && (step >> (n - 1 - at) & 1) != 0;

			insns += info->insns;
			branches += info->n_direct;
			if (info->kind == NODE_GO)
				break;
			branches += info->kind != NODE_COND || taken;
			if (at + 1 >= n)
				break;
			node = nodes_next(nodes, node, taken);
		}
	}
	flow_counted(f, insns + w->run_insns - w->insns_to, branches);
}
