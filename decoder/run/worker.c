/*
 * ptsnap-decode started, told what to do, watched and reaped. Called by the recorder's job thread
 * and by the offline client; whatever the worker does or says, the caller gets an outcome.
 */
#include "proto/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "decoder/run/worker_start.h"
#include "proto/base.h"
#include "proto/channel.h"

/* More than a dead worker can have left in the socket's buffer. */
#define MAX_LEFTOVERS 4096u
/* Of one decode. Progress goes on to others, and is said about a hundred times for each pass over
 * the trace; of images many pieces may be asked for and needed. */
#define MAX_PROGRESS UINT64_C(4096)
#define MAX_MESSAGES (UINT64_C(16) << 20)
/* include/linux/err.h */
#define MAX_ERRNO 4095

/* Between attempts where a connection was closed before anything was read from it: twice as long
 * each time, from the first to the last. */
#define FIRST_PAUSE_MS 100u
#define LAST_PAUSE_MS  1600u

struct run {
	const struct worker_job *job;
	struct worker_outcome *outcome;
	pid_t pid;   /* 0: it is not ours */
	int pidfd;   /* so; -EBADF */
	int channel; /* ours; -EBADF once the worker closed its end */
	bool have_result;
	bool unread; /* nobody took the request */
	uint64_t n_messages, n_progress, n_debug;
	uint64_t deadline; /* CLOCK_MONOTONIC, ns; UINT64_MAX: none */
};

static uint64_t deadline_of(uint64_t timeout_usec)
{
	uint64_t ns, deadline;

	if (timeout_usec == 0 || __builtin_mul_overflow(timeout_usec, 1000u, &ns) ||
	    __builtin_add_overflow(now_ns(CLOCK_MONOTONIC), ns, &deadline))
		return UINT64_MAX;
	return deadline;
}

/* Milliseconds for poll, rounded up; 0: over. */
static int wait_ms(uint64_t deadline)
{
	uint64_t now = now_ns(CLOCK_MONOTONIC);

	if (deadline == UINT64_MAX)
		return -1;
	if (now >= deadline)
		return 0;
	return (int)MIN_OF((deadline - now - 1) / 1000000u + 1, (uint64_t)INT32_MAX);
}

/* The request waits in the socket before the worker runs: one that dies at once is then found by
 * its end and not by our failing to write. From here on nothing waits for the worker but watch().
 */
static int send_request(const struct worker_job *job, int channel)
{
	const int fds[] = {job->bundle_fd, job->output_fd};
	struct worker_request request = job->request;

	if (fcntl(channel, F_SETFL, O_NONBLOCK) < 0)
		return -errno;
	request.version = WORKER_REQUEST_VERSION;
	return channel_send(channel, &request, sizeof(request), fds, ARRAY_SIZE(fds));
}

static int start_program(struct run *run)
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
	r = send_request(run->job, ours);
	if (r == 0)
		r = worker_spawn(run->job->program, theirs, &run->pid, &run->pidfd);
	if (r == 0)
		run->channel = take_fd(&ours);
	return r;
}

static int start_service(struct run *run)
{
	CLEANUP_CLOSE int ours = -EBADF;
	int r = worker_connect(run->job->socket, &ours);

	if (r == 0)
		r = send_request(run->job, ours);
	/* It was there, and went: it says as little as one that ends later. */
	run->unread = r == -EPIPE || r == -ECONNRESET;
	if (r == 0 || run->unread)
		run->channel = take_fd(&ours);
	return run->channel >= 0 ? 0 : r;
}

static int start(struct run *run)
{
	const struct worker_job *job = run->job;
	int r = job->socket ? start_service(run) : start_program(run);

	if (job->socket && (r == -ENOENT || r == -ECONNREFUSED || r == -EACCES) &&
	    access(job->program, X_OK) == 0) {
		run->outcome->socket_error = r;
		r = start_program(run);
	}
	return r;
}

static bool is_ours(const struct run *run)
{
	return run->pid > 0;
}

static int reap(struct run *run)
{
	int status;

	if (!is_ours(run))
		return 0;
	while (waitpid(run->pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	if (WIFSIGNALED(status))
		run->outcome->signal = WTERMSIG(status);
	else
		run->outcome->exit_status = WEXITSTATUS(status);
	return 0;
}

/* Until it is reaped the pid is the worker's. One that is not ours ends by itself when its channel
 * does; what it makes of the output until then is the caller's to bound. */
static int end_worker(struct run *run)
{
	run->channel = close_fd(run->channel);
	if (is_ours(run))
		kill(run->pid, SIGKILL);
	return reap(run);
}

static bool valid(const struct worker_message *m)
{
	if (m->kind == WORKER_RESULT)
		return m->error <= 0 && m->error >= -MAX_ERRNO;
	if (m->kind == WORKER_IMAGE || m->kind == WORKER_KEEP)
		return true;
	if (m->kind == WORKER_DEBUG)
		return m->build_id_size > 0 && m->build_id_size <= sizeof(m->build_id);
	return m->kind == WORKER_PROGRESS && m->percent <= 100 && m->phase >= WORKER_PHASE_DECODE &&
	       m->phase <= WORKER_PHASE_WRITE;
}

/* A worker that asks is waiting, so there is room for the answer; one that asks without listening
 * has no room any more. */
static int answer(struct run *run, const struct worker_image *what, int fd)
{
	int r = channel_send(run->channel, what, sizeof(*what), &fd, what->error == 0);

	/* Its death is seen elsewhere; one that cannot be answered would wait for ever. */
	return r == 0 || r == -EPIPE || r == -ECONNRESET ? 0 : -EBADMSG;
}

static int answer_image(struct run *run, uint32_t image)
{
	const struct worker_job *job = run->job;
	struct worker_image what = {.image = image};
	int fd = -EBADF;

	what.error = job->image ? job->image(job->userdata, image, &fd, &what.size) : -ENOENT;
	return answer(run, &what, fd);
}

/* Whoever was not told that he may ask has no reason to. */
static int answer_debug(struct run *run, const struct worker_message *m)
{
	const struct worker_job *job = run->job;
	struct worker_image what = {.image = m->image};
	int fd = -EBADF;

	if (!job->request.options.debug || ++run->n_debug > WORKER_MAX_DEBUG)
		return -EBADMSG;
	what.error = job->debug ? job->debug(job->userdata, m->image, m->build_id, m->build_id_size,
					     &fd, &what.size)
				: -ENOENT;
	return answer(run, &what, fd);
}

static int on_progress(struct run *run, const struct worker_message *m)
{
	const struct worker_job *job = run->job;

	if (++run->n_progress >
	    MAX_PROGRESS * MAX_OF((uint64_t)job->request.options.repeat, UINT64_C(1)))
		return -EBADMSG;
	if (job->progress)
		job->progress(job->userdata, m->phase, m->percent);
	return 0;
}

/* Nothing may follow the result. */
static int on_message(struct run *run, const struct worker_message *m)
{
	if (run->have_result || !valid(m) || ++run->n_messages > MAX_MESSAGES)
		return -EBADMSG;
	if (m->kind == WORKER_RESULT) {
		run->have_result = true;
		run->outcome->error = m->error;
		run->outcome->faults = m->faults;
	} else if (m->kind == WORKER_IMAGE) {
		return answer_image(run, m->image);
	} else if (m->kind == WORKER_DEBUG) {
		return answer_debug(run, m);
	} else if (m->kind == WORKER_KEEP) {
		if (run->job->keep)
			run->job->keep(run->job->userdata, m->image, m->offset, m->size);
	} else {
		return on_progress(run, m);
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

/* One that is not ours has only its channel to end with, and nothing comes behind a result. */
static bool is_over(const struct run *run)
{
	return !is_ours(run) && (run->have_result || run->channel < 0);
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

	while (!is_over(run)) {
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
		/* net/unix/af_unix.c, unix_release_sock(): closed with messages unread. */
		run->unread |= (fds[2].revents & POLLERR) != 0;
		r = fds[2].revents ? on_channel(run) : 0;
		if (r < 0)
			return r;
	}
	return 0;
}

/* A worker that talks nonsense has failed, whatever it made the output. */
static int judge(struct run *run, int said)
{
	struct worker_outcome *o = run->outcome;

	if (said == -EBADMSG && o->signal == 0) {
		o->error = -EBADMSG;
		o->lied = true;
	}
	if (o->signal)
		return WORKER_CRASHED;
	if (!run->have_result || o->error || said < 0)
		return WORKER_FAILED;
	return is_ours(run) && o->exit_status != 0 ? WORKER_FAILED : 0;
}

static int finish(struct run *run)
{
	int said, r;

	r = watch(run);
	if (r == -EBADMSG) {
		/* Ended by us, which is no crash of its own. */
		end_worker(run);
		run->outcome->exit_status = -1;
		run->outcome->signal = 0;
		run->outcome->faults = 0;
		run->outcome->error = -EBADMSG;
		run->outcome->lied = true;
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

static int attempt(struct run *run)
{
	int r;

	*run->outcome = (struct worker_outcome){.exit_status = -1};
	run->unread = false;
	r = start(run);
	if (r == 0)
		r = finish(run);
	run->pidfd = close_fd(run->pidfd);
	run->channel = close_fd(run->channel);
	return r;
}

/* Nobody has looked at the request: systemd closes what is beyond MaxConnections= of the socket,
 * and so ends what cannot be started there. */
static bool is_refused(const struct run *run, int r)
{
	if (!run->job->socket || is_ours(run) || run->n_messages > 0)
		return false;
	return r == -EAGAIN || (r == WORKER_FAILED && run->unread);
}

static int pause_before_next(const struct run *run, unsigned ms)
{
	struct pollfd cancel = {.fd = run->job->cancel_fd, .events = POLLIN};
	int left = wait_ms(run->deadline);

	if (left >= 0 && left <= (int)ms)
		return WORKER_TIMEOUT;
	return poll(&cancel, 1, (int)ms) > 0 ? -ECANCELED : 0;
}

static int start_after_all(struct run *run)
{
	int r;

	*run->outcome = (struct worker_outcome){.exit_status = -1, .socket_error = -EAGAIN};
	r = start_program(run);
	if (r == 0)
		r = finish(run);
	close_fd(run->pidfd);
	close_fd(run->channel);
	return r;
}

int worker_run(const struct worker_job *job, struct worker_outcome *ret)
{
	struct run run = {.job = job, .outcome = ret, .pidfd = -EBADF, .channel = -EBADF};
	int r;

	run.deadline = deadline_of(job->timeout_usec);
	r = attempt(&run);
	for (unsigned ms = FIRST_PAUSE_MS; is_refused(&run, r) && ms <= LAST_PAUSE_MS; ms *= 2) {
		r = pause_before_next(&run, ms);
		if (r == 0)
			r = attempt(&run);
	}
	if (is_refused(&run, r) && access(job->program, X_OK) == 0)
		r = start_after_all(&run);
	return r;
}
