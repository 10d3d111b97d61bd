/*
 * One address space: executable mappings, each with a begin and an end in time.
 *
 * A fork copies the parent's space, an exec begins an empty one, and a later mapping replaces what
 * it overlaps. munmap(2) leaves no record (kernel/events/core.c calls perf_event_mmap() for new
 * mappings only), so an unmapped range stays until another mapping covers it.
 *
 * A space with history keeps ended mappings and answers for any time. A space without history keeps
 * only the present mappings.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/perf/perfrecord.h"

#define SPACE_NOW UINT64_MAX

/* A mapped file as MMAP2 records name it. The timeline has one of each. */
struct space_file {
	uint32_t index; /* dense, from 0 */
	uint32_t maj, min;
	uint64_t ino, ino_generation;
	uint8_t build_id_size;
	uint8_t build_id[20];
	const char *path;
};

struct space_mapping {
	uint64_t start, size; /* bytes */
	uint64_t pgoff;	      /* file offset of start, bytes */
	uint64_t begin, end;  /* perf clock, ns; end SPACE_NOW: still mapped */
	const struct space_file *file;
	uint32_t prot; /* with PROT_WRITE if the process may have written to it since it was mapped
			  (of a file or vDSO: also between two records of the same bytes) */
	uint32_t flags;
};

struct space;

/* An empty space. NULL: no memory. */
struct space *space_new(bool history);
/* Copies what SPACE maps at TIME; every mapping of the copy begins at TIME. NULL: no memory. */
struct space *space_fork(const struct space *space, uint64_t time);
void space_free(struct space *space);
/*
 * Maps SIZE bytes at START, from PGOFF of FILE, at TIME. Overlapped parts of earlier mappings end
 * at TIME; the other parts stay. FILE is borrowed and must outlive the space. Nothing changes if
 * the same bytes are mapped there already (and PROT has no new PROT_WRITE), if SIZE is 0, or if the
 * mapping is older than a mapping that it overlaps (with history: than the last change). 0,
 * -ENOMEM, or -E2BIG: more mappings than a process can have.
 */
int space_map(struct space *space, uint64_t time, uint64_t start, uint64_t size, uint64_t pgoff,
	      uint32_t prot, uint32_t flags, const struct space_file *file);
/* True: all of the SIZE bytes at START show the bytes of FILE from PGOFF on, now. */
bool space_shows(const struct space *space, uint64_t start, uint64_t size, uint64_t pgoff,
		 const struct space_file *file);
/* The mapping at ADDRESS at TIME; NULL: none. */
const struct space_mapping *space_find(const struct space *space, uint64_t time, uint64_t address);
/* The number of changes by space_map() up to and including TIME (without history: up to now). Equal
 * numbers mean equal mappings. */
uint64_t space_generation(const struct space *space, uint64_t time);
/* Calls FN for each mapping at TIME, in order of address. A result of FN other than 0 ends the loop
 * and is returned. */
int space_foreach(const struct space *space, uint64_t time,
		  int (*fn)(void *userdata, const struct space_mapping *m), void *userdata);
/* True: something is mapped at TIME. Takes constant time. */
bool space_is_mapped(const struct space *space, uint64_t time);
/* The space's id, unique among all spaces that the program ever makes. */
uint64_t space_id(const struct space *space);
/* The process that has the space; 0 until it is set. A copy begins with 0. */
void space_set_pid(struct space *space, uint32_t pid);
uint32_t space_pid(const struct space *space);
