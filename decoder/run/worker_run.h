/*
 * Runs ptsnap-decode: starts or connects to one, hands it a bundle, answers its questions, limits
 * it, and reaps it.
 *
 * ptsnapd's job threads and ptsnapctl use this room; no decoder is linked in. worker_run.c conducts
 * one decode from start to outcome, and worker_start.c gets a decoder ("worker"): a program that we
 * start, or a connection to a service. The messages on the channel are in proto/worker.h.
 *
 * worker_run() blocks, and needs no signal handling of its caller: the end of a child comes through
 * a pidfd. A struct worker_job and everything in it are borrowed for the time of the call.
 *
 * Decisions that govern the room:
 * - A worker has one socket and three standard descriptors. It gets descriptors and never names,
 * and no environment: nothing in it has a meaning for a decode.
 * - What a program that we start writes to standard error goes into a pipe of ours. The beginning
 * is kept for the caller, who decides where it goes and makes it safe; the rest is counted.
 * - A worker that belongs to a service (ptsnap-decode.socket: systemd starts one for each
 * connection, as another user, with limits of its own) is known by its connection alone. The
 * connection's end is the worker's end: closing our side stops the worker.
 * - Whoever made the service's socket listen must be root or ourselves, by SO_PEERCRED. If nobody
 *   listens, the program is started instead, and the outcome says so.
 * - Nothing that a worker sends is believed. A message of another size, an unknown kind, a value
 * out of bounds, a second result, or more messages than any decode has end the worker
 *   (worker_outcome.lied).
 * - A worker's death is an outcome of this one decode, never an error of the caller.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "proto/worker.h"

/* Positive results of worker_run(). */
#define WORKER_CRASHED 1 /* died by a signal: ret->signal */
#define WORKER_TIMEOUT 2 /* killed after TIMEOUT_USEC */
#define WORKER_FAILED  3 /* reported an error (ret->error), or ended without a result (0) */

/* The worker's standard error, byte by byte: a stranger may have made the worker write it. */
#define WORKER_MAX_SAID 4096u
struct worker_said {
	char bytes[WORKER_MAX_SAID]; /* the first N */
	size_t n;
	uint64_t dropped; /* bytes behind them */
};

struct worker_outcome {
	int signal;	 /* that killed the worker, or 0 */
	int exit_status; /* -1: did not exit, or is of a service */
	int error;	 /* -errno that the worker reported, or 0 */
	/* The worker sent an invalid message, or far too many messages, and was ended.
	 * WORKER_FAILED; error is -EBADMSG. */
	bool lied;
	/* -errno: the service was not there, and PROGRAM was started instead; or 0. */
	int socket_error;
	uint64_t faults;	 /* gaps that the worker reported */
	struct worker_said said; /* of a program that was started; of a service: nothing */
};

typedef void (*worker_progress_fn)(void *userdata, unsigned phase, unsigned percent);

struct worker_job {
	const char *program; /* path of ptsnap-decode */
	/* The service's socket, or NULL. PROGRAM is started if nobody listens at the socket, or if
	 * each connection of several, some seconds apart, was closed before anything was read from
	 * it (socket_error -EAGAIN). */
	const char *socket;
	int bundle_fd; /* readable */
	int output_fd; /* writable, at its position */
	struct worker_request request;
	uint64_t timeout_usec;	     /* 0: none */
	worker_progress_fn progress; /* may be NULL */
	/* The worker asks for image IMAGE, which may be any number. *ret_fd is borrowed until the
	 * next call. 0 or -errno. NULL: there are no images. */
	int (*image)(void *userdata, uint32_t image, int *ret_fd, uint64_t *ret_size);
	/* The worker asks for the separate file with symbols and DWARF of IMAGE (only with
	 * request.options.debug). BUILD_ID of 1 to 20 bytes may be any. -ENOENT: no such file.
	 * NULL: there are none. */
	int (*debug)(void *userdata, uint32_t image, const uint8_t *build_id, size_t id_size,
		     int *ret_fd, uint64_t *ret_size);
	/* The worker needed these bytes of IMAGE; all three may be any number. May be NULL. */
	void (*keep)(void *userdata, uint32_t image, uint64_t offset, uint64_t size);
	void *userdata;
	int cancel_fd; /* when readable, the worker is ended: -ECANCELED; -1: none */
};

/* Runs one decode. 0, a positive result above, or -errno: -ENOENT no such program; -EPERM the
 * socket's listener is neither root nor ourselves. *ret is always set. */
int worker_run(const struct worker_job *job, struct worker_outcome *ret);

/* Copies the line of SAID that begins at *AT into LINE, as a string: a NUL becomes '?', and what is
 * longer than the LINE of SIZE bytes is a line of its own. Moves *AT to the next line; empty lines
 * are left out. False: there is none. */
bool worker_said_line(const struct worker_said *said, size_t *at, char *line, size_t size);

/* --- For worker_run.c only (worker_start.c) --- */

/* Starts PROGRAM with CHANNEL as its fd 3 and SAID as its standard error (both borrowed, and
 * neither is one of fds 0 to 2). The caller reaps *ret_pid and closes *ret_pidfd. 0 or -errno. */
int worker_spawn(const char *program, int channel, int said, pid_t *ret_pid, int *ret_pidfd);

/* Connects to the service at PATH; *ret_channel is the caller's. 0; -EPERM: the listener is neither
 * root nor ourselves; -ENOENT, -ECONNREFUSED, -EACCES: nobody listens for us; -EAGAIN: the queue of
 * the socket is full; -ENAMETOOLONG. */
int worker_connect(const char *path, int *ret_channel);
