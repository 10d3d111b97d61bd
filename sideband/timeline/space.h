/*
 * One address space: executable mappings with a begin and an end in time. Fork copies, exec clears
 * (a new space begins), a later mmap wins over what it overlaps; munmap makes no record
 * (kernel/events/core.c perf_event_mmap is called for new mappings only).
 *
 * With history, ended mappings stay, so that (time, address) can be asked; without, they go, and
 * what is left is the present.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/perf/perfrecord.h"

#define SPACE_NOW UINT64_MAX

/* A mapped file, as records name it: kept once in the timeline. */
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
	uint64_t begin, end;  /* perf clock; end SPACE_NOW: still there */
	const struct space_file *file;
	uint32_t prot, flags;
};

struct space;

struct space *space_new(bool history);
/* A copy of what SPACE maps at TIME, each mapping beginning then. NULL: no memory. */
struct space *space_fork(const struct space *space, uint64_t time);
void space_free(struct space *space);
/* 0, -ENOMEM, -E2BIG (more mappings than a process can have). Overlapped parts of earlier mappings
 * end at TIME; what sticks out stays. No change: a mapping of the same bytes at the same place, one
 * of no size, and one older than what it overlaps (with history: than the last change). */
int space_map(struct space *space, uint64_t time, uint64_t start, uint64_t size, uint64_t pgoff,
	      uint32_t prot, uint32_t flags, const struct space_file *file);
/* The mapping of ADDRESS at TIME, NULL: none. */
const struct space_mapping *space_find(const struct space *space, uint64_t time, uint64_t address);
/* The number of changes (space_map) up to and including TIME: equal numbers mean equal mappings.
 * Without history: up to now. */
uint64_t space_generation(const struct space *space, uint64_t time);
/* The mappings alive at TIME in order of address; FN's first non-zero result ends it. */
int space_foreach(const struct space *space, uint64_t time,
		  int (*fn)(void *userdata, const struct space_mapping *m), void *userdata);
/* Whether anything is mapped at TIME: at once, however many mappings there are. */
bool space_is_mapped(const struct space *space, uint64_t time);
/* Ids are unique within a program's run. */
uint64_t space_id(const struct space *space);
/* Whose it is: 0 until it is said. A fork's copy is nobody's again. */
void space_set_pid(struct space *space, uint32_t pid);
uint32_t space_pid(const struct space *space);
