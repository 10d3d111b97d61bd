/*
 * Start ptsnap-decode, hand it a bundle, limit it, time it out, reap it. Used by the daemon's job
 * thread and by offline `ptsnapctl decode`. Blocking; needs no signal handling of the caller's
 * (pidfd). The worker is told everything by one message on fd 3 (SOCK_SEQPACKET): struct
 * worker_request plus the fds [bundle, output]; it answers with struct worker_message: progress,
 * any number of times, then one result. Both are fixed-size and host-local.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define WORKER_REQUEST_VERSION 1u

enum worker_view {
	WORKER_VIEW_REPORT = 0,	  /* JSON, docs/ptsnap-report-1.schema.json */
	WORKER_VIEW_SUMMARY = 1,  /* one flat JSON object */
	WORKER_VIEW_PACKETS = 2,  /* a line a packet */
	WORKER_VIEW_BRANCHES = 3, /* FROM TO, a line a taken branch */
	WORKER_VIEW_INSNS = 4,	  /* an address a line */
};

struct worker_request {
	uint32_t version; /* WORKER_REQUEST_VERSION */
	uint32_t view;
	uint32_t hash;	       /* summary: add ipHash */
	uint32_t pretty;       /* JSON: indent */
	uint64_t report_limit; /* bytes of a report; what was cut is said in it */
	uint64_t memory_limit; /* RLIMIT_AS beyond the bundle's size; 0: none */
	uint64_t cpu_seconds;  /* RLIMIT_CPU; 0: none */
};

enum worker_phase { WORKER_PHASE_DECODE = 1, WORKER_PHASE_SYMBOLIZE = 2, WORKER_PHASE_WRITE = 3 };

struct worker_message {
	uint32_t kind; /* WORKER_PROGRESS or WORKER_RESULT */
	uint32_t phase;
	uint32_t percent; /* 0..100 */
	int32_t error;	  /* of the result: 0 or -errno: -EBADMSG the bundle, -ENOSPC, -EIO the
			   * output, ... */
	uint64_t faults;  /* of the result: gaps found */
};
#define WORKER_PROGRESS 1u
#define WORKER_RESULT	2u

/* Positive conditions of worker_run. */
#define WORKER_CRASHED 1 /* died by a signal: ret->signal */
#define WORKER_TIMEOUT 2 /* killed after TIMEOUT_USEC */
#define WORKER_FAILED  3 /* said so (ret->error), or ended without a result (ret->error 0) */

struct worker_outcome {
	int signal;	 /* that killed it; 0 */
	int exit_status; /* when it exited; -1 */
	int error;	 /* -errno that it reported; 0 */
	uint64_t faults;
};

typedef void (*worker_progress_fn)(void *userdata, unsigned phase, unsigned percent);

struct worker_job {
	const char *program; /* path of ptsnap-decode */
	int bundle_fd;	     /* borrowed; readable */
	int output_fd;	     /* borrowed; writable, at its position */
	struct worker_request request;
	uint64_t timeout_usec;	     /* 0: none */
	worker_progress_fn progress; /* may be NULL */
	void *userdata;
	int cancel_fd; /* readable: kill the worker and return -ECANCELED; -1: none */
};

/* 0, a positive condition above, or -errno (-ENOENT: no such program). *ret is always set. */
int worker_run(const struct worker_job *job, struct worker_outcome *ret);
