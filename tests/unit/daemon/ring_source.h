/*
 * A source whose rings lie in ordinary memory and are filled by the test.
 */
#pragma once

#include "capture/ring/source.h"
#include "proto/perf/perfrecord.h"

#define RING_SOURCE_DATA 4096u
#define RING_SOURCE_AUX	 4096u

struct ring_source;

struct ring_source *ring_source_new(size_t n_cpus);
void ring_source_free(struct ring_source *s);
struct source *ring_source_base(struct ring_source *s);
/* Appends to the DATA ring of CPU, as the kernel does; never beyond what the reader has freed. */
void ring_source_put(struct ring_source *s, size_t cpu, const struct perfrecord *record);
void ring_source_put_bytes(struct ring_source *s, size_t cpu, const void *bytes, size_t size);
/* The rings of CPU go, as when it goes offline; they come again, empty. */
void ring_source_remove(struct ring_source *s, uint32_t cpu);
void ring_source_add(struct ring_source *s, uint32_t cpu);
/* Records of the usual kinds. */
struct perfrecord ring_source_switch(uint32_t pid, uint64_t time);
struct perfrecord ring_source_comm(uint32_t pid, const char *comm, uint64_t time);
