/*
 * A job, for the files that run it: job.c (the recipe), job_decode.c, job_images.c, job_recover.c
 * and job_thread.c.
 */
#pragma once

#include <pthread.h>

#include "daemon/gather/asleep.h"
#include "daemon/job/job.h"
#include "decoder/run/debug_files.h"
#include "proto/base.h"

/* The most pieces of all images together that a decoder can make a job remember. */
#define JOB_MAX_NEEDED (2u << 20)

/* The pieces of one image that are to be kept. */
struct job_needed {
	struct manifest_piece *pieces; /* in any order until they are joined */
	size_t n, capacity;
};

struct job {
	struct job_setup setup;
	pthread_t thread;
	bool started;
	bool resume;
	bool recovers;		/* the job decodes what an earlier run left */
	struct job_found found; /* of that: the images; its bundle is bundle_fd */
	int news[2];		/* pipe, job -> loop; [0] does not block */
	int answers[2];		/* pipe, loop -> job */
	int cancel_fd;		/* eventfd; readable: end soon */

	/* The thread's, from job_start to job_finish. The loop sets evidence, evidence_error and
	 * deadline_ns while the thread waits for an answer. */
	struct entry entry;
	struct area area; /* lent by the loop, or our own */
	bool area_lent;
	struct freeze_cpu *frozen; /* one for each CPU */
	uint32_t *pids;		   /* owned; the processes that were known when the job began */
	size_t n_pids;
	struct asleep *asleep; /* NULL: not read */
	struct evidence *evidence;
	int evidence_error;
	uint64_t deadline_ns;	  /* ENTRY_ABSENT: none */
	int bundle_fd, report_fd; /* memory files */
	bool bundle_stored, report_stored;
	uint64_t dark_ns;		/* as in struct job_result */
	int error;			/* as in struct job_result */
	struct worker_said said;	/* as in struct job_result */
	bool said_failed;		/* as in struct job_result */
	uint64_t members_bytes;		/* of the bundle, before its manifest */
	struct debug_files debug_files; /* while a decoder runs */
	struct job_needed *needed;	/* one for each image; NULL until decoding begins */
	size_t needed_capacity;		/* sum over all images */
	uint64_t needed_refused;	/* pieces that were beyond the image or too many */
	bool needed_known; /* the decoder came to the trace's end: nothing else is needed */
};

/* job_thread.c, for the thread: */
void job_tell(struct job *job, enum job_news news, uint64_t value);
void job_tell_progress(struct job *job, enum job_phase phase, uint32_t percent);
/* Waits for the loop's answer: 1 yes, 0 no, -ECANCELED: the loop is gone, or, when CANCELLABLE,
 * asks the job to end. */
int job_wait(struct job *job, bool cancellable);

/* job.c: the recipe, called once, in the thread. */
void job_run(struct job *job);
/* Makes the snapshot a failed one, with this message. Returns ERROR. */
int job_fail(struct job *job, int error, const char *format, ...) PRINTF_LIKE(3, 4);
/* Adds a remark to a snapshot that has not failed, behind earlier remarks. */
void job_remark(struct job *job, const char *format, ...) PRINTF_LIKE(2, 3);
/* Stores the bundle, or leaves it in memory where the disk does not take it. 0, or -errno after
 * job_fail. */
int job_store_bundle(struct job *job);
/* Stores what is known of the snapshot, which is announced afterwards: all of it is on the disk
 * then, or the entry says what is not. */
void job_store_entry(struct job *job);

/* job_decode.c: makes the report. 0, or -errno after job_fail. */
int job_decode(struct job *job);

/* job_recover.c: has systemd keep bundle and images, for a recorder after this one. */
void job_keep_for_next(struct job *job);
/* Takes the place of all steps up to job_store_bundle. 0, or -errno after job_fail. */
int job_recover(struct job *job);

/* job_images.c: call before worker_run. Makes memory files with copies of memory read-only, so that
 * no decoder can change what is kept. 0 or -errno. */
int job_begin_images(struct job *job);
/* For worker_run. */
int job_on_image(void *userdata, uint32_t image, int *ret_fd, uint64_t *ret_size);
int job_on_debug(void *userdata, uint32_t image, const uint8_t *build_id, size_t id_size,
		 int *ret_fd, uint64_t *ret_size);
void job_on_keep(void *userdata, uint32_t image, uint64_t offset, uint64_t size);
/* Forgets what the decoder said so far: a decoder that failed cannot be relied on. */
void job_forget_needed(struct job *job);
/* Keeps what is needed of images, in the cache or in the bundle. Call after job_decode, whether it
 * succeeded or not, or without it. */
void job_keep_images(struct job *job);
/* How many bytes of image INDEX are used; 0: none. */
uint64_t job_image_size(const struct job *job, size_t index);
