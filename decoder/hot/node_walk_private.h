/*
 * What the hot loop (node_walk.c) does seldom, out of line (node_aside.c).
 */
#pragma once

#include "decoder/hot/node_walk.h"

#define NODE_STRIDE 3u /* decisions of an edge of a table */

/* Compiles the node that the walk stands at; w->edge then says its kind. 0, NODES_NONE, -ENOMEM. */
int node_walk_make(struct node_walk *w);
/* Makes *EDGE, that of the table of the condition that the walk stands at, by the decisions in
 * hand: as many of three as lead on, without a second call. Nothing is made where there are not
 * enough of them to know. 0 or -ENOMEM. */
int node_walk_edge(struct node_walk *w, uint64_t *edge);
/* Where TO is. 0; NODES_NONE: not for us; -ENOMEM. */
int node_walk_target(struct node_walk *w, uint64_t to, struct node_target *ret);
/* True: a packet was passed that says nothing of branches. */
bool node_walk_pass(struct node_walk *w);
