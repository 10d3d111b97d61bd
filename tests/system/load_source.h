/*
 * A source with this host's own sideband, one event for each CPU, and large AUX rings in ordinary
 * memory, so that snapshots are as heavy as with PT.
 */
#pragma once

#include "capture/ring/source.h"

struct load_source;

/* AUX_SIZE: of each CPU, a power of two. 0; -errno: perf events are not to be had. */
int load_source_new(uint64_t data_size, uint64_t aux_size, struct load_source **ret);
void load_source_free(struct load_source *s);
struct source *load_source_base(struct load_source *s);
