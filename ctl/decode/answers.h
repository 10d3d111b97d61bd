/*
 * Answers the questions of ptsnap-decode without a recorder: images that a bundle lacks, and files
 * with symbols and DWARF (--symbols, --debuginfod).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decoder/run/debug_files.h"
#include "decoder/run/worker_run.h"

#include "ctl/decode/decode_option.h"

struct bundle;

/* --- Files from the servers of $DEBUGINFOD_URLS, which the program debuginfod-find(1) fetches and
 * caches --- */

/* Limit of different build ids in one decode: a decoder that was taken over could send 20 bytes to
 * the servers with each. */
#define DEBUGINFOD_MAX_ASKED 1024u

struct debuginfod_answer {
	uint8_t id[20];
	uint8_t id_size;
	char *path; /* owned; NULL: no server has the file */
};

struct debuginfod {
	struct debuginfod_answer *answers;
	size_t n;
	int error; /* -errno: debuginfod-find could not be started; or 0 */
};

void debuginfod_init(struct debuginfod *d);
void debuginfod_done(struct debuginfod *d);
/* Returns the path of the file for a build id of 1 to 20 bytes, borrowed, or NULL. Waits for the
 * servers. */
const char *debuginfod_find(struct debuginfod *d, const uint8_t *id, size_t id_size);

/* --- All answers for one decode --- */

struct answers {
	uint64_t absent; /* images that were asked for */
	struct debug_files files;
	bool asked_for_files; /* the user named directories */
	bool by_net;
	struct debuginfod servers;
	int bundle_fd; /* borrowed */
	bool opened;
	struct bundle *bundle; /* its manifest has the programs' paths; NULL: unopened or damaged */
};

/* BUNDLE_FD is borrowed. 0, or an exit code after a message. */
int answers_init(struct answers *a, const struct decode_request *q, int bundle_fd);
void answers_done(struct answers *a);
/* Lets A answer JOB's questions. A must not move until the job is done. */
void answers_use(struct answers *a, struct worker_job *job);
/* Prints what could not be found and would have been of use. NAME is what was decoded. */
void answers_remark(const struct answers *a, const char *name);
