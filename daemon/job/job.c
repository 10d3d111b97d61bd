/*
 * A snapshot's recipe. It runs in the job's thread; each step is in job_steps.c. Whatever goes
 * wrong ends this job only, and what was gained until then is kept: a bundle without a report is a
 * failed snapshot that can still be decoded by hand.
 */
#include "daemon/job/job_private.h"
#include "daemon/store/fdstore.h"

static int job_gather(struct job *job)
{
	int r;

	/* Stop the CPUs, copy the newest bytes of their rings, let them run on. */
	r = job_capture(job);
	if (r < 0)
		return r;
	/* The loop drains the sideband up to that moment and says what it knows. */
	r = job_receive_evidence(job);
	if (r < 0)
		return r;
	/* What systemd-coredump has of who crashed is named. */
	job_find_coredump(job);
	/* Code in the memory of processes goes when they end. */
	r = job_read_memory(job);
	if (r < 0)
		return r;
	/* Where the kernel is traced, its text is copied before it changes. */
	r = job_copy_kernel(job);
	if (r < 0)
		return r;
	/* Trace, sideband, texts and manifest become one sealed memory file, */
	r = job_write_bundle(job);
	if (r < 0)
		return r;
	/* which goes to the disk, and to who outlives us, before anything can happen to it. */
	job_keep_for_next(job);
	return job_store_bundle(job);
}

static int job_explain(struct job *job)
{
	int r;

	/* One at a time; false: the trace alone was wanted. */
	job_tell(job, JOB_READY, 0);
	r = job_wait(job, true);
	if (r < 0)
		return job_fail(job, r, "the recorder was stopped before this was decoded");
	if (r == 0)
		return 0;
	/* The sandboxed decoder reads the bundle, asks for programs and writes the report, */
	r = job_decode(job);
	if (r < 0)
		return r;
	/* whose bytes nobody here looks into. */
	return job_store_report(job);
}

void job_run(struct job *job)
{
	if ((job->recovers ? job_recover(job) : job_gather(job)) == 0) {
		if (job_explain(job) == 0)
			job->entry.state = ENTRY_DONE;
		/* What was needed of programs, or all of them where nobody knows that, outlives
		 * them: once a host, beside the bundle. */
		job_keep_images(job);
	}
	job_store_entry(job);
	fdstore_drop(job->entry.id, false);
	if (job->recovers)
		fdstore_drop(job->entry.id, true);
}
