/*
 * A job's own: shared by job.c (the recipe), job_steps.c (its ingredients) and job_thread.c (the
 * thread and the messages).
 */
#pragma once

#include <pthread.h>

#include "proto/base.h"

#include "daemon/job.h"

struct job {
	struct job_setup setup;
	pthread_t thread;
	bool started;
	bool resume;
	int news[2];	/* pipe, job -> loop; [0] does not block */
	int answers[2]; /* pipe, loop -> job */
	int cancel_fd;	/* eventfd; readable: end soon */

	/* The thread's, from job_start to job_finish. */
	struct entry entry;
	struct area area; /* lent by the loop, or our own */
	bool area_lent;
	struct freeze_cpu *frozen; /* one a CPU */
	struct evidence *evidence; /* put here by the loop while the thread waits */
	int evidence_error;
	int bundle_fd, report_fd; /* memory files */
	bool bundle_stored, report_stored;
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
int job_write_bundle(struct job *job);
int job_store_bundle(struct job *job);
int job_decode(struct job *job);
int job_store_report(struct job *job);
void job_store_entry(struct job *job);
