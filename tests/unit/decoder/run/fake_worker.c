/*
 * A fake ptsnap-decode for test_worker. The request's report_limit says how it behaves.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>

#include "proto/base.h"
#include "proto/channel.h"
#include "proto/memfd.h"
#include "proto/worker.h"
#include "tests/unit/decoder/run/fake_worker.h"

#define CHANNEL_FD 3

static void say(struct worker_message m)
{
	if (channel_send(CHANNEL_FD, &m, sizeof(m), NULL, 0) < 0)
		_exit(99);
}

static void progress(unsigned phase, unsigned percent)
{
	say((struct worker_message){.kind = WORKER_PROGRESS, .phase = phase, .percent = percent});
}

static void result(int error)
{
	say((struct worker_message){.kind = WORKER_RESULT, .error = error, .faults = 7});
}

/* Counts descriptors besides 0 to 2, the channel, and the two that came over the channel. */
static int foreign_fds(const int *fds)
{
	int n = 0;

	for (int fd = CHANNEL_FD + 1; fd < 1024; fd++)
		n += fd != fds[0] && fd != fds[1] && fcntl(fd, F_GETFD) >= 0;
	return n;
}

static bool signals_are_clean(void)
{
	struct sigaction action;
	sigset_t blocked;

	sigprocmask(SIG_SETMASK, NULL, &blocked);
	sigaction(SIGPIPE, NULL, &action);
	return !sigismember(&blocked, SIGTERM) && action.sa_handler == SIG_DFL;
}

/* Writes FAKE_TALK_BYTES to standard error: FAKE_TALK_LINE first, and then one endless line. */
static void talk(void)
{
	static char rest[1 << 16];
	size_t left = FAKE_TALK_BYTES - (sizeof(FAKE_TALK_LINE) - 1);

	memset(rest, 'x', sizeof(rest));
	if (write(STDERR_FILENO, FAKE_TALK_LINE, sizeof(FAKE_TALK_LINE) - 1) < 0)
		_exit(98);
	while (left > 0) {
		ssize_t n = write(STDERR_FILENO, rest, MIN_OF(left, sizeof(rest)));

		if (n < 0)
			_exit(98);
		left -= (size_t)n;
	}
}

/* Waits for the channel's end, as a worker does. A worker that has closed the channel is killed. */
static void hang(void)
{
	struct pollfd channel = {.fd = CHANNEL_FD};

	while (poll(&channel, 1, -1) != 1 || !(channel.revents & POLLHUP))
		if (channel.revents & POLLNVAL)
			pause();
	_exit(95);
}

static int proper(const struct worker_request *request, const int *fds)
{
	char text[8] = "";

	if (request->version != WORKER_REQUEST_VERSION ||
	    request->options.view != WORKER_VIEW_SUMMARY)
		return 10;
	if (foreign_fds(fds) > 0)
		return 11;
	if (!signals_are_clean())
		return 12;
	if (pread(fds[0], text, 6, 0) != 6 || memfd_write_all(fds[1], text, 6) < 0)
		return 13;
	progress(WORKER_PHASE_DECODE, 0);
	progress(WORKER_PHASE_WRITE, 100);
	result(0);
	return 0;
}

/* Asks for one image after the other, up to the first that is missing. */
static int ask(void)
{
	struct worker_image answer;
	size_t size, n_fds;
	char text[4] = "";
	int fd, r;

	for (uint32_t i = 0;; i++) {
		say((struct worker_message){.kind = WORKER_IMAGE, .image = i});
		r = channel_receive(CHANNEL_FD, &answer, sizeof(answer), &size, &fd, 1, &n_fds);
		if (r != 0 || size != sizeof(answer) || answer.image != i)
			return 20;
		if (answer.error != 0)
			break;
		if (n_fds != 1 || pread(fd, text, 3, 0) != 3 || strcmp(text, "abc") != 0)
			return 21;
		close(fd);
		say((struct worker_message){
			.kind = WORKER_KEEP, .image = i, .offset = 1, .size = answer.size});
	}
	result(n_fds == 0 ? answer.error : -EIO);
	return 0;
}

/* SIZE bytes of the build id 1, 2, 3, ... */
static void say_debug(uint32_t image, uint32_t size)
{
	struct worker_message m = {.kind = WORKER_DEBUG, .image = image, .build_id_size = size};

	for (size_t i = 0; i < sizeof(m.build_id); i++)
		m.build_id[i] = (uint8_t)(i + 1);
	say(m);
}

/* Asks for the debug file of one image after the other, up to the first that is missing. */
static int ask_debug(uint32_t id_size)
{
	struct worker_image answer;
	size_t size, n_fds;
	int fd, r;

	for (uint32_t i = 0;; i++) {
		say_debug(i, id_size);
		r = channel_receive(CHANNEL_FD, &answer, sizeof(answer), &size, &fd, 1, &n_fds);
		if (r != 0 || size != sizeof(answer) || answer.image != i)
			return 22;
		if (answer.error != 0)
			break;
		if (n_fds != 1 || answer.size != 11 + i)
			return 23;
		close(fd);
	}
	result(n_fds == 0 ? answer.error : -EIO);
	return 0;
}

static int count_variables(void)
{
	int n = 0;

	while (environ[n])
		n++;
	return n;
}

static int behave(const struct worker_request *request, const int *fds)
{
	switch (request->options.report_limit) {
	case FAKE_PROPER: return proper(request, fds);
	case FAKE_CRASH: raise(SIGKILL); return 0;
	case FAKE_RESULT_THEN_CRASH:
		result(0);
		raise(SIGKILL);
		return 0;
	case FAKE_RESULT_THEN_EXIT_3: result(0); return 3;
	case FAKE_RESULT_THEN_HANG:
		result(0);
		hang();
		return 0;
	case FAKE_ERROR: result(-EBADMSG); return 1;
	case FAKE_EXIT_WITHOUT_RESULT: return 4;
	case FAKE_TALK:
		talk();
		result(0);
		return 0;
	case FAKE_TALK_AND_CRASH:
		talk();
		raise(SIGKILL);
		return 0;
	case FAKE_ENVIRONMENT: result(-count_variables()); return 0;
	case FAKE_HANG: hang(); return 0;
	case FAKE_CLOSE_THEN_HANG:
		close(CHANNEL_FD);
		hang();
		return 0;
	case FAKE_CLOSE_THEN_EXIT:
		result(0);
		close(CHANNEL_FD);
		return 0;
	case FAKE_SHORT_MESSAGE:
		channel_send(CHANNEL_FD, "x", 1, NULL, 0);
		hang();
		return 0;
	case FAKE_LONG_MESSAGE:
		channel_send(CHANNEL_FD, (char[100]){0}, 100, NULL, 0);
		hang();
		return 0;
	case FAKE_FD_MESSAGE:
		channel_send(CHANNEL_FD,
			     &(struct worker_message){.kind = WORKER_PROGRESS, .phase = 1},
			     sizeof(struct worker_message), (int[]){0}, 1);
		hang();
		return 0;
	case FAKE_WRONG_PERCENT:
		progress(WORKER_PHASE_DECODE, 101);
		hang();
		return 0;
	case FAKE_WRONG_KIND:
		say((struct worker_message){.kind = 99});
		hang();
		return 0;
	case FAKE_WRONG_ERROR:
		result(5);
		hang();
		return 0;
	case FAKE_RESULT_TWICE:
		result(0);
		result(0);
		return 0;
	case FAKE_CHATTER:
		for (;;)
			progress(WORKER_PHASE_DECODE, 1);
	case FAKE_ASK: return ask();
	case FAKE_ASK_DEAF:
		for (;;)
			say((struct worker_message){.kind = WORKER_IMAGE});
	case FAKE_KEEP_AND_END:
		for (uint32_t i = 0; i < 50; i++)
			say((struct worker_message){.kind = WORKER_KEEP, .image = i, .size = 1});
		result(0);
		return 0;
	case FAKE_DEBUG: return ask_debug((uint32_t)request->options.gap);
	case FAKE_DEBUG_DEAF:
		for (;;)
			say_debug(0, 20);
	case FAKE_DEBUG_NO_ID:
		say_debug(0, 0);
		hang();
		return 0;
	case FAKE_DEBUG_LONG_ID:
		say_debug(0, 21);
		hang();
		return 0;
	default: return 98;
	}
}

int main(void)
{
	struct worker_request request;
	size_t size, n_fds;
	int fds[2];

	if (channel_receive(CHANNEL_FD, &request, sizeof(request), &size, fds, 2, &n_fds) != 0)
		return 97;
	if (size != sizeof(request) || n_fds != 2)
		return 96;
	return behave(&request, fds);
}
