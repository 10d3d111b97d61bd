/*
 * A job's own: shared by job.c (the recipe), job_steps.c (its ingredients), job_images.c (what of
 * the programs is kept), job_whole.c (all of it in one file), job_recover.c (one that was begun
 * before) and job_thread.c (the thread and the messages).
 */
#pragma once

#include <pthread.h>

#include "proto/base.h"

#include "daemon/job/job.h"

/* Pieces of all images together: what a decoder may make us remember. */
#define JOB_MAX_NEEDED (2u << 20)

/* What of one image is to be kept. */
struct job_needed {
	struct manifest_piece *pieces; /* of any order until they are joined */
	size_t n, capacity;
};

struct job {
	struct job_setup setup;
	pthread_t thread;
	bool started;
	bool resume;
	struct job_found found; /* no bundle any more; without images: nothing was found */
	bool recovers;		/* it was given one */
	int news[2];		/* pipe, job -> loop; [0] does not block */
	int answers[2];		/* pipe, loop -> job */
	int cancel_fd;		/* eventfd; readable: end soon */

	/* The thread's, from job_start to job_finish. */
	struct entry entry;
	struct area area; /* lent by the loop, or our own */
	bool area_lent;
	struct freeze_cpu *frozen; /* one a CPU */
	struct evidence *evidence; /* put here by the loop while the thread waits */
	int evidence_error;
	uint64_t deadline_ns;	  /* so; ENTRY_ABSENT: none */
	int bundle_fd, report_fd; /* memory files */
	bool bundle_stored, report_stored;
	uint64_t dark_ns;	/* as in struct job_result */
	int error;		/* so */
	uint64_t members_bytes; /* of the bundle, before its manifest */
	struct job_needed
		*needed;	/* as many as the manifest has images; NULL until decoding begins */
	size_t needed_capacity; /* of all of them */
	uint64_t needed_refused; /* pieces that were beyond the image or too many */
	bool needed_known;	 /* the decoder came to the trace's end: nothing else is needed */
};

/* job_thread.c, for the thread: */
void job_tell(struct job *job, enum job_news news, uint64_t value);
void job_tell_progress(struct job *job, enum job_phase phase, uint32_t percent);
/* Waits for the loop's answer: 1 yes, 0 no, -ECANCELED: the loop is gone, or, when CANCELLABLE,
 * asks the job to end. */
int job_wait(struct job *job, bool cancellable);

/* job.c: the recipe, called once, in the thread. */
void job_run(struct job *job);

/* job_steps.c. Each returns 0, or -errno after job_fail. */
int job_fail(struct job *job, int error, const char *format, ...) PRINTF_LIKE(3, 4);
int job_capture(struct job *job);
int job_receive_evidence(struct job *job);
void job_find_coredump(struct job *job);
int job_read_memory(struct job *job);
int job_copy_kernel(struct job *job);
int job_write_bundle(struct job *job);
int job_store_bundle(struct job *job);
/* job_decode.c: so. */
int job_decode(struct job *job);
/* After job_decode, whatever became of it, or without it. */
void job_keep_images(struct job *job);
int job_store_report(struct job *job);
void job_store_entry(struct job *job);
/* Something to be said of a snapshot that has not failed for it; behind what was said before. */
void job_remark(struct job *job, const char *format, ...) PRINTF_LIKE(2, 3);

/* job_recover.c: should the recorder end before this is decoded, the next one has it. */
void job_keep_for_next(struct job *job);
/* In the place of all steps up to job_store_bundle. */
int job_recover(struct job *job);

/* job_images.c: before worker_run. Memory files with copies of memory become read-only: what is
 * kept is not what the decoder may have made of them. 0 or -errno. */
int job_begin_images(struct job *job);
/* For worker_run. */
int job_on_image(void *userdata, uint32_t image, int *ret_fd, uint64_t *ret_size);
void job_on_keep(void *userdata, uint32_t image, uint64_t offset, uint64_t size);
/* What a decoder that failed said it needed. */
void job_forget_needed(struct job *job);
/* The size that counts for image INDEX; 0: it has no bytes. */
uint64_t job_image_size(const struct job *job, size_t index);

/* job_whole.c: the bundle, which no disk has taken, with what is needed of images in it. */
int job_make_whole(struct job *job);
