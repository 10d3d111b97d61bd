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

#define WORKER_REQUEST_VERSION 6u

enum worker_view {
	WORKER_VIEW_REPORT = 0,	  /* JSON, docs/ptsnap-report-1.schema.json */
	WORKER_VIEW_SUMMARY = 1,  /* one flat JSON object */
	WORKER_VIEW_PACKETS = 2,  /* a line a packet */
	WORKER_VIEW_BRANCHES = 3, /* FROM TO, a line a taken branch */
	WORKER_VIEW_INSNS = 4,	  /* an address a line */
	WORKER_VIEW_EVENTS = 5,	  /* a line an event: what is neither a branch nor an instruction */
};

/* How the views that are lines look: worker_request.show. Those of ptdump and ptxed have the names
 * that libipt's tools give them (man ptdump, man ptxed). */
#define WORKER_SHOW_NO_PAD	    (UINT64_C(1) << 0) /* ptdump, from here */
#define WORKER_SHOW_NO_TIMING	    (UINT64_C(1) << 1)
#define WORKER_SHOW_NO_CYC	    (UINT64_C(1) << 2)
#define WORKER_SHOW_NO_OFFSET	    (UINT64_C(1) << 3)
#define WORKER_SHOW_NO_SYNC	    (UINT64_C(1) << 4) /* from the first byte, not the first PSB */
#define WORKER_SHOW_RAW		    (UINT64_C(1) << 5)
#define WORKER_SHOW_LASTIP	    (UINT64_C(1) << 6)
#define WORKER_SHOW_EXEC_MODE	    (UINT64_C(1) << 7)
#define WORKER_SHOW_TIME	    (UINT64_C(1) << 8)
#define WORKER_SHOW_TIME_DELTA	    (UINT64_C(1) << 9)
#define WORKER_SHOW_TCAL	    (UINT64_C(1) << 10)
#define WORKER_SHOW_NO_TCAL	    (UINT64_C(1) << 11)
#define WORKER_SHOW_NO_WALL_CLOCK   (UINT64_C(1) << 12)
#define WORKER_SHOW_KEEP_TCAL	    (UINT64_C(1) << 13) /* --keep-tcal-on-ovf, ptxed's too */
#define WORKER_SHOW_SB_COMPACT	    (UINT64_C(1) << 16) /* --sb:..., of ptdump and ptxed */
#define WORKER_SHOW_SB_VERBOSE	    (UINT64_C(1) << 17)
#define WORKER_SHOW_SB_FILENAME	    (UINT64_C(1) << 18)
#define WORKER_SHOW_SB_OFFSET	    (UINT64_C(1) << 19)
#define WORKER_SHOW_SB_TIME	    (UINT64_C(1) << 20)
#define WORKER_SHOW_SB_SWITCH	    (UINT64_C(1) << 21)
#define WORKER_SHOW_SB_WARN	    (UINT64_C(1) << 22)
#define WORKER_SHOW_PTXED	    (UINT64_C(1) << 32) /* --view=insns --ptxed, from here */
#define WORKER_SHOW_EVENT_TIME	    (UINT64_C(1) << 33)
#define WORKER_SHOW_EVENT_IP	    (UINT64_C(1) << 34)
#define WORKER_SHOW_EVENT_TICK	    (UINT64_C(1) << 35)
#define WORKER_SHOW_EVENT_IFLAGS    (UINT64_C(1) << 36)
#define WORKER_SHOW_RESYNC_ON_ERROR (UINT64_C(1) << 37)
#define WORKER_SHOW_QUIET	    (UINT64_C(1) << 38)
#define WORKER_SHOW_STAT	    (UINT64_C(1) << 39)
#define WORKER_SHOW_STAT_INSN	    (UINT64_C(1) << 40)
#define WORKER_SHOW_STAT_BLOCKS	    (UINT64_C(1) << 41)
#define WORKER_SHOW_BLOCKS	    (UINT64_C(1) << 42) /* --block:show-blocks */
#define WORKER_SHOW_INSN_DECODER    (UINT64_C(1) << 43) /* no count of blocks */
#define WORKER_SHOW_END_ON_CALL	    (UINT64_C(1) << 44)
#define WORKER_SHOW_END_ON_JUMP	    (UINT64_C(1) << 45)
/* --view=branches with WORKER_SHOW_TIME: FROM TO LO HI OFFSET, that of the packet which decided the
 * branch, hex; and whose the lines are, and gaps, of a single thread too. */
#define WORKER_SHOW_PLACES (UINT64_C(1) << 46)

/* Instead of a decode: what is cheap to know of a trace. */
enum worker_skim {
	WORKER_SKIM_NONE = 0,
	WORKER_SKIM_PSB = 1, /* of each PSB where execution was, and when */
	WORKER_SKIM_TIP = 2, /* and of each packet with an address */
};

#define WORKER_MAX_REPEAT  1000u
#define WORKER_MAX_THREADS 1024u

struct worker_request {
	uint32_t version; /* WORKER_REQUEST_VERSION */
	uint32_t view;
	uint32_t hash;	       /* summary: add ipHash */
	uint32_t pretty;       /* JSON: indent */
	uint64_t report_limit; /* bytes of a report; what was cut is said in it */
	uint64_t memory_limit; /* bytes that it can write to (RLIMIT_DATA); 0: none */
	uint64_t cpu_seconds;  /* RLIMIT_CPU; 0: none */
	uint64_t show;	       /* WORKER_SHOW_* */
	/* packets: only those before gap number gap - 1 of the report, 16 KiB of them; 0: all */
	uint64_t gap;
	uint64_t kernel_start;	  /* --pevent:kernel-start; 0: the processor's canonical half */
	uint32_t retstack_libipt; /* popped by compressed returns only */
	uint32_t keep;		  /* tell what was needed of images that lie elsewhere */
	uint32_t repeat;	  /* summary: decode so often, and add "passes"; 0: once, without */
	uint32_t threads;	  /* that decode; 0: one for each CPU that may be used */
	uint32_t skim;		  /* report: enum worker_skim */
	uint32_t has_deadline;	  /* report, summary: decode the newest part that can be done in */
	uint64_t deadline_ns;	  /* so long, from when the worker has the request */
	/* No symbol table and no perf map is read: what strangers wrote most of. */
	uint32_t no_symbols;
	uint32_t has_only_uid; /* report: of processes that certainly belong to */
	uint32_t only_uid;     /* that user, and nothing of any other (decoder/worker/permit.h) */
	uint32_t lines;	       /* report: with source lines and inlined functions, by DWARF */
	uint32_t debug;	       /* whoever started it answers WORKER_DEBUG */
	uint32_t reserved;
	/* Lines are looked for in so much CPU time; those that are left then are not in the report.
	 * 0: no limit, what comes out is always the same. */
	uint64_t lines_ns;
};

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
	/* So for its file apart with names and DWARF, where request.debug says so; ID_SIZE 1 to 20,
	 * of a stranger's choice. -ENOENT: there is none. NULL: there are none. */
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
