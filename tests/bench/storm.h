/*
 * A night of a busy build host as perf records, in virtual time: processes fork, exec, map
 * libraries, start threads and exit; pids are reused; new files appear again and again; some
 * processes stay; sometimes records are lost. The same seed gives the same records.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "proto/perf/perfrecord.h"

#define STORM_CPUS     2u
#define STORM_DAEMONS  400u
#define STORM_PIDS     32768u
#define STORM_PLANNED  128u
#define STORM_MAX_SIZE 512u /* bytes of a record */

struct storm {
	uint64_t time, random, n_lives, n_records;
	uint32_t pid;	    /* the newest short-lived one */
	uint32_t n_daemons; /* daemons written so far */
	uint32_t daemons[STORM_DAEMONS];
	bool stays[STORM_PIDS]; /* by pid: the process is a daemon */
	struct perfrecord planned[STORM_PLANNED];
	char paths[STORM_PLANNED][64];
	unsigned n_planned, at;
};

void storm_init(struct storm *s, uint64_t seed);
/* Writes the next record to TO (STORM_MAX_SIZE bytes). Returns its size in bytes. */
uint16_t storm_next(struct storm *s, uint8_t *to);
