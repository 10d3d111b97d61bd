/*
 * One snapshot, from the trigger to the stored report, in a thread of its own.
 *
 * This room takes snapshots and has them decoded. job.c is the recipe of one snapshot: freeze the
 * CPUs and copy their rings, receive the evidence, write the bundle, have it decoded, store the
 * report. job_decode.c runs the decoder, job_images.c gives the decoder the files of programs and
 * keeps what it needed of them, job_recover.c takes up snapshots that an earlier run of the
 * recorder left undecoded, and job_thread.c is the job's thread with the messages between it and
 * the loop. jobs.c lets several jobs take turns. attempt.c says what a decoder is asked for when
 * the attempt before failed. remake.c makes reports for one user from stored bundles. lease.c hands
 * Intel PT back for a time.
 *
 * Decisions that govern the room:
 * - Loop and job share no mutable state. An object that both need passes from hand to hand by
 *   messages over two pipes: the job tells the loop where it is, and waits where it needs something
 *   (evidence, what changed since, room on the disk, its turn to decode); the loop answers. From
 * job_start() to JOB_CAPTURED the events of the source belong to the job.
 * - The moment of a snapshot is what counts: a job captures at once, or when the job before it has
 *   copied. Decoding takes long and happens one snapshot at a time, the oldest first.
 * - Whatever goes wrong ends this job only, and what was gained is kept: a bundle without a report
 *   is a failed snapshot that can still be decoded by hand.
 * - Nothing that a decoder sends is believed: numbers of images, pieces and sizes are checked and
 *   bounded. A report's file has a sealed size before a decoder gets it. Its JSON is not parsed.
 * - A decoder that crashed, sent invalid messages, or ran out of memory or time is asked again for
 *   less: first without source lines, then without names, and, where time ran out, for the newest
 *   part of the trace alone. All attempts share one time. The snapshot says what was left out.
 * - The bytes of programs lie once a host in the image cache, and a bundle lists what it needs of
 *   them. Where nobody knows what is needed, whole files are kept, within limits. A bundle that
 *   stays in memory has everything in it.
 * - A report for one user is made by decoding again; a report is never filtered afterwards.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "capture/ring/freeze.h"
#include "capture/ring/source.h"
#include "daemon/config/config.h"
#include "daemon/gather/evidence.h"
#include "daemon/store/entry.h"
#include "daemon/store/imagestore.h"
#include "decoder/run/worker_run.h"

struct job;

struct job_setup {
	const struct config *config; /* borrowed; const */
	struct source *source;	     /* borrowed; used until JOB_CAPTURED */
	struct freezer *freezer;     /* borrowed; used until JOB_CAPTURED */
	struct kernel *kernel;	     /* borrowed; NULL: the kernel is not traced */
	int store_fd;		     /* borrowed; the state directory */
	struct imagestore *images;   /* borrowed */
	struct entry entry;
	uint64_t last_bytes; /* the newest bytes to copy of each ring; ENTRY_ABSENT: all */
	uint32_t cpu;	     /* to be stopped first; ENTRY_NO_CPU */
};

/* The interface's Progress.phase. */
enum job_phase {
	JOB_FREEZE = 0,
	JOB_COPY,
	JOB_RESUME,
	JOB_BUNDLE,
	JOB_DECODE,
	JOB_SYMBOLIZE,
	JOB_WRITE,
};
const char *job_phase_name(enum job_phase phase);
#define JOB_NO_PERCENT UINT32_MAX

enum job_news {
	JOB_PROGRESS = 1,
	JOB_CAPTURED, /* the CPUs run again; value: when the last one stopped (perf clock). Waits
		       * for job_give_evidence */
	JOB_LOOKED,  /* memory was read, and may have changed meanwhile. Waits for job_answer, which
		      * comes when the loop has looked (job_lent_evidence) */
	JOB_BUNDLED, /* value: bytes. Waits for job_answer: is there room on the disk? */
	JOB_READY,   /* waits for job_answer, its turn to decode; false: no report is wanted */
	JOB_KEEPING, /* value: bytes that the image cache may grow by. Waits for job_answer, which
		      * comes when the loop has made what room it can */
	JOB_ENDED,   /* the last message: job_finish */
};
struct job_message {
	uint32_t news;
	uint32_t phase, percent; /* of JOB_PROGRESS */
	uint32_t reserved;
	uint64_t value;
};

/* The functions below are called in the loop's thread. */
int job_new(const struct job_setup *setup, struct job **ret);
/* The processes whose threads JOB looks at, N of them; PIDS is taken over. Before job_start(). */
void job_set_processes(struct job *job, uint32_t *pids, size_t n);
/* Lends memory for the copy that has been touched before, so that no page fault delays the freeze;
 * borrowed until JOB_BUNDLED or JOB_ENDED. Call before job_start; else the job makes its own. If a
 * ring is larger than its part of AREA, its newest bytes are copied. */
void job_lend_area(struct job *job, const struct area *area);

/* A bundle that an earlier run of the recorder took and did not decode. */
struct job_found_image {
	uint32_t index; /* in the manifest */
	int fd;
	uint64_t size;
};
struct job_found {
	int bundle_fd;
	bool stored; /* the bundle is on the disk */
	bool again;  /* a recorder has taken it up before and died: store it, do not decode */
	struct job_found_image *images;
	size_t n_images;
};
/* Makes the job decode FOUND, which is taken over, in place of a capture. Before job_start. */
void job_take_over(struct job *job, struct job_found *found);
void job_found_done(struct job_found *found);

/* Starts the thread. RESUME false: leave the CPUs stopped. 0 or -errno. */
int job_start(struct job *job, bool resume);
/* Readable when there is a message; borrowed. */
int job_fd(const struct job *job);
/* 0 or JOB_NOTHING. */
#define JOB_NOTHING 1
int job_read(struct job *job, struct job_message *ret);
/* EVIDENCE is taken over; NULL: there is none, R says why. */
void job_give_evidence(struct job *job, struct evidence *evidence, int r);
void job_answer(struct job *job, bool yes);
/* Between JOB_LOOKED and the answer: the evidence, which the loop may change. */
struct evidence *job_lent_evidence(struct job *job);
/* The time that decoding may take before it reports what it has (ENTRY_ABSENT: no limit). Call
 * before the answer to JOB_READY. */
void job_set_deadline(struct job *job, uint64_t ns);
/* Asks the job to end soon: kills the decoder, keeps the bundle. */
void job_cancel(struct job *job);

struct job_result {
	struct entry entry;
	uint64_t dark_ns; /* the longest time that a CPU was not traced; ENTRY_ABSENT: no capture */
	int error;	  /* the positive errno that the job failed for; 0: none, or unknown */
	/* The standard error of the first decoder that wrote something, of those that the recorder
	 * started. */
	struct worker_said said;
	bool said_failed; /* that decoder failed */
	/* Bundle and report that the disk did not take, or -EBADF. The receiver owns them. */
	int bundle_fd, report_fd;
};
/* Waits for the thread, which has sent JOB_ENDED or was cancelled. */
void job_finish(struct job *job, struct job_result *ret);
void job_free(struct job *job);
