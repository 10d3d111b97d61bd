/*
 * The processes that were seen, with what /proc said of them while they lived. Bounded: when the
 * table is full, ended processes make room first; what finds none is counted.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "capture/source.h"

struct procs;

/* PROC is "/proc" (or a test's tree). SOURCE (borrowed, may be NULL) corrects the facts. */
int procs_new(const char *proc, uint32_t max, struct source *source, struct procs **ret);
void procs_free(struct procs *p);
void procs_freep(struct procs **p);
/* A process was seen. Nothing is allocated or read here. */
void procs_see(struct procs *p, uint32_t pid);
/* It was forked by PPID, has ended, at TIME (perf ns). Of different CPUs records come in any order:
 * an end may be told before its beginning. */
void procs_fork(struct procs *p, uint32_t pid, uint32_t ppid, uint64_t time);
void procs_exit(struct procs *p, uint32_t pid, uint64_t time);
/* It executes another program: its facts are read again. */
void procs_exec(struct procs *p, uint32_t pid);
/* Reads the facts of at most BUDGET processes that are new or have changed. */
void procs_refresh(struct procs *p, size_t budget);
/* FN's first non-zero result ends it and is returned. */
int procs_foreach(const struct procs *p, int (*fn)(void *userdata, const struct procinfo *info),
		  void *userdata);
/* Processes that live. */
uint64_t procs_alive(const struct procs *p);
/* Processes that found no room. */
uint64_t procs_dropped(const struct procs *p);
