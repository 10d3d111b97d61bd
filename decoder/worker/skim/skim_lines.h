/*
 * Samples as lines: TIME CPU PID/TID PACKET ADDRESS SYMBOL IMAGE.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "decoder/worker/count/functions.h"
#include "decoder/worker/skim/skim_read.h"
#include "decoder/worker/skim/skim_whose.h"
#include "decoder/worker/view/lines.h"

struct skim_lines {
	struct lines *lines; /* borrowed */
	const struct replay *replay;
	struct functions functions;
	uint64_t show;
	/* The text of a time is made once. */
	uint64_t tsc;
	size_t time_size;
	char time[32];
};

/* SHOW: WORKER_SHOW_TIME, _PLACES. 0 or -ENOMEM. */
int skim_lines_init(struct skim_lines *l, const struct replay *r, uint64_t show,
		    struct lines *lines);
void skim_lines_done(struct skim_lines *l);
/* A sample of CPU, whose OWNER is. 0, -ENOMEM, or the sticky error of the lines. */
int skim_lines_write(struct skim_lines *l, size_t cpu, const struct skim_sample *s,
		     const struct skim_owner *owner);
