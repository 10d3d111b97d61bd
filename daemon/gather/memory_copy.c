/*
 * Copies memory of other processes by a helper process.
 *
 * The helper is forked for the first piece, and ends when the channel is closed. After fork(2) the
 * helper makes system calls only, as other threads may have held any lock at the fork.
 */
#include "daemon/gather/memory_read.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "proto/base.h"
#include "proto/channel.h"
#include "proto/memfd.h"

#define BUFFER 65536u

struct question {
	uint64_t address, size;
};

void memory_copy_init(struct memory_copy *c)
{
	*c = (struct memory_copy){.channel = -EBADF, .patience_ms = MEMORY_COPY_PATIENCE_MS};
}

void memory_copy_done(struct memory_copy *c)
{
	if (c->channel < 0)
		return;
	c->channel = close_fd(c->channel);
	while (c->helper > 0 && waitpid(c->helper, NULL, 0) < 0 && errno == EINTR)
		;
}

/* --- The helper --- */

static uint64_t copy(const struct question *q, int mem, int to)
{
	uint8_t buffer[BUFFER];
	uint64_t done = 0;

	while (done < q->size) {
		size_t wanted = (size_t)MIN_OF(q->size - done, (uint64_t)sizeof(buffer));
		ssize_t n = pread(mem, buffer, wanted, (off_t)(q->address + done));

		if (n <= 0 || memfd_write_all(to, buffer, (size_t)n) < 0)
			break;
		done += (uint64_t)n;
	}
	return done;
}

static void __attribute__((noreturn)) serve(int channel)
{
	struct question q;
	size_t size, n_fds;
	uint64_t done;
	int fds[2];

	prctl(PR_SET_NAME, "ptsnapd-memory");
	/* The helper inherited our perf events and the lock of the state directory. */
	if (channel > 0)
		close_range(0, (unsigned)channel - 1, 0);
	close_range((unsigned)channel + 1, ~0u, 0);
	while (channel_receive(channel, &q, sizeof(q), &size, fds, 2, &n_fds) == 0 &&
	       size == sizeof(q) && n_fds == 2) {
		done = copy(&q, fds[0], fds[1]);
		close(fds[0]);
		close(fds[1]);
		if (channel_send(channel, &done, sizeof(done), NULL, 0) < 0)
			break;
	}
	_exit(0);
}

/* --- Our end --- */

/* Waits for the helper's answer. 0; -ETIMEDOUT; -errno: the helper is gone. */
static int receive_answer(const struct memory_copy *c, uint64_t *ret_word)
{
	struct pollfd p = {.fd = c->channel, .events = POLLIN};
	size_t size, n_fds;
	int r;

	do
		r = poll(&p, 1, c->patience_ms);
	while (r < 0 && errno == EINTR);
	if (r <= 0)
		return r < 0 ? -errno : -ETIMEDOUT;
	r = channel_receive(c->channel, ret_word, sizeof(*ret_word), &size, NULL, 0, &n_fds);
	return r == 0 && size == sizeof(*ret_word) ? 0 : -EPIPE;
}

static int start(struct memory_copy *c)
{
	int pair[2], r = channel_pair(pair);

	if (r < 0)
		return r;
	c->helper = fork();
	r = c->helper < 0 ? -errno : 0;
	if (c->helper == 0)
		serve(pair[1]);
	close_fd(pair[1]);
	c->channel = pair[0];
	return r;
}

ssize_t memory_copy(struct memory_copy *c, int mem, uint64_t address, size_t size, int to)
{
	const struct question q = {address, size};
	const int fds[] = {mem, to};
	uint64_t done = 0;
	int r = 0;

	if (c->left >= MEMORY_COPY_MAX_LEFT)
		return -ETIMEDOUT;
	if (c->channel < 0)
		r = start(c);
	if (r == 0)
		r = channel_send(c->channel, &q, sizeof(q), fds, ARRAY_SIZE(fds));
	if (r == 0)
		r = receive_answer(c, &done);
	if (r == 0)
		return (ssize_t)MIN_OF(done, (uint64_t)size);
	if (r != -ETIMEDOUT) {
		memory_copy_done(c);
		return r;
	}
	/* Kill the helper, which hangs, and do not wait for its end, as that may take long. */
	kill(c->helper, SIGKILL);
	(void)waitpid(c->helper, NULL, WNOHANG);
	c->channel = close_fd(c->channel);
	c->left++;
	return r;
}
