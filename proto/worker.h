/*
 * Have a ptsnap-decode, hand it a bundle, limit it, time it out, reap it. Used by the daemon's job
 * thread and by offline `ptsnapctl decode`. Blocking; needs no signal handling of the caller's
 * (pidfd). The worker is told everything by one message on fd 3 (SOCK_SEQPACKET): struct
 * worker_request plus the fds [bundle, output]; it answers with struct worker_message: progress,
 * questions for images that lie elsewhere (each answered by a struct worker_image and an fd) and
 * what it needed of them, any number of times, then one result. All are fixed-size and host-local.
 *
 * A worker is a program that is started here, or one that somebody else starts for each connection
 * to a socket, under a user and with limits of its own (ptsnap-decode.socket). Of that one only the
 * connection is known: with its result, or the connection's end, it is over; and it ends when the
 * connection is closed here, which is how it is stopped.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/decode_options.h"

#define WORKER_REQUEST_VERSION 7u

struct worker_request {
	uint32_t version; /* WORKER_REQUEST_VERSION */
	uint32_t reserved;
	uint64_t cpu_seconds; /* RLIMIT_CPU of the worker; 0: none */
	struct decode_options options;
};
_Static_assert(sizeof(struct worker_request) == 128, "has no padding");

enum worker_phase { WORKER_PHASE_DECODE = 1, WORKER_PHASE_SYMBOLIZE = 2, WORKER_PHASE_WRITE = 3 };

struct worker_message {
	uint32_t kind; /* WORKER_PROGRESS or WORKER_RESULT */
	uint32_t phase;
	uint32_t percent; /* 0..100 */
	int32_t error;	  /* of the result: 0 or -errno: -EBADMSG the bundle, -ENOSPC, -EIO the
			   * output, ... */
	uint64_t faults;  /* of the result: gaps found */
	uint32_t image;	  /* of WORKER_IMAGE, _KEEP and _DEBUG: index into the manifest's */
	uint32_t reserved;
	uint64_t offset, size;	/* of WORKER_KEEP: bytes of the file */
	uint32_t build_id_size; /* of WORKER_DEBUG: 1 to 20 */
	uint8_t build_id[20];
};
#define WORKER_PROGRESS 1u
#define WORKER_RESULT	2u
#define WORKER_IMAGE	3u /* asks for an image; nothing else is said before the answer */
#define WORKER_KEEP	4u /* these bytes of an image were needed */
/* Asks for the file apart that has the names and the DWARF of an image: answered like WORKER_IMAGE.
 * The build id is what the worker read in the image: a stranger's word. */
#define WORKER_DEBUG 5u
/* In one decode no worker asks that more often: those beyond are answered without asking. */
#define WORKER_MAX_DEBUG 65536u

/* The answer to WORKER_IMAGE and WORKER_DEBUG; error 0: with one fd, to be read with pread(2) only,
 * as the file may be a stranger's. */
struct worker_image {
	uint32_t image;
	int32_t error; /* 0 or -errno */
	uint64_t size; /* bytes of the file when it was first seen */
};

/* Positive conditions of worker_run. */
#define WORKER_CRASHED 1 /* died by a signal: ret->signal */
#define WORKER_TIMEOUT 2 /* killed after TIMEOUT_USEC */
#define WORKER_FAILED  3 /* said so (ret->error), or ended without a result (ret->error 0) */

struct worker_outcome {
	int signal;	 /* that killed it; 0 */
	int exit_status; /* when it exited; -1: it did not, or it was not ours */
	int error;	 /* -errno that it reported; 0 */
	/* It said what no worker says, or far more than any would, and was ended for that;
	 * WORKER_FAILED, error is then -EBADMSG. */
	bool lied;
	/* -errno: nobody listened at the socket, so that the program was started; 0. */
	int socket_error;
	uint64_t faults;
};

typedef void (*worker_progress_fn)(void *userdata, unsigned phase, unsigned percent);

struct worker_job {
	const char *program; /* path of ptsnap-decode */
	/* Where one is started for each connection; PROGRAM is then for when nobody listens there,
	 * or each connection of several, some seconds apart, was closed before anything was read
	 * from it (socket_error -EAGAIN). NULL: PROGRAM it is. */
	const char *socket;
	int bundle_fd; /* borrowed; readable */
	int output_fd; /* borrowed; writable, at its position */
	struct worker_request request;
	uint64_t timeout_usec;	     /* 0: none */
	worker_progress_fn progress; /* may be NULL */
	/* The worker asks for image number IMAGE, which may be any number: *ret_fd (borrowed until
	 * the next call) and *ret_size; 0 or -errno. NULL: there are none. */
	int (*image)(void *userdata, uint32_t image, int *ret_fd, uint64_t *ret_size);
	/* So for its file apart with names and DWARF, where request.options.debug says so; ID_SIZE
	 * 1 to 20, of a stranger's choice. -ENOENT: there is none. NULL: there are none. */
	int (*debug)(void *userdata, uint32_t image, const uint8_t *build_id, size_t id_size,
		     int *ret_fd, uint64_t *ret_size);
	/* These bytes of IMAGE were needed; all three may be any number. May be NULL. */
	void (*keep)(void *userdata, uint32_t image, uint64_t offset, uint64_t size);
	void *userdata;
	int cancel_fd; /* readable: end the worker and return -ECANCELED; -1: none */
};

/* 0, a positive condition above, or -errno: -ENOENT no such program, -EPERM somebody listens at the
 * socket who is neither root nor we. *ret is always set. */
int worker_run(const struct worker_job *job, struct worker_outcome *ret);
