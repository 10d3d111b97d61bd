/*
 * What a worker asks while it decodes, answered offline: images of a bundle that has them not, and
 * files with names and DWARF (--symbols, --debuginfod). Used by cmd_decode.c.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "proto/worker.h"

#include "ctl/decode/debug_files.h"
#include "ctl/decode/debuginfod.h"
#include "ctl/decode/decode_option.h"

struct bundle;

struct answers {
	uint64_t absent; /* images */
	struct debug_files files;
	bool by_net;
	struct debuginfod servers;
	int bundle_fd; /* borrowed */
	bool opened;
	struct bundle *bundle; /* whose manifest has the paths; NULL: not opened, or damaged */
};

/* BUNDLE_FD is borrowed. 0, or an exit code after a message. */
int answers_init(struct answers *a, const struct decode_request *q, int bundle_fd);
void answers_done(struct answers *a);
/* JOB asks A, which stays where it is until the job is done. */
void answers_use(struct answers *a, struct worker_job *job);
/* What was not to be had and would have been of use, to people; NAME is what was decoded. */
void answers_remark(const struct answers *a, const char *name);
