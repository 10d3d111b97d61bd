/*
 * The messages between ptsnap-decode ("worker") and the program that runs it (decoder/run).
 *
 * The channel is a SOCK_SEQPACKET socket (proto/channel.h), the worker's fd 3. One struct
 * worker_request with the fds [bundle, output] tells the worker everything. The worker answers with
 * any number of struct worker_message: progress, questions for images and for files with symbols
 * (each answered by a struct worker_image with one fd), and the bytes of images that it needed; and
 * then with one result. All messages have a fixed size and no padding, and are valid on one host
 * between programs of one version.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/decode_options.h"

#define WORKER_REQUEST_VERSION 10u

struct worker_request {
	uint32_t version; /* WORKER_REQUEST_VERSION */
	uint32_t reserved;
	uint64_t cpu_seconds; /* RLIMIT_CPU of the worker; 0: no limit */
	struct decode_options options;
};
_Static_assert(sizeof(struct worker_request) == 240, "has no padding");

enum worker_phase { WORKER_PHASE_DECODE = 1, WORKER_PHASE_SYMBOLIZE = 2, WORKER_PHASE_WRITE = 3 };

struct worker_message {
	uint32_t kind;	  /* WORKER_PROGRESS to WORKER_DEBUG */
	uint32_t phase;	  /* of WORKER_PROGRESS: enum worker_phase */
	uint32_t percent; /* of WORKER_PROGRESS: 0 to 100 */
	int32_t error;	  /* of WORKER_RESULT: 0 or -errno (-EBADMSG: the bundle is invalid;
			   * -ENOSPC, -EIO: of the output; ...) */
	uint64_t faults;  /* of WORKER_RESULT: gaps found */
	uint32_t image;	  /* of WORKER_IMAGE, _KEEP and _DEBUG: index into the manifest's images */
	uint32_t reserved;
	uint64_t offset, size;	/* of WORKER_KEEP: bytes of the file */
	uint32_t build_id_size; /* of WORKER_DEBUG: 1 to 20 */
	uint8_t build_id[20];
};
#define WORKER_PROGRESS 1u
#define WORKER_RESULT	2u
#define WORKER_IMAGE	3u /* asks for an image; the worker sends nothing before the answer */
#define WORKER_KEEP	4u /* these bytes of an image were needed */
/* Asks for the separate file with the symbols and DWARF of an image; answered like WORKER_IMAGE.
 * The worker read the build id in the image, which may come from a stranger. */
#define WORKER_DEBUG 5u
/* Limit of these questions in one decode. The worker treats further files as missing. */
#define WORKER_MAX_DEBUG 65536u

/* The answer to WORKER_IMAGE and WORKER_DEBUG. With error 0 the message has one fd, to be read with
 * pread(2) only: the file may belong to a stranger. */
struct worker_image {
	uint32_t image;
	int32_t error; /* 0 or -errno */
	uint64_t size; /* bytes of the file when it was first seen */
};
