/*
 * Decodes one trace in several ways, which must all give the same results. Stepping is the
 * reference; the other ways use nodes. For nodes_diff and the fuzzer.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decoder/flow/flow.h"

/* One way of decoding. */
struct nodes_way {
	bool stepping, steps;
	uint32_t batch_items;
	size_t portion; /* for flow_expand; 0: large portions */
	bool own;	/* has nodes of its own; false: uses shared nodes */
	uint32_t threads;
	uint32_t thread_bytes; /* 0: the default of flow.h */
	bool settle; /* between two batches, wait until the other threads can go no further */
};

struct nodes_compare {
	struct flow_config config;
	/* called before each decoding; may be NULL */
	void (*reset)(void *userdata, struct flow *f);
	struct flow *share; /* for ways that are not `own`; may be NULL */
};

/* The results of one decoding; see nodes_compare.c. */
struct nodes_stream;
struct nodes_stream *nodes_stream_new(void);
void nodes_stream_free(struct nodes_stream *s);
void nodes_decode(const struct nodes_compare *c, const struct nodes_way *way,
		  struct nodes_stream *ret);
/* False: the results differ; WHY describes the first difference. */
bool nodes_equal(const struct nodes_stream *a, const struct nodes_stream *b, char *why,
		 size_t size);
/* The same, but counts may differ. */
bool nodes_equal_items(const struct nodes_stream *a, const struct nodes_stream *b, char *why,
		       size_t size);
size_t nodes_stream_gaps(const struct nodes_stream *s);
const struct flow_stats *nodes_stream_stats(const struct nodes_stream *s);
size_t nodes_stream_items(const struct nodes_stream *s);
/* Number of steps that other threads made. */
uint64_t nodes_stream_ahead(const struct nodes_stream *s);
