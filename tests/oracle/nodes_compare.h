/*
 * One trace decoded in several ways, which all must give the same: step by step, which says what is
 * right, and over nodes. For nodes_diff and the fuzzer.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decoder/flow/flow.h"

/* How it is decoded. */
struct nodes_way {
	bool stepping, steps;
	uint32_t batch_items;
	size_t portion; /* of flow_expand; 0: large ones */
	bool own;	/* not over the nodes that others made */
	uint32_t threads;
	uint32_t thread_bytes; /* 0: as flow.h has it */
	bool settle;	       /* between two batches the other threads go as far as they can */
};

struct nodes_compare {
	struct flow_config config;
	/* Before each decoding; may be NULL. */
	void (*reset)(void *userdata, struct flow *f);
	struct flow *share; /* for ways that are not `own`; may be NULL */
};

/* What decoding gives; see nodes_compare.c. */
struct nodes_stream;
struct nodes_stream *nodes_stream_new(void);
void nodes_stream_free(struct nodes_stream *s);
void nodes_decode(const struct nodes_compare *c, const struct nodes_way *way,
		  struct nodes_stream *ret);
/* False: they differ; WHY says where first. */
bool nodes_equal(const struct nodes_stream *a, const struct nodes_stream *b, char *why,
		 size_t size);
size_t nodes_stream_items(const struct nodes_stream *s);
/* Steps that other threads made. */
uint64_t nodes_stream_ahead(const struct nodes_stream *s);
