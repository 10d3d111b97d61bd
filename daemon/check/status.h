/*
 * The recorder's activity and costs, as the method Status tells them.
 */
#pragma once

#include <stdint.h>

#include <json-c/json.h>

#include "daemon/job/jobs.h"
#include "daemon/job/lease.h"
#include "daemon/record/command.h"
#include "daemon/record/intake.h"
#include "daemon/store/store.h"
#include "daemon/trigger/trigger.h"

/* The costs of the recorder itself. */
struct selfstat {
	uint64_t cpu_usec;	     /* of all threads, since the start */
	uint64_t rss_bytes;	     /* resident now; ENTRY_ABSENT: not known */
	uint64_t records_per_second; /* between the last two looks that were a second apart */
	uint64_t metrics_skipped;    /* files of metrics not written, as the last one still was */
	/* Time and number of records at the last look that set the rate. */
	uint64_t seen_usec, seen_records;
};

/* At the start: NOW_USEC is CLOCK_MONOTONIC. */
void selfstat_init(struct selfstat *s, uint64_t now_usec);
/* Looks at the process. RECORDS is how many records came so far. Looks less than a second apart
 * keep the rate. STATM is "/proc/self/statm", or a test's file. */
void selfstat_look(struct selfstat *s, uint64_t now_usec, uint64_t records, const char *statm);

/* All borrowed. */
struct status_from {
	const struct intake *intake;
	const struct store *store;
	const struct jobs *jobs;
	const struct trigger *trigger;
	const struct command *command;
	uint64_t started_usec;	   /* CLOCK_MONOTONIC */
	const struct lease *lease; /* NULL: nothing can be handed back */
	struct selfstat *self;	   /* NULL: not known */
};

/* Brings FROM's self up to date. */
void status_look(const struct status_from *from);

/* "tracing", "partial" (some CPUs that are there are not traced), "degraded" (none is), "yielded",
 * "ended" (COMMAND has, and all that it started). */
const char *status_state(const struct status_from *from);

/* The status that everybody with an account here may see: how the recorder is, and nothing of who
 * did what. The caller's; NULL: no memory. */
struct json_object *status_for_all(const struct status_from *from);

/* The whole status. The caller's; NULL: no memory. */
struct json_object *status_to_json(const struct status_from *from);
