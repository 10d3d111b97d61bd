/*
 * Makes and starts a job, and carries messages between its thread and the loop over two pipes.
 *
 * A message is smaller than PIPE_BUF, so it is written whole or not at all. Writing and reading a
 * pipe orders the memory that is handed over with the message.
 */
#include "daemon/job/job_private.h"

#include <assert.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>

const char *job_phase_name(enum job_phase phase)
{
	static const char *const names[] = {"freeze", "copy",	   "resume", "bundle",
					    "decode", "symbolize", "write"};

	assert(phase < ARRAY_SIZE(names));
	return names[phase];
}

int job_new(const struct job_setup *setup, struct job **ret)
{
	struct job *job = calloc(1, sizeof(*job));
	int r;

	if (!job)
		return -ENOMEM;
	job->setup = *setup;
	job->entry = setup->entry;
	job->dark_ns = ENTRY_ABSENT;
	job->news[0] = job->news[1] = job->answers[0] = job->answers[1] = -EBADF;
	job->bundle_fd = job->report_fd = job->found.bundle_fd = -EBADF;
	job->cancel_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (job->cancel_fd < 0 || pipe2(job->news, O_CLOEXEC) < 0 ||
	    pipe2(job->answers, O_CLOEXEC) < 0 || fcntl(job->news[0], F_SETFL, O_NONBLOCK) < 0) {
		r = -errno;
		job_free(job);
		return r;
	}
	*ret = job;
	return 0;
}

void job_set_processes(struct job *job, uint32_t *pids, size_t n)
{
	assert(!job->started && !job->pids);
	job->pids = pids;
	job->n_pids = n;
}

void job_free(struct job *job)
{
	if (!job)
		return;
	assert(!job->started); /* job_finish() */
	for (int i = 0; i < 2; i++) {
		close_fd(job->news[i]);
		close_fd(job->answers[i]);
	}
	close_fd(job->cancel_fd);
	close_fd(job->bundle_fd);
	close_fd(job->report_fd);
	if (!job->area_lent)
		area_done(&job->area);
	free(job->frozen);
	job_found_done(&job->found);
	for (size_t i = 0; job->needed && i < job->evidence->manifest.n_images; i++)
		free(job->needed[i].pieces);
	free(job->needed);
	evidence_free(job->evidence);
	asleep_freep(&job->asleep);
	free(job->pids);
	free(job);
}

void job_lend_area(struct job *job, const struct area *area)
{
	assert(!job->started && !job->area_lent);
	job->area = *area;
	job->area_lent = true;
}

static void *job_main(void *userdata)
{
	struct job *job = userdata;

	job_run(job);
	job_tell(job, JOB_ENDED, 0);
	return NULL;
}

int job_start(struct job *job, bool resume)
{
	sigset_t all, before;
	int r;

	assert(!job->started);
	job->resume = resume;
	/* Only the loop handles signals. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	r = pthread_create(&job->thread, NULL, job_main, job);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	job->started = r == 0;
	if (r)
		job_fail(job, -r, "no thread for it: %s", strerror(r));
	return -r;
}

int job_fd(const struct job *job)
{
	return job->news[0];
}

int job_read(struct job *job, struct job_message *ret)
{
	return read(job->news[0], ret, sizeof(*ret)) == sizeof(*ret) ? 0 : JOB_NOTHING;
}

void job_answer(struct job *job, bool yes)
{
	char byte = yes;

	assert(job->started);
	/* One byte into an empty pipe cannot block. */
	(void)!write(job->answers[1], &byte, 1);
}

/* The answer that follows orders the memory. */
void job_set_deadline(struct job *job, uint64_t ns)
{
	job->deadline_ns = ns;
}

void job_give_evidence(struct job *job, struct evidence *evidence, int r)
{
	assert(!job->evidence && (evidence || r < 0));
	job->evidence = evidence;
	job->evidence_error = r;
	job_answer(job, true);
}

struct evidence *job_lent_evidence(struct job *job)
{
	assert(job->evidence);
	return job->evidence;
}

void job_cancel(struct job *job)
{
	uint64_t one = 1;

	(void)!write(job->cancel_fd, &one, sizeof(one));
}

void job_finish(struct job *job, struct job_result *ret)
{
	assert(job->news[0] >= 0); /* only once */
	/* A thread that still runs finds the pipes closed, and ends. */
	job->answers[1] = close_fd(job->answers[1]);
	job->news[0] = close_fd(job->news[0]);
	if (job->started)
		pthread_join(job->thread, NULL);
	job->started = false;
	ret->entry = job->entry;
	ret->dark_ns = job->dark_ns;
	ret->error = job->error;
	ret->said = job->said;
	ret->said_failed = job->said_failed;
	ret->bundle_fd = job->bundle_stored ? -EBADF : take_fd(&job->bundle_fd);
	ret->report_fd = job->report_stored ? -EBADF : take_fd(&job->report_fd);
}

static void job_send(struct job *job, const struct job_message *m)
{
	/* A full pipe makes the job wait for the loop. */
	while (write(job->news[1], m, sizeof(*m)) < 0 && errno == EINTR)
		;
}

void job_tell(struct job *job, enum job_news news, uint64_t value)
{
	job_send(job, &(struct job_message){.news = news, .value = value});
}

void job_tell_progress(struct job *job, enum job_phase phase, uint32_t percent)
{
	job_send(job,
		 &(struct job_message){.news = JOB_PROGRESS, .phase = phase, .percent = percent});
}

int job_wait(struct job *job, bool cancellable)
{
	struct pollfd fds[] = {
		{.fd = job->answers[0], .events = POLLIN},
		{.fd = cancellable ? job->cancel_fd : -1, .events = POLLIN},
	};
	char byte;

	while (poll(fds, 2, -1) < 0)
		if (errno != EINTR)
			return -errno;
	if (fds[0].revents && read(job->answers[0], &byte, 1) == 1)
		return byte;
	return -ECANCELED;
}
