/*
 * The decoder's part of a job: the bundle goes to it, a report comes back, and whatever it does
 * else costs this report only. One that crashes, lies, or runs out of memory or time is asked
 * again, to do without what strangers wrote most of (attempt.h). Called by job.c, in the job's
 * thread.
 */
#include "daemon/job/job_private.h"

#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "daemon/job/attempt.h"
#include "daemon/job/report_output.h"
#include "decoder/run/worker_run.h"
#include "proto/base.h"
#include "proto/memfd.h"
#include "proto/report.h"

/* RLIMIT_CPU of the decoder in a second of its time, where there are no more CPUs. */
#define CPU_SECONDS_PER_SECOND 4u

/* One of the decoder's attempts. */
struct run {
	struct attempt attempt;
	int result; /* of worker_run */
	struct worker_outcome outcome;
	char why[ENTRY_ERROR_SIZE]; /* it failed */
};

static void on_progress(void *userdata, unsigned phase, unsigned percent)
{
	enum job_phase to = phase == WORKER_PHASE_WRITE	      ? JOB_WRITE
			    : phase == WORKER_PHASE_SYMBOLIZE ? JOB_SYMBOLIZE
							      : JOB_DECODE;

	job_tell_progress(userdata, to, percent);
}

/* RLIMIT_CPU of the decoder: it may use all CPUs that we may, within its time. */
static uint64_t cpu_seconds(uint64_t timeout_usec)
{
	unsigned int n = CPU_SECONDS_PER_SECOND;
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof(set), &set) == 0)
		n = MAX_OF(n, (unsigned int)CPU_COUNT(&set));
	return (timeout_usec / 1000000 + 1) * n;
}

/* What became of the decoder, in words. */
static void describe_failure(struct job *job, struct run *a)
{
	const struct worker_outcome *o = &a->outcome;
	size_t size = sizeof(a->why);

	if (o->lied)
		snprintf(a->why, size, "the decoder said what no decoder says and was stopped");
	else if (o->error)
		snprintf(a->why, size, "the decoder failed: %s", strerror(-o->error));
	else if (o->exit_status >= 0)
		snprintf(a->why, size, "the decoder ended with status %d and no result",
			 o->exit_status);
	else
		snprintf(a->why, size, "the decoder at %s ended without a result",
			 job->setup.config->decoder_socket);
}

static void describe(struct job *job, struct run *a)
{
	const struct config *c = job->setup.config;
	size_t size = sizeof(a->why);

	switch (a->result) {
	case 0: break;
	case WORKER_CRASHED:
		snprintf(a->why, size, "the decoder was killed by signal %d (%s)",
			 a->outcome.signal, strsignal(a->outcome.signal));
		break;
	case WORKER_TIMEOUT:
		snprintf(a->why, size,
			 "the decoder was not done after %" PRIu64 " ms and was stopped",
			 a->attempt.timeout_usec / 1000);
		break;
	case WORKER_FAILED: describe_failure(job, a); break;
	case -ECANCELED:
		snprintf(a->why, size, "the recorder was stopped while this was decoded");
		break;
	default:
		snprintf(a->why, size, "the decoder %s could not be started: %s",
			 c->decoder_socket ? c->decoder_socket : c->worker, strerror(-a->result));
	}
}

/* Behind it the report is there, or job->report_fd is not. */
static void run_decoder(struct job *job, struct run *a)
{
	const struct config *c = job->setup.config;
	CLEANUP_CLOSE int bundle = -EBADF;
	struct worker_job w = {
		.program = c->worker,
		.socket = c->decoder_socket,
		.request = {.cpu_seconds = cpu_seconds(a->attempt.timeout_usec),
			    .options = attempt_options(c, &a->attempt)},
		.timeout_usec = a->attempt.timeout_usec,
		.progress = on_progress,
		.image = job_on_image,
		.keep = job_on_keep,
		.userdata = job,
		.cancel_fd = job->cancel_fd,
	};

	w.request.options.keep = 1;
	a->result = memfd_reopen_readonly(job->bundle_fd, &bundle);
	if (a->result == 0)
		a->result = report_output_new(&job->report_fd);
	if (a->result < 0) {
		snprintf(a->why, sizeof(a->why), "no memory for the report: %s",
			 strerror(-a->result));
		return;
	}
	job_tell_progress(job, JOB_DECODE, 0);
	w.bundle_fd = bundle;
	w.output_fd = job->report_fd;
	a->result = worker_run(&w, &a->outcome);
	describe(job, a);
	if (a->result == 0) {
		a->result = report_output_end(job->report_fd);
		if (a->result < 0)
			snprintf(a->why, sizeof(a->why), "the decoder gave no report: %s",
				 strerror(-a->result));
	}
	if (a->result != 0)
		job->report_fd = close_fd(job->report_fd);
}

/* After *LAST, which failed, with less; false: that would not help. The time of all is that of one.
 */
static bool run_again(struct job *job, uint64_t began, struct run *last)
{
	struct run next = {.result = 0};

	if (!attempt_next(job->setup.config, &last->attempt, last->result, &last->outcome,
			  now_usec(CLOCK_MONOTONIC) - began, job->deadline_ns, true, &next.attempt))
		return false;
	job_forget_needed(job);
	run_decoder(job, &next);
	*last = next;
	return true;
}

static int judge(struct job *job, const struct run *a)
{
	static const int errors[] = {
		[WORKER_CRASHED] = -EIO, [WORKER_TIMEOUT] = -ETIMEDOUT, [WORKER_FAILED] = -EIO};

	if (a->outcome.socket_error)
		job_remark(job, "decoded by a program of the recorder's own: %s: %s",
			   job->setup.config->decoder_socket, strerror(-a->outcome.socket_error));
	if (a->result == 0) {
		job->entry.gaps = a->outcome.faults;
		return 0;
	}
	return job_fail(job, a->result < 0 ? a->result : errors[a->result], "%s", a->why);
}

static void remark(struct job *job, const struct run *first, const struct run *last)
{
	const char *without = attempt_without(&first->attempt, &last->attempt);

	if (without)
		job_remark(job, "decoded without %s%s: with them %s", without,
			   last->attempt.hurry && !last->attempt.symbols
				   ? ", and only the newest part there was time for"
				   : "",
			   first->why);
}

int job_decode(struct job *job)
{
	struct run first = {.result = 0}, last;
	uint64_t began = now_usec(CLOCK_MONOTONIC);
	int r = job_begin_images(job);

	if (r < 0)
		return job_fail(job, r, "no memory for the report: %s", strerror(-r));
	attempt_first(job->setup.config, job->deadline_ns, &first.attempt);
	run_decoder(job, &first);
	last = first;
	while (run_again(job, began, &last))
		;
	/* Whose failure is told: of those that failed the first one had more to do with what is
	 * there. */
	r = judge(job, last.result == 0 || last.result == -ECANCELED ? &last : &first);
	if (r == 0)
		remark(job, &first, &last);
	/* What it had no time for may need other images, and so do names; whether there was
	 * anything, nobody here reads. */
	job->needed_known = first.result == 0 && job->deadline_ns == ENTRY_ABSENT;
	return r;
}
