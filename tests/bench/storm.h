/*
 * A night of a busy build host as perf records, in virtual time: processes are forked, execute,
 * map libraries, start threads and end; pids are used again; files are new again and again; some
 * processes stay; now and then records are lost. The same seed gives the same records.
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
	uint32_t n_daemons; /* that were told */
	uint32_t daemons[STORM_DAEMONS];
	bool stays[STORM_PIDS]; /* by pid: it is one of them */
	struct perfrecord planned[STORM_PLANNED];
	char paths[STORM_PLANNED][64];
	unsigned n_planned, at;
};

void storm_init(struct storm *s, uint64_t seed);
/* The next record, in bytes; its size. TO: STORM_MAX_SIZE bytes. */
uint16_t storm_next(struct storm *s, uint8_t *to);
