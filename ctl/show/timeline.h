/*
 * The timeline of `ptsnapctl timeline': timeline.c collects the events of a report in the order of
 * time and prints one a line; timeline_picture.c draws who had which CPU when.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <json-c/json.h>

#include "ctl/show/show.h"

enum timeline_kind {
	TIMELINE_RUN, /* a thread has a CPU */
	TIMELINE_GAP,
	TIMELINE_FREQUENCY,
	TIMELINE_PTWRITE,
	TIMELINE_POWER,
	TIMELINE_INTERRUPT,
	TIMELINE_ABORT,
	TIMELINE_TRIGGER,
	TIMELINE_KINDS_N
};

#define TIMELINE_NO_CPU UINT64_MAX

struct timeline_event {
	int64_t at, until; /* ns since the trigger; UNTIL: at its end, or AT */
	uint64_t cpu;
	size_t order; /* in the report */
	enum timeline_kind kind;
	struct json_object *row; /* borrowed from the report */
};

struct timeline_events {
	struct timeline_event *list; /* owned */
	size_t n, capacity;
	int64_t first, last;	/* of the window, or of what is selected of it */
	uint64_t timeless;	/* events without a time */
	uint64_t unowned;	/* events left out because their thread or CPU is not known */
	uint64_t kept, missing; /* events of the whole trace that the report has, and has not */
};

/* The selected events of REPORT in the order of time; without the limit of SELECT. 0; -EINVAL: the
 * selected time is empty; -ENOMEM. RET is to be freed with timeline_done() in any case. */
int timeline_collect(struct json_object *report, const struct show_select *select,
		     struct timeline_events *ret);
void timeline_done(struct timeline_events *e);
/* Draws the turns and gaps of E, a row for each CPU. 0 or -ENOMEM. */
int timeline_draw(FILE *out, const struct timeline_events *e, const struct show_style *style);
