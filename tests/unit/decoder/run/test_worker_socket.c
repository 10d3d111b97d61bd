/*
 * worker_run() with a service: a listener of the test, which behaves as systemd with Accept=yes.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "decoder/run/worker_run.h"
#include "proto/base.h"
#include "proto/memfd.h"
#include "tests/support/beside.h"
#include "tests/support/child.h"
#include "tests/unit/decoder/run/fake_worker.h"

#define LONG_USEC 60000000u
#define NOBODY	  65534u

struct setting {
	char program[PATH_MAX];
	char directory[32], path[64];
	pid_t listener;
	unsigned n_closed; /* connections that the listener closes first, without a look at them */
	int ended[2];	   /* pipe: a byte for each worker that ended */
	int bundle, output;
	unsigned n_progress;
	struct worker_job job;
	struct worker_outcome outcome;
};

static void on_progress(void *userdata, unsigned phase, unsigned percent)
{
	struct setting *s = userdata;

	(void)phase;
	(void)percent;
	s->n_progress++;
}

static void become_worker(const struct setting *s, int connection)
{
	char *argv[] = {(char *)(uintptr_t)s->program, NULL};

	if (dup2(connection, 3) < 0 || close_range(4, ~0u, 0) < 0)
		_exit(90);
	execv(s->program, argv);
	_exit(91);
}

/* Serves one connection after the other. */
static void serve(const struct setting *s, int fd)
{
	for (unsigned n = 0;; n++) {
		int connection = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
		pid_t pid;

		if (n < s->n_closed) {
			close(connection);
			continue;
		}
		pid = connection < 0 ? -1 : test_fork();

		if (pid < 0)
			_exit(92);
		if (pid == 0)
			become_worker(s, connection);
		close(connection);
		if (waitpid(pid, NULL, 0) != pid || write(s->ended[1], "", 1) != 1)
			_exit(93);
	}
}

/* Starts the listener as user UID. The listener is ready when this function returns. */
static void begin_listener(struct setting *s, uid_t uid)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), ready[2];
	char byte;

	strcpy(address.sun_path, s->path);
	assert_true(fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0);
	assert_int_equal(chmod(s->path, 0777), 0);
	assert_int_equal(pipe(ready), 0);
	s->listener = test_fork();
	assert_true(s->listener >= 0);
	if (s->listener == 0) {
		if ((uid != geteuid() && setresuid(uid, uid, uid) < 0) || listen(fd, 10) < 0 ||
		    write(ready[1], "", 1) != 1)
			_exit(94);
		serve(s, fd);
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	close(ready[1]);
	close(fd);
}

static void end_listener(struct setting *s)
{
	if (s->listener <= 0)
		return;
	kill(s->listener, SIGKILL);
	waitpid(s->listener, NULL, 0);
	s->listener = 0;
}

static int setup_without(void **state)
{
	struct setting *s = calloc(1, sizeof(*s));

	if (!s || !find_beside("fake_worker", s->program) ||
	    memfd_new("bundle", 0, &s->bundle) < 0 || memfd_new("output", 0, &s->output) < 0 ||
	    memfd_write_all(s->bundle, "bundle", 6) < 0 || pipe2(s->ended, O_CLOEXEC) < 0)
		return -1;
	strcpy(s->directory, "/tmp/ptsnap-test-XXXXXX");
	if (!mkdtemp(s->directory) || chmod(s->directory, 0755) < 0)
		return -1;
	snprintf(s->path, sizeof(s->path), "%s/decode", s->directory);
	s->job = (struct worker_job){.program = "/nonexistent/ptsnap-decode",
				     .socket = s->path,
				     .bundle_fd = s->bundle,
				     .output_fd = s->output,
				     .request.options = {.view = WORKER_VIEW_SUMMARY},
				     .timeout_usec = LONG_USEC,
				     .progress = on_progress,
				     .userdata = s,
				     .cancel_fd = -1};
	*state = s;
	return 0;
}

static int setup(void **state)
{
	if (setup_without(state) < 0)
		return -1;
	begin_listener(*state, geteuid());
	return 0;
}

static int teardown(void **state)
{
	struct setting *s = *state;

	end_listener(s);
	unlink(s->path);
	rmdir(s->directory);
	close_fd(s->bundle);
	close_fd(s->output);
	close_fd(s->ended[0]);
	close_fd(s->ended[1]);
	free(s);
	return 0;
}

static int run(struct setting *s, enum fake_worker how)
{
	s->job.request.options.report_limit = how;
	return worker_run(&s->job, &s->outcome);
}

/* Waits until a worker has ended, in any way. */
static void wait_for_an_end(struct setting *s)
{
	char byte;

	assert_int_equal(read(s->ended[0], &byte, 1), 1);
}

static void worker_run_over_a_socket_gives_its_result(void **state)
{
	struct setting *s = *state;
	char text[8] = "";

	assert_int_equal(run(s, FAKE_PROPER), 0);
	assert_int_equal(s->outcome.exit_status, -1);
	assert_int_equal(s->outcome.signal, 0);
	assert_int_equal(s->outcome.socket_error, 0);
	assert_int_equal(s->outcome.faults, 7);
	assert_int_equal(s->n_progress, 2);
	assert_int_equal(pread(s->output, text, sizeof(text), 0), 6);
	assert_string_equal(text, "bundle");
	wait_for_an_end(s);
	/* The same again. */
	assert_int_equal(run(s, FAKE_PROPER), 0);
}

static void worker_run_over_a_socket_ends_are_told_apart(void **state)
{
	static const struct {
		enum fake_worker how;
		int expected, error;
		bool lied;
	} cases[] = {
		{FAKE_CRASH, WORKER_FAILED, 0, false},
		{FAKE_EXIT_WITHOUT_RESULT, WORKER_FAILED, 0, false},
		{FAKE_ERROR, WORKER_FAILED, -EBADMSG, false},
		{FAKE_RESULT_THEN_CRASH, 0, 0, false},
		{FAKE_RESULT_THEN_HANG, 0, 0, false},
		{FAKE_CLOSE_THEN_EXIT, 0, 0, false},
		{FAKE_SHORT_MESSAGE, WORKER_FAILED, -EBADMSG, true},
		{FAKE_LONG_MESSAGE, WORKER_FAILED, -EBADMSG, true},
		{FAKE_FD_MESSAGE, WORKER_FAILED, -EBADMSG, true},
		{FAKE_WRONG_PERCENT, WORKER_FAILED, -EBADMSG, true},
		{FAKE_WRONG_KIND, WORKER_FAILED, -EBADMSG, true},
		{FAKE_CHATTER, WORKER_FAILED, -EBADMSG, true},
		{FAKE_ASK_DEAF, WORKER_FAILED, -EBADMSG, true},
	};
	struct setting *s = *state;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		assert_int_equal(run(s, cases[i].how), cases[i].expected);
		assert_int_equal(s->outcome.error, cases[i].error);
		assert_int_equal(s->outcome.lied, cases[i].lied);
		assert_int_equal(s->outcome.signal, 0);
		assert_int_equal(s->outcome.exit_status, -1);
		wait_for_an_end(s);
	}
}

static void worker_run_over_a_socket_closes_the_channel_at_the_timeout(void **state)
{
	struct setting *s = *state;

	s->job.timeout_usec = 30000;
	assert_int_equal(run(s, FAKE_HANG), WORKER_TIMEOUT);
	wait_for_an_end(s);
	s->job.timeout_usec = LONG_USEC;
	assert_int_equal(run(s, FAKE_PROPER), 0);
}

static void worker_run_over_a_socket_closes_the_channel_when_cancelled(void **state)
{
	struct setting *s = *state;

	s->job.cancel_fd = eventfd(1, EFD_CLOEXEC);
	assert_int_equal(run(s, FAKE_HANG), -ECANCELED);
	close(s->job.cancel_fd);
	wait_for_an_end(s);
}

/* The listener closes connections at once, as systemd beyond MaxConnections=. */
static void worker_run_where_connections_are_closed_tries_again(void **state)
{
	struct setting *s = *state;
	char byte;

	s->n_closed = 3;
	begin_listener(s, geteuid());
	assert_int_equal(run(s, FAKE_PROPER), 0);
	assert_int_equal(s->outcome.socket_error, 0);
	assert_int_equal(s->n_progress, 2);
	/* A worker that has read the request and then fails is not tried again. */
	wait_for_an_end(s);
	assert_int_equal(run(s, FAKE_CRASH), WORKER_FAILED);
	wait_for_an_end(s);
	assert_int_equal(fcntl(s->ended[0], F_SETFL, O_NONBLOCK), 0);
	assert_int_equal(read(s->ended[0], &byte, 1), -1);
}

static void worker_run_where_all_connections_are_closed_starts_the_program(void **state)
{
	struct setting *s = *state;

	s->n_closed = 1000;
	begin_listener(s, geteuid());
	s->job.program = s->program;
	assert_int_equal(run(s, FAKE_PROPER), 0);
	assert_int_equal(s->outcome.socket_error, -EAGAIN);
	assert_int_equal(s->outcome.exit_status, 0);
}

/* The listener accepts the connection and ends. */
static void worker_run_refused_behind_the_connection_fails(void **state)
{
	struct setting *s = *state;

	strcpy(s->program, "/bin/false");
	begin_listener(s, geteuid());
	assert_int_equal(run(s, FAKE_PROPER), WORKER_FAILED);
	assert_int_equal(s->outcome.error, 0);
	s->job.timeout_usec = 50000;
	assert_int_equal(run(s, FAKE_PROPER), WORKER_TIMEOUT);
	s->job.timeout_usec = LONG_USEC;
	s->job.cancel_fd = eventfd(1, EFD_CLOEXEC);
	assert_int_equal(run(s, FAKE_PROPER), -ECANCELED);
	close(s->job.cancel_fd);
}

static void worker_run_where_nobody_listens_starts_the_program(void **state)
{
	struct setting *s = *state;

	s->job.program = s->program;
	assert_int_equal(run(s, FAKE_PROPER), 0);
	assert_int_equal(s->outcome.socket_error, -ENOENT);
	assert_int_equal(s->outcome.exit_status, 0);
	begin_listener(s, geteuid());
	assert_int_equal(run(s, FAKE_PROPER), 0);
	assert_int_equal(s->outcome.socket_error, 0);
	end_listener(s);
	assert_int_equal(run(s, FAKE_CRASH), WORKER_CRASHED);
	assert_int_equal(s->outcome.socket_error, -ECONNREFUSED);
}

static void worker_run_where_nobody_listens_and_nothing_can_be_started_fails(void **state)
{
	struct setting *s = *state;

	assert_int_equal(run(s, FAKE_PROPER), -ENOENT);
	assert_int_equal(s->outcome.socket_error, 0);
	s->job.socket = "/far/too/long/for/a/socket/far/too/long/for/a/socket/far/too/long/for/a/"
			"socket/far/too/long/for/a/socket/far/too/long/for/a/socket";
	assert_int_equal(run(s, FAKE_PROPER), -ENAMETOOLONG);
}

/* A listener that is neither root nor ourselves gets no bundle. The program is not started either,
 * because the listener may still exist. */
static void worker_run_to_a_strangers_socket_is_refused(void **state)
{
	struct setting *s = *state;

	if (geteuid() != 0)
		skip();
	begin_listener(s, NOBODY);
	s->job.program = s->program;
	assert_int_equal(run(s, FAKE_PROPER), -EPERM);
}

static void worker_run_over_a_socket_leaks_no_fd(void **state)
{
	struct setting *s = *state;
	int before = count_open_fds();

	for (int how = FAKE_PROPER; how <= FAKE_EXIT_WITHOUT_RESULT; how++)
		run(s, (enum fake_worker)how);
	end_listener(s);
	run(s, FAKE_PROPER);
	assert_int_equal(count_open_fds(), before);
}

#define CASE(name)    cmocka_unit_test_setup_teardown(name, setup, teardown)
#define WITHOUT(name) cmocka_unit_test_setup_teardown(name, setup_without, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(worker_run_over_a_socket_gives_its_result),
		CASE(worker_run_over_a_socket_ends_are_told_apart),
		CASE(worker_run_over_a_socket_closes_the_channel_at_the_timeout),
		CASE(worker_run_over_a_socket_closes_the_channel_when_cancelled),
		WITHOUT(worker_run_where_connections_are_closed_tries_again),
		WITHOUT(worker_run_where_all_connections_are_closed_starts_the_program),
		WITHOUT(worker_run_refused_behind_the_connection_fails),
		WITHOUT(worker_run_where_nobody_listens_starts_the_program),
		WITHOUT(worker_run_where_nobody_listens_and_nothing_can_be_started_fails),
		WITHOUT(worker_run_to_a_strangers_socket_is_refused),
		CASE(worker_run_over_a_socket_leaks_no_fd),
	};

	return cmocka_run_group_tests_name("worker_socket", tests, NULL, NULL);
}
