/*
 * Runs the decoder on a job's bundle, again and for less where it fails (attempt.h).
 */
#include "daemon/job/job_private.h"

#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "daemon/job/attempt.h"
#include "decoder/run/worker_run.h"
#include "proto/base.h"
#include "proto/memfd.h"
#include "proto/report.h"

/* The decoder may use this many CPUs (RLIMIT_CPU), or as many as we may if those are more. */
#define LEAST_CPUS 4u

/* One attempt. */
struct tried {
	struct attempt attempt;
	int result; /* of worker_run */
	struct worker_outcome outcome;
	char why[ENTRY_ERROR_SIZE]; /* the attempt failed */
};

static void on_progress(void *userdata, unsigned phase, unsigned percent)
{
	enum job_phase to = phase == WORKER_PHASE_WRITE	      ? JOB_WRITE
			    : phase == WORKER_PHASE_SYMBOLIZE ? JOB_SYMBOLIZE
							      : JOB_DECODE;

	job_tell_progress(userdata, to, percent);
}

/* RLIMIT_CPU of the decoder within its time. */
static uint64_t cpu_seconds(uint64_t timeout_usec)
{
	unsigned int n = LEAST_CPUS;
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof(set), &set) == 0)
		n = MAX_OF(n, (unsigned int)CPU_COUNT(&set));
	return (timeout_usec / 1000000 + 1) * n;
}

/* Says in words why a decoder that ended by itself failed. */
static void describe_failure(struct job *job, struct tried *a)
{
	const struct worker_outcome *o = &a->outcome;
	size_t size = sizeof(a->why);

	if (o->lied)
		snprintf(a->why, size, "the decoder sent an invalid message and was killed");
	else if (o->error)
		snprintf(a->why, size, "the decoder failed: %s", strerror(-o->error));
	else if (o->exit_status >= 0)
		snprintf(a->why, size, "the decoder ended with status %d and no result",
			 o->exit_status);
	else
		snprintf(a->why, size, "the decoder at %s ended without a result",
			 job->setup.config->decoder_socket);
}

static void describe(struct job *job, struct tried *a)
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

/* Makes one attempt: sets A's result, and job->report_fd where that is 0. */
static void run_decoder(struct job *job, struct tried *a)
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
		.debug = job_on_debug,
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
	debug_files_init(&job->debug_files);
	/* A host without debug packages has no such directory. */
	if (c->debug_directory)
		(void)debug_files_add(&job->debug_files, c->debug_directory);
	a->result = worker_run(&w, &a->outcome);
	debug_files_done(&job->debug_files);
	if (job->said.n == 0) {
		job->said = a->outcome.said;
		job->said_failed = a->result != 0;
	}
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

int job_decode(struct job *job)
{
	static const int errors[] = {
		[WORKER_CRASHED] = -EIO, [WORKER_TIMEOUT] = -ETIMEDOUT, [WORKER_FAILED] = -EIO};
	const struct config *c = job->setup.config;
	struct tried first = {.result = 0}, last, next;
	const struct tried *told;
	uint64_t began = now_usec(CLOCK_MONOTONIC);
	const char *without;
	int r = job_begin_images(job);

	if (r < 0)
		return job_fail(job, r, "no memory for the report: %s", strerror(-r));
	attempt_first(c, job->deadline_ns, &first.attempt);
	run_decoder(job, &first);
	last = first;
	next = (struct tried){.result = 0};
	while (attempt_next(c, &last.attempt, last.result, &last.outcome,
			    now_usec(CLOCK_MONOTONIC) - began, job->deadline_ns, true,
			    &next.attempt)) {
		job_forget_needed(job);
		run_decoder(job, &next);
		last = next;
		next = (struct tried){.result = 0};
	}
	/* If all attempts failed, the first failure says most, as that attempt left out least. */
	told = last.result == 0 || last.result == -ECANCELED ? &last : &first;
	if (told->outcome.socket_error)
		job_remark(job, "decoded by a program that the recorder started: %s: %s",
			   c->decoder_socket, strerror(-told->outcome.socket_error));
	if (told->result == 0)
		job->entry.gaps = told->outcome.faults;
	else
		r = job_fail(job, told->result < 0 ? told->result : errors[told->result], "%s",
			     told->why);
	without = attempt_without(&first.attempt, &last.attempt);
	if (r == 0 && without)
		job_remark(job, "decoded without %s%s: with them %s", without,
			   last.attempt.hurry && !last.attempt.symbols
				   ? ", and only the newest part there was time for"
				   : "",
			   first.why);
	/* A decode with names left out, or with a deadline, may have needed fewer images. */
	job->needed_known = first.result == 0 && job->deadline_ns == ENTRY_ABSENT;
	return r;
}
