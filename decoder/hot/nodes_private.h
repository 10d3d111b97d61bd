/*
 * Inside of the store of nodes, shared by the files that are it: nodes.c (contents, places, the
 * hash table), node_make.c (compiling).
 */
#pragma once

#include "decoder/hot/nodes.h"

/* Content, as large as its mapping: by where it is read, whatever is read of it so far. */
struct node_code {
	uintptr_t begin;
	uint64_t size;
	bool changing, ends;
};

#define NODE_CHUNK_BYTES ((size_t)256 << 10)

/* Memory of infos. */
struct node_chunk {
	struct node_chunk *next;
	size_t used;
	_Alignas(16) uint8_t bytes[NODE_CHUNK_BYTES];
};

/* Of the hash table; the offset stands in it, as nodes lie anywhere. */
struct node_slot {
	uint32_t number, offset; /* number 0: free */
};

struct nodes_inside {
	struct graph *graph;
	struct node_code *codes;
	uint32_t n_codes;
	uint32_t *code_slots;	 /* number + 1 */
	struct node_slot *slots; /* of nodes */
	size_t n_slots;		 /* power of two */
	uint32_t *by_address;	 /* places sorted by context and address */
	struct node_chunk *chunks;
	size_t info_bytes, max_info_bytes;
	uint32_t writable; /* nodes that there is memory for */
	bool full;
};

/* The node there, which may be a new one. 0, NODES_NONE, -ENOMEM. */
int nodes_get(struct nodes *n, uint32_t code, uint32_t offset, uint8_t mode, uint32_t *ret);
