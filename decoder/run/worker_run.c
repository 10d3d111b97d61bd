/*
 * Conducts one decode by ptsnap-decode, from its start to an outcome.
 */
#include "decoder/run/worker_run.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "proto/base.h"
#include "proto/channel.h"

/* Reads of standard error that can empty a pipe, whose capacity is 64 KiB (pipe(7)). */
#define MAX_LAST_READS 17u
/* More messages than a dead worker can have left in the socket's buffer. */
#define MAX_LEFTOVERS 4096u
/* Limits of one decode. Progress is forwarded to others, and reported about a hundred times for
 * each pass over the trace. A decode may ask for and need many pieces of images. */
#define MAX_PROGRESS UINT64_C(4096)
#define MAX_MESSAGES (UINT64_C(16) << 20)
/* include/linux/err.h */
#define MAX_ERRNO 4095

/* Pauses between attempts when a connection was closed before anything was read from it. Each pause
 * is twice as long as the one before. */
#define FIRST_PAUSE_MS 100u
#define LAST_PAUSE_MS  1600u

struct run {
	const struct worker_job *job;
	struct worker_outcome *outcome;
	pid_t pid;   /* 0: the worker is of a service */
	int pidfd;   /* -EBADF: the worker is of a service */
	int channel; /* our end; -EBADF once the worker closed its end */
	int said; /* where the worker's standard error comes out; -EBADF: nothing comes any more */
	bool have_result;
	bool unread; /* the connection was closed before the request was read */
	uint64_t n_messages, n_progress, n_debug;
	uint64_t deadline; /* CLOCK_MONOTONIC, ns; UINT64_MAX: none */
};

/* Returns the milliseconds until DEADLINE for poll(2), rounded up; 0: the deadline has passed. */
static int wait_ms(uint64_t deadline)
{
	uint64_t now = now_ns(CLOCK_MONOTONIC);

	if (deadline == UINT64_MAX)
		return -1;
	if (now >= deadline)
		return 0;
	return (int)MIN_OF((deadline - now - 1) / 1000000u + 1, (uint64_t)INT32_MAX);
}

/* The request waits in the socket before the worker runs. A worker that dies at once is then found
 * by its end, and not by a failing write. After the request only watch() waits for the worker. */
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
	CLEANUP_CLOSE int ours = -EBADF, theirs = -EBADF;
	CLEANUP_CLOSE int said = -EBADF, saying = -EBADF;
	int pair[2];
	int r;

	r = channel_pair(pair);
	if (r < 0)
		return r;
	ours = pair[0];
	theirs = pair[1];
	if (pipe2(pair, O_CLOEXEC) < 0)
		return -errno;
	said = pair[0];
	saying = pair[1];
	if (fcntl(said, F_SETFL, O_NONBLOCK) < 0)
		return -errno;
	r = send_request(run->job, ours);
	if (r == 0)
		r = worker_spawn(run->job->program, theirs, saying, &run->pid, &run->pidfd);
	if (r == 0) {
		run->channel = take_fd(&ours);
		run->said = take_fd(&said);
	}
	return r;
}

/* Connects to the service, or starts the program if nobody listens there. */
static int start_service(struct run *run)
{
	const struct worker_job *job = run->job;
	CLEANUP_CLOSE int ours = -EBADF;
	int r;

	r = worker_connect(job->socket, &ours);
	if (r == 0)
		r = send_request(job, ours);
	/* The worker ended at once: the same as a worker that ends later without a word. */
	run->unread = r == -EPIPE || r == -ECONNRESET;
	if (r == 0 || run->unread) {
		run->channel = take_fd(&ours);
		return 0;
	}
	if ((r == -ENOENT || r == -ECONNREFUSED || r == -EACCES) &&
	    access(job->program, X_OK) == 0) {
		run->outcome->socket_error = r;
		return start_program(run);
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

/* Until the worker is reaped, nobody else has its pid. A service's worker ends by itself when its
 * channel does; until then it may write to the output, which the caller must limit. */
static int end_worker(struct run *run)
{
	/* Before the channel closes: a worker that sees that may end by itself first. */
	if (is_ours(run))
		kill(run->pid, SIGKILL);
	run->channel = close_fd(run->channel);
	return reap(run);
}

static bool is_valid(const struct worker_message *m)
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

/* A worker that asks waits for the answer, and so the socket has room. A worker that asks without
 * reading answers fills the socket, and cannot be answered any more. */
static int answer(struct run *run, const struct worker_image *what, int fd)
{
	int r = channel_send(run->channel, what, sizeof(*what), &fd, what->error == 0);

	/* watch() finds a worker that has died. A worker without an answer would wait for ever. */
	return r == 0 || r == -EPIPE || r == -ECONNRESET ? 0 : -EBADMSG;
}

static int on_message(struct run *run, const struct worker_message *m)
{
	const struct worker_job *job = run->job;
	struct worker_image what = {.image = m->image, .error = -ENOENT};
	int fd = -EBADF;

	/* Nothing may follow the result. */
	if (run->have_result || !is_valid(m) || ++run->n_messages > MAX_MESSAGES)
		return -EBADMSG;
	switch (m->kind) {
	case WORKER_RESULT:
		run->have_result = true;
		run->outcome->error = m->error;
		run->outcome->faults = m->faults;
		return 0;
	case WORKER_IMAGE:
		if (job->image)
			what.error = job->image(job->userdata, m->image, &fd, &what.size);
		return answer(run, &what, fd);
	case WORKER_DEBUG:
		/* Without the option no worker asks. */
		if (!job->request.options.debug || ++run->n_debug > WORKER_MAX_DEBUG)
			return -EBADMSG;
		if (job->debug)
			what.error = job->debug(job->userdata, m->image, m->build_id,
						m->build_id_size, &fd, &what.size);
		return answer(run, &what, fd);
	case WORKER_KEEP:
		if (job->keep)
			job->keep(job->userdata, m->image, m->offset, m->size);
		return 0;
	default: /* WORKER_PROGRESS */
		if (++run->n_progress > MAX_PROGRESS * MAX_OF(job->request.options.repeat, 1u))
			return -EBADMSG;
		if (job->progress)
			job->progress(job->userdata, m->phase, m->percent);
		return 0;
	}
}

/* Receives one message. 0; CHANNEL_END; -EAGAIN: there is none; -EBADMSG: it is invalid. */
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

/* Takes some of what the worker wrote to standard error. False: nothing more is there now. */
static bool listen_to(struct run *run)
{
	struct worker_said *said = &run->outcome->said;
	char more[WORKER_MAX_SAID];
	size_t room = sizeof(said->bytes) - said->n;
	ssize_t n = read(run->said, more, sizeof(more));

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (n <= 0) {
		run->said = close_fd(run->said);
		return false;
	}
	room = MIN_OF(room, (size_t)n);
	memcpy(said->bytes + said->n, more, room);
	said->n += room;
	said->dropped += (size_t)n - room;
	return true;
}

bool worker_said_line(const struct worker_said *said, size_t *at, char *line, size_t size)
{
	size_t n = 0;

	while (*at < said->n && said->bytes[*at] == '\n')
		++*at;
	for (; *at < said->n && said->bytes[*at] != '\n' && n + 1 < size; ++*at)
		line[n++] = said->bytes[*at] == '\0' ? '?' : said->bytes[*at];
	line[n] = '\0';
	return n > 0;
}

/* Waits for the worker's end. 0: the worker has ended; WORKER_TIMEOUT or -errno: it must be ended
 * (-EBADMSG: because of an invalid message). */
static int watch(struct run *run)
{
	struct pollfd fds[] = {
		{.fd = run->pidfd, .events = POLLIN},
		{.fd = run->job->cancel_fd, .events = POLLIN},
		{.fd = run->channel, .events = POLLIN},
		{.fd = run->said, .events = POLLIN},
	};
	int timeout, r;

	/* Nothing comes behind a result. A service's worker has only its channel to end with. */
	while (is_ours(run) || (!run->have_result && run->channel >= 0)) {
		timeout = wait_ms(run->deadline);
		fds[2].fd = run->channel;
		fds[3].fd = run->said;
		r = poll(fds, ARRAY_SIZE(fds), timeout);
		if (r < 0 && errno != EINTR)
			return -errno;
		if (r < 0)
			continue;
		if (fds[3].revents)
			(void)listen_to(run);
		if (fds[0].revents)
			return 0;
		if (fds[1].revents)
			return -ECANCELED;
		if (timeout == 0)
			return WORKER_TIMEOUT;
		/* POLLERR: the other end was closed with unread messages (net/unix/af_unix.c,
		 * unix_release_sock()). */
		run->unread |= (fds[2].revents & POLLERR) != 0;
		r = fds[2].revents ? receive(run) : 0;
		if (r == CHANNEL_END)
			run->channel = close_fd(run->channel);
		else if (r < 0 && r != -EAGAIN)
			return r;
	}
	return 0;
}

static int finish(struct run *run)
{
	struct worker_outcome *o = run->outcome;
	int said = 0, r;

	r = watch(run);
	if (r == -EBADMSG) {
		end_worker(run);
		/* Our signal is no crash of the worker. */
		*o = (struct worker_outcome){.exit_status = -1,
					     .socket_error = o->socket_error,
					     .error = -EBADMSG,
					     .lied = true,
					     .said = o->said};
		return WORKER_FAILED;
	}
	if (r != 0) {
		end_worker(run);
		return r;
	}
	/* Messages that the worker sent before its end. */
	for (unsigned i = 0; i < MAX_LEFTOVERS && run->channel >= 0 && said == 0; i++)
		said = receive(run);
	if (said == CHANNEL_END || said == -EAGAIN)
		said = 0;
	r = reap(run);
	if (r < 0)
		return r;
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

/* Runs a decode once: by the service if SERVICE, else by a program of our own. */
static int attempt(struct run *run, bool service, int socket_error)
{
	int r;

	*run->outcome = (struct worker_outcome){.exit_status = -1, .socket_error = socket_error};
	run->unread = false;
	r = service ? start_service(run) : start_program(run);
	if (r == 0)
		r = finish(run);
	/* The worker wrote this before its end. */
	for (unsigned i = 0; i < MAX_LAST_READS && run->said >= 0 && listen_to(run); i++)
		;
	run->said = close_fd(run->said);
	run->pidfd = close_fd(run->pidfd);
	run->channel = close_fd(run->channel);
	return r;
}

/* Whether the request was never read: systemd closes connections beyond the socket's
 * MaxConnections=, and connections for which it cannot start a worker. */
static bool is_refused(const struct run *run, int r)
{
	if (!run->job->socket || is_ours(run) || run->n_messages > 0)
		return false;
	return r == -EAGAIN || (r == WORKER_FAILED && run->unread);
}

int worker_run(const struct worker_job *job, struct worker_outcome *ret)
{
	struct run run = {.job = job,
			  .outcome = ret,
			  .pidfd = -EBADF,
			  .channel = -EBADF,
			  .said = -EBADF,
			  .deadline = UINT64_MAX};
	struct pollfd cancel = {.fd = job->cancel_fd, .events = POLLIN};
	uint64_t ns;
	int r;

	if (job->timeout_usec == 0 || __builtin_mul_overflow(job->timeout_usec, 1000u, &ns) ||
	    __builtin_add_overflow(now_ns(CLOCK_MONOTONIC), ns, &run.deadline))
		run.deadline = UINT64_MAX;
	r = attempt(&run, job->socket != NULL, 0);
	for (unsigned ms = FIRST_PAUSE_MS; is_refused(&run, r) && ms <= LAST_PAUSE_MS; ms *= 2) {
		int left = wait_ms(run.deadline);

		if (left >= 0 && left <= (int)ms)
			return WORKER_TIMEOUT;
		if (poll(&cancel, 1, (int)ms) > 0)
			return -ECANCELED;
		r = attempt(&run, true, 0);
	}
	if (is_refused(&run, r) && access(job->program, X_OK) == 0)
		r = attempt(&run, false, -EAGAIN);
	return r;
}
