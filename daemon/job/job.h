/*
 * One snapshot, from the trigger to the stored report, in a thread of its own.
 *
 * Loop and job share no mutable state. What belongs to both passes from hand to hand by messages:
 * the job tells the loop where it is and waits where it needs something (evidence, room on the
 * disk, its turn to decode); the loop answers. Between job_start and JOB_CAPTURED the source's
 * events belong to the job.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "capture/ring/freeze.h"
#include "capture/ring/source.h"
#include "daemon/config/config.h"
#include "daemon/gather/evidence.h"
#include "daemon/gather/kernel.h"
#include "daemon/store/entry.h"
#include "daemon/store/imagestore.h"

struct job;

struct job_setup {
	const struct config *config; /* borrowed; const */
	struct source *source;	     /* borrowed; used until JOB_CAPTURED, as the next */
	struct freezer *freezer;
	struct kernel *kernel;	   /* borrowed; NULL: the kernel is not traced */
	int store_fd;		   /* borrowed; the state directory */
	struct imagestore *images; /* borrowed */
	struct entry entry;
	uint64_t last_bytes; /* ENTRY_ABSENT: everything */
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
	JOB_BUNDLED,  /* value: bytes. Waits for job_answer: is there room on the disk? */
	JOB_READY,    /* waits for job_answer: its turn to decode; false: not wanted */
	JOB_KEEPING,  /* value: bytes that the image cache may grow by. Waits for job_answer: room
		       * was made, and set, for what fits */
	JOB_ENDED,    /* nothing more will come: job_finish */
};
struct job_message {
	uint32_t news;
	uint32_t phase, percent; /* of JOB_PROGRESS */
	uint32_t reserved;
	uint64_t value;
};

/* For the loop. */
int job_new(const struct job_setup *setup, struct job **ret);
/* Memory for the copy, touched long before, so that nothing stands between the trigger and the
 * freeze: borrowed until JOB_BUNDLED or JOB_ENDED. Before job_start; without it the job makes its
 * own. Where it is too small for a ring, the newest bytes are taken. */
void job_lend_area(struct job *job, const struct area *area);
/* A bundle of a run before that was not decoded: nothing is captured. Before job_start. FOUND is
 * taken over. */
struct job_found_image {
	uint32_t index; /* in the manifest */
	int fd;
	uint64_t size;
};
struct job_found {
	int bundle_fd;
	bool stored; /* it lies on the disk */
	bool again;  /* it was taken up before: it is only stored */
	struct job_found_image *images;
	size_t n_images;
};
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
/* Before the answer to JOB_READY: in what time is to be decoded what can be (ENTRY_ABSENT: all). */
void job_set_deadline(struct job *job, uint64_t ns);
/* End soon: the decoder is killed, the bundle is kept. */
void job_cancel(struct job *job);

struct job_result {
	struct entry entry;
	uint64_t dark_ns; /* the longest of all CPUs; ENTRY_ABSENT: nothing was captured */
	int error;	  /* a positive errno of what made it fail; 0: none, or not known */
	int bundle_fd,
		report_fd; /* owned by the receiver; bytes that the disk did not take; -EBADF */
};
/* Waits for the thread, which has said JOB_ENDED or was cancelled. */
void job_finish(struct job *job, struct job_result *ret);
void job_free(struct job *job);
