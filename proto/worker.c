/*
 * ptsnap-decode started, told what to do, watched and reaped. Called by the recorder's job thread
 * and by the offline client; whatever the worker does or says, the caller gets an outcome.
 */
#include "proto/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "proto/base.h"
#include "proto/channel.h"

/* Where the worker finds its end. */
#define WORKER_FD 3
/* More than a dead worker can have left in the socket's buffer. */
#define MAX_LEFTOVERS 4096u
/* include/linux/err.h */
#define MAX_ERRNO 4095

struct run {
	const struct worker_job *job;
	struct worker_outcome *outcome;
	pid_t pid;
	int pidfd;
	int channel; /* ours; -EBADF once the worker closed its end */
	bool have_result;
	uint64_t deadline; /* CLOCK_MONOTONIC, ns; UINT64_MAX: none */
};

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static uint64_t deadline_of(uint64_t timeout_usec)
{
	uint64_t ns, deadline;

	if (timeout_usec == 0 || __builtin_mul_overflow(timeout_usec, 1000u, &ns) ||
	    __builtin_add_overflow(now_ns(), ns, &deadline))
		return UINT64_MAX;
	return deadline;
}

/* Milliseconds for poll, rounded up; 0: over. */
static int wait_ms(uint64_t deadline)
{
	uint64_t now = now_ns();

	if (deadline == UINT64_MAX)
		return -1;
	if (now >= deadline)
		return 0;
	return (int)MIN_OF((deadline - now - 1) / 1000000u + 1, (uint64_t)INT32_MAX);
}

/* Descriptors 0-2 and the channel, nothing else: not even what somebody opened without O_CLOEXEC.
 */
static int set_fds(posix_spawn_file_actions_t *actions, int channel)
{
	int r = posix_spawn_file_actions_adddup2(actions, channel, WORKER_FD);

	return r ? r : posix_spawn_file_actions_addclosefrom_np(actions, WORKER_FD + 1);
}

/* The caller's thread may block and ignore signals; the worker starts without either. */
static int set_signals(posix_spawnattr_t *attr)
{
	sigset_t none, all;
	int r;

	sigemptyset(&none);
	sigfillset(&all);
	r = posix_spawnattr_setsigmask(attr, &none);
	if (r == 0)
		r = posix_spawnattr_setsigdefault(attr, &all);
	if (r == 0)
		r = posix_spawnattr_setflags(attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	return r;
}

static int spawn(const char *program, int channel, pid_t *ret_pid)
{
	char *argv[] = {(char *)(uintptr_t)program, NULL};
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attr;
	int r;

	r = posix_spawn_file_actions_init(&actions);
	if (r != 0)
		return -r;
	r = posix_spawnattr_init(&attr);
	if (r == 0) {
		r = set_fds(&actions, channel);
		if (r == 0)
			r = set_signals(&attr);
		if (r == 0)
			r = posix_spawn(ret_pid, program, &actions, &attr, argv, environ);
		posix_spawnattr_destroy(&attr);
	}
	posix_spawn_file_actions_destroy(&actions);
	return -r;
}

/* The request waits in the socket before the worker runs: one that dies at once is then found by
 * its end and not by our failing to write. */
static int send_request(const struct worker_job *job, int channel)
{
	const int fds[] = {job->bundle_fd, job->output_fd};
	struct worker_request request = job->request;

	request.version = WORKER_REQUEST_VERSION;
	return channel_send(channel, &request, sizeof(request), fds, ARRAY_SIZE(fds));
}

static int end_worker(struct run *run);

static int start(struct run *run)
{
	CLEANUP_CLOSE int ours = -EBADF;
	CLEANUP_CLOSE int theirs = -EBADF;
	int pair[2];
	int r;

	r = channel_pair(pair);
	if (r < 0)
		return r;
	ours = pair[0];
	theirs = pair[1];
	if (fcntl(ours, F_SETFL, O_NONBLOCK) < 0)
		return -errno;
	r = send_request(run->job, ours);
	if (r < 0)
		return r;
	r = spawn(run->job->program, theirs, &run->pid);
	if (r < 0)
		return r;
	run->pidfd = pidfd_open(run->pid, 0);
	if (run->pidfd < 0) {
		r = -errno;
		end_worker(run);
		return r;
	}
	run->channel = take_fd(&ours);
	return 0;
}

static int reap(struct run *run)
{
	int status;

	while (waitpid(run->pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	if (WIFSIGNALED(status))
		run->outcome->signal = WTERMSIG(status);
	else
		run->outcome->exit_status = WEXITSTATUS(status);
	return 0;
}

/* Until it is reaped the pid is the worker's. */
static int end_worker(struct run *run)
{
	kill(run->pid, SIGKILL);
	return reap(run);
}

static bool valid(const struct worker_message *m)
{
	if (m->kind == WORKER_RESULT)
		return m->error <= 0 && m->error >= -MAX_ERRNO;
	if (m->kind == WORKER_IMAGE || m->kind == WORKER_KEEP)
		return true;
	return m->kind == WORKER_PROGRESS && m->percent <= 100 && m->phase >= WORKER_PHASE_DECODE &&
	       m->phase <= WORKER_PHASE_WRITE;
}

/* A worker that asks is waiting, so there is room for the answer; one that asks without listening
 * has no room any more. */
static int answer_image(struct run *run, uint32_t image)
{
	const struct worker_job *job = run->job;
	struct worker_image answer = {.image = image};
	int r, fd = -EBADF;

	answer.error = job->image ? job->image(job->userdata, image, &fd, &answer.size) : -ENOENT;
	r = channel_send(run->channel, &answer, sizeof(answer), &fd, answer.error == 0);
	/* Its death is seen elsewhere; one that cannot be answered would wait for ever. */
	return r == 0 || r == -EPIPE || r == -ECONNRESET ? 0 : -EBADMSG;
}

/* Nothing may follow the result. */
static int on_message(struct run *run, const struct worker_message *m)
{
	if (run->have_result || !valid(m))
		return -EBADMSG;
	if (m->kind == WORKER_RESULT) {
		run->have_result = true;
		run->outcome->error = m->error;
		run->outcome->faults = m->faults;
	} else if (m->kind == WORKER_IMAGE) {
		return answer_image(run, m->image);
	} else if (m->kind == WORKER_KEEP) {
		if (run->job->keep)
			run->job->keep(run->job->userdata, m->image, m->offset, m->size);
	} else if (run->job->progress) {
		run->job->progress(run->job->userdata, m->phase, m->percent);
	}
	return 0;
}

/* One message. 0; CHANNEL_END; -EAGAIN: none there; -EBADMSG: not what a worker says. */
static int receive(struct run *run)
{
	struct worker_message m;
	size_t size, n_fds;
	int r;

	r = channel_receive(run->channel, &m, sizeof(m), &size, NULL, 0, &n_fds);
	if (r == -EMSGSIZE || (r == 0 && size != sizeof(m)))
		return -EBADMSG;
	return r == 0 ? on_message(run, &m) : r;
}

static int on_channel(struct run *run)
{
	int r = receive(run);

	if (r == CHANNEL_END)
		run->channel = close_fd(run->channel);
	return r == CHANNEL_END || r == -EAGAIN ? 0 : r;
}

/* What it said before it ended. */
static int drain(struct run *run)
{
	int r = 0;

	for (unsigned i = 0; i < MAX_LEFTOVERS && run->channel >= 0 && r == 0; i++)
		r = receive(run);
	return r == CHANNEL_END || r == -EAGAIN ? 0 : r;
}

/* 0: it has ended; WORKER_TIMEOUT, -ECANCELED, -EBADMSG: it has to be ended. */
static int watch(struct run *run)
{
	struct pollfd fds[] = {
		{.fd = run->pidfd, .events = POLLIN},
		{.fd = run->job->cancel_fd, .events = POLLIN},
		{.fd = run->channel, .events = POLLIN},
	};
	int timeout, r;

	for (;;) {
		timeout = wait_ms(run->deadline);
		fds[2].fd = run->channel;
		r = poll(fds, ARRAY_SIZE(fds), timeout);
		if (r < 0 && errno != EINTR)
			return -errno;
		if (r < 0)
			continue;
		if (fds[0].revents)
			return 0;
		if (fds[1].revents)
			return -ECANCELED;
		if (timeout == 0)
			return WORKER_TIMEOUT;
		r = fds[2].revents ? on_channel(run) : 0;
		if (r < 0)
			return r;
	}
}

/* A worker that talks nonsense has failed, whatever it made the output. */
static int judge(struct run *run, int said)
{
	struct worker_outcome *o = run->outcome;

	if (said == -EBADMSG && o->signal == 0)
		o->error = -EBADMSG;
	if (o->signal)
		return WORKER_CRASHED;
	if (!run->have_result || o->error || o->exit_status != 0 || said < 0)
		return WORKER_FAILED;
	return 0;
}

static int finish(struct run *run)
{
	int said, r;

	r = watch(run);
	if (r == -EBADMSG) {
		/* Ended by us, which is no crash of its own. */
		end_worker(run);
		*run->outcome = (struct worker_outcome){.exit_status = -1, .error = -EBADMSG};
		return WORKER_FAILED;
	}
	if (r != 0) {
		end_worker(run);
		return r;
	}
	said = drain(run);
	r = reap(run);
	return r < 0 ? r : judge(run, said);
}

int worker_run(const struct worker_job *job, struct worker_outcome *ret)
{
	struct run run = {.job = job, .outcome = ret, .pidfd = -EBADF, .channel = -EBADF};
	int r;

	*ret = (struct worker_outcome){.exit_status = -1};
	run.deadline = deadline_of(job->timeout_usec);
	r = start(&run);
	if (r == 0)
		r = finish(&run);
	close_fd(run.pidfd);
	close_fd(run.channel);
	return r;
}
