#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "decoder/run/worker_run.h"
#include "proto/base.h"
#include "proto/memfd.h"
#include "tests/support/beside.h"
#include "tests/unit/decoder/run/fake_worker.h"

/* Long enough for a loaded machine. No test waits for this time to pass. */
#define LONG_USEC 60000000u

struct heard {
	unsigned n, last_phase, last_percent;
};

struct setting {
	char program[PATH_MAX];
	int bundle, output;
	struct heard heard;
	struct worker_job job;
	struct worker_outcome outcome;
};

static void on_progress(void *userdata, unsigned phase, unsigned percent)
{
	struct heard *h = userdata;

	h->n++;
	h->last_phase = phase;
	h->last_percent = percent;
}

static int setup(void **state)
{
	struct setting *s = calloc(1, sizeof(*s));

	if (!s || !find_beside("fake_worker", s->program) ||
	    memfd_new("bundle", 0, &s->bundle) < 0 || memfd_new("output", 0, &s->output) < 0 ||
	    memfd_write_all(s->bundle, "bundle", 6) < 0)
		return -1;
	s->job = (struct worker_job){.program = s->program,
				     .bundle_fd = s->bundle,
				     .output_fd = s->output,
				     .request.options = {.view = WORKER_VIEW_SUMMARY},
				     .timeout_usec = LONG_USEC,
				     .progress = on_progress,
				     .userdata = &s->heard,
				     .cancel_fd = -1};
	*state = s;
	return 0;
}

/* No child may be left. */
static int teardown(void **state)
{
	struct setting *s = *state;
	bool reaped = waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD;

	close_fd(s->bundle);
	close_fd(s->output);
	free(s);
	return reaped ? 0 : -1;
}

static int run(struct setting *s, enum fake_worker how)
{
	s->job.request.options.report_limit = how;
	return worker_run(&s->job, &s->outcome);
}

static void worker_run_proper_gives_its_result(void **state)
{
	struct setting *s = *state;
	int stray = dup2(s->bundle, 500); /* not close-on-exec */
	char text[8] = "";

	assert_int_equal(run(s, FAKE_PROPER), 0);
	assert_int_equal(s->outcome.exit_status, 0);
	assert_int_equal(s->outcome.signal, 0);
	assert_int_equal(s->outcome.error, 0);
	assert_int_equal(s->outcome.faults, 7);
	assert_int_equal(s->heard.n, 2);
	assert_int_equal(s->heard.last_phase, WORKER_PHASE_WRITE);
	assert_int_equal(s->heard.last_percent, 100);
	assert_int_equal(pread(s->output, text, sizeof(text), 0), 6);
	assert_string_equal(text, "bundle");
	close(stray);
}

static void worker_run_without_progress_or_timeout_works(void **state)
{
	struct setting *s = *state;

	s->job.progress = NULL;
	s->job.timeout_usec = 0;
	assert_int_equal(run(s, FAKE_PROPER), 0);
	s->job.timeout_usec = UINT64_MAX;
	assert_int_equal(run(s, FAKE_PROPER), 0);
}

static void worker_run_resets_signals_of_the_caller(void **state)
{
	struct setting *s = *state;
	sigset_t all, before;
	int r;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &before);
	signal(SIGPIPE, SIG_IGN);
	r = run(s, FAKE_PROPER);
	signal(SIGPIPE, SIG_DFL);
	sigprocmask(SIG_SETMASK, &before, NULL);
	assert_int_equal(s->outcome.exit_status, 0);
	assert_int_equal(r, 0);
}

static void worker_run_ends_are_told_apart(void **state)
{
	static const struct {
		enum fake_worker how;
		int expected;
		struct {
			int signal, exit_status, error;
			uint64_t faults;
		} outcome;
	} cases[] = {
		{FAKE_CRASH, WORKER_CRASHED, {SIGKILL, -1, 0, 0}},
		{FAKE_RESULT_THEN_CRASH, WORKER_CRASHED, {SIGKILL, -1, 0, 7}},
		{FAKE_RESULT_THEN_EXIT_3, WORKER_FAILED, {0, 3, 0, 7}},
		{FAKE_ERROR, WORKER_FAILED, {0, 1, -EBADMSG, 7}},
		{FAKE_EXIT_WITHOUT_RESULT, WORKER_FAILED, {0, 4, 0, 0}},
		{FAKE_CLOSE_THEN_EXIT, 0, {0, 0, 0, 7}},
		{FAKE_SHORT_MESSAGE, WORKER_FAILED, {0, -1, -EBADMSG, 0}},
		{FAKE_LONG_MESSAGE, WORKER_FAILED, {0, -1, -EBADMSG, 0}},
		{FAKE_FD_MESSAGE, WORKER_FAILED, {0, -1, -EBADMSG, 0}},
		{FAKE_WRONG_PERCENT, WORKER_FAILED, {0, -1, -EBADMSG, 0}},
		{FAKE_WRONG_KIND, WORKER_FAILED, {0, -1, -EBADMSG, 0}},
		{FAKE_WRONG_ERROR, WORKER_FAILED, {0, -1, -EBADMSG, 0}},
	};
	struct setting *s = *state;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		assert_int_equal(run(s, cases[i].how), cases[i].expected);
		assert_int_equal(s->outcome.signal, cases[i].outcome.signal);
		assert_int_equal(s->outcome.exit_status, cases[i].outcome.exit_status);
		assert_int_equal(s->outcome.error, cases[i].outcome.error);
		assert_int_equal(s->outcome.faults, cases[i].outcome.faults);
	}
}

static void worker_run_second_result_is_refused(void **state)
{
	struct setting *s = *state;

	assert_int_equal(run(s, FAKE_RESULT_TWICE), WORKER_FAILED);
	assert_int_equal(s->outcome.error, -EBADMSG);
	assert_true(s->outcome.lied);
}

/* The worker ends without reading the request. */
static void worker_run_of_another_program_fails(void **state)
{
	struct setting *s = *state;

	s->job.program = "/bin/false";
	assert_int_equal(run(s, FAKE_PROPER), WORKER_FAILED);
	assert_int_equal(s->outcome.exit_status, 1);
	assert_int_equal(s->outcome.error, 0);
	s->job.program = "/bin/true";
	assert_int_equal(run(s, FAKE_PROPER), WORKER_FAILED);
	assert_int_equal(s->outcome.exit_status, 0);
}

static void worker_run_without_a_program_says_so(void **state)
{
	struct setting *s = *state;

	s->job.program = "/nonexistent/ptsnap-decode";
	assert_int_equal(run(s, FAKE_PROPER), -ENOENT);
	assert_int_equal(s->outcome.exit_status, -1);
	s->job.program = "/";
	assert_int_equal(run(s, FAKE_PROPER), -EACCES);
}

static void worker_run_hanging_is_killed_at_the_timeout(void **state)
{
	static const enum fake_worker how[] = {FAKE_HANG, FAKE_CLOSE_THEN_HANG,
					       FAKE_RESULT_THEN_HANG};
	struct setting *s = *state;

	s->job.timeout_usec = 30000;
	for (size_t i = 0; i < ARRAY_SIZE(how); i++) {
		assert_int_equal(run(s, how[i]), WORKER_TIMEOUT);
		assert_int_equal(s->outcome.signal, SIGKILL);
		assert_int_equal(s->outcome.exit_status, -1);
	}
}

static void worker_run_cancelled_is_killed(void **state)
{
	struct setting *s = *state;

	s->job.cancel_fd = eventfd(1, EFD_CLOEXEC);
	assert_int_equal(run(s, FAKE_HANG), -ECANCELED);
	close(s->job.cancel_fd);
}

static void worker_run_bad_fd_is_an_error(void **state)
{
	struct setting *s = *state;

	s->job.bundle_fd = -1;
	assert_int_equal(run(s, FAKE_PROPER), -EBADF);
}

/* Waits in the first report of progress until the worker has ended; all its other messages are then
 * unread. */
static void on_progress_wait_for_the_end(void *userdata, unsigned phase, unsigned percent)
{
	siginfo_t info;

	on_progress(userdata, phase, percent);
	assert_int_equal(waitid(P_ALL, 0, &info, WEXITED | WNOWAIT), 0);
}

static void worker_run_last_words_of_the_dead_are_heard(void **state)
{
	struct setting *s = *state;

	s->job.progress = on_progress_wait_for_the_end;
	assert_int_equal(run(s, FAKE_PROPER), 0);
	assert_int_equal(s->heard.n, 2);
	assert_int_equal(s->outcome.faults, 7);
}

static void worker_run_hears_the_beginning_of_standard_error(void **state)
{
	static const enum fake_worker how[] = {FAKE_TALK, FAKE_TALK_AND_CRASH};
	static const int expected[] = {0, WORKER_CRASHED};
	struct setting *s = *state;
	char line[64];

	for (size_t i = 0; i < ARRAY_SIZE(how); i++) {
		const struct worker_said *said = &s->outcome.said;
		size_t at = 0, n = 0;

		assert_int_equal(run(s, how[i]), expected[i]);
		assert_int_equal(said->n, WORKER_MAX_SAID);
		assert_int_equal(said->n + said->dropped, FAKE_TALK_BYTES);
		assert_true(worker_said_line(said, &at, line, sizeof(line)));
		assert_string_equal(line, "<0>ptsnapd: \x1b[2Jall is well?!");
		assert_true(worker_said_line(said, &at, line, sizeof(line)));
		assert_string_equal(line, "second");
		while (worker_said_line(said, &at, line, sizeof(line))) {
			assert_int_equal(strspn(line, "x"), strlen(line));
			n += strlen(line);
		}
		assert_int_equal(n, WORKER_MAX_SAID - (sizeof(FAKE_TALK_LINE) - 1));
	}
	/* The figures are those of the last attempt alone. */
	assert_int_equal(run(s, FAKE_PROPER), 0);
	assert_int_equal(s->outcome.said.n, 0);
	assert_int_equal(s->outcome.said.dropped, 0);
}

static void worker_run_gives_no_environment(void **state)
{
	struct setting *s = *state;

	setenv("LD_BIND_NOW", "1", 1);
	assert_int_equal(run(s, FAKE_ENVIRONMENT), 0);
	assert_int_equal(s->outcome.error, 0);
	unsetenv("LD_BIND_NOW");
}

static void worker_run_leaks_no_fd(void **state)
{
	struct setting *s = *state;
	int before = count_open_fds();

	for (int how = FAKE_PROPER; how <= FAKE_EXIT_WITHOUT_RESULT; how++)
		run(s, (enum fake_worker)how);
	s->job.program = "/nonexistent";
	run(s, FAKE_PROPER);
	assert_int_equal(count_open_fds(), before);
}

struct asked {
	int fd;
	unsigned n_images, n_kept;
	uint64_t kept; /* the sum of all that was said */
};

/* Two images of 11 and 12 bytes. */
static int on_image(void *userdata, uint32_t image, int *ret_fd, uint64_t *ret_size)
{
	struct asked *a = userdata;

	a->n_images++;
	*ret_fd = a->fd;
	*ret_size = 11 + image;
	return image < 2 ? 0 : -ENODATA;
}

static void on_keep(void *userdata, uint32_t image, uint64_t offset, uint64_t size)
{
	struct asked *a = userdata;

	a->n_kept++;
	a->kept += image * 1000 + offset * 100 + size;
}

static void worker_run_images_are_given_and_what_is_kept_is_heard(void **state)
{
	struct setting *s = *state;
	struct asked asked = {0};
	int before;

	assert_int_equal(memfd_new("image", 0, &asked.fd), 0);
	assert_int_equal(memfd_write_all(asked.fd, "abc", 3), 0);
	s->job.progress = NULL;
	s->job.image = on_image;
	s->job.keep = on_keep;
	s->job.userdata = &asked;
	before = count_open_fds();
	assert_int_equal(run(s, FAKE_ASK), WORKER_FAILED);
	assert_int_equal(s->outcome.error, -ENODATA);
	assert_int_equal(s->outcome.exit_status, 0);
	assert_int_equal(asked.n_images, 3);
	assert_int_equal(asked.n_kept, 2);
	assert_int_equal(asked.kept, 111 + 1112);
	/* A message that the job does not want is valid. */
	s->job.keep = NULL;
	assert_int_equal(run(s, FAKE_ASK), WORKER_FAILED);
	assert_int_equal(s->outcome.error, -ENODATA);
	s->job.image = NULL;
	assert_int_equal(run(s, FAKE_ASK), WORKER_FAILED);
	assert_int_equal(s->outcome.error, -ENOENT);
	assert_int_equal(count_open_fds(), before);
	close(asked.fd);
}

struct debug_asked {
	int fd;
	uint32_t n, there; /* questions; for so many images there is a file */
	size_t id_size;
};

static int on_debug(void *userdata, uint32_t image, const uint8_t *build_id, size_t id_size,
		    int *ret_fd, uint64_t *ret_size)
{
	struct debug_asked *a = userdata;

	assert_true(image == a->n++ || a->there == 0);
	for (size_t i = 0; i < id_size; i++)
		assert_int_equal(build_id[i], i + 1);
	a->id_size = id_size;
	*ret_fd = a->fd;
	*ret_size = 11 + image;
	return image < a->there ? 0 : -ENOENT;
}

static void ask_debug(struct setting *s, struct debug_asked *a, uint32_t there)
{
	a->n = 0;
	a->there = there;
	s->job.progress = NULL;
	s->job.request.options.debug = 1;
	s->job.debug = on_debug;
	s->job.userdata = a;
}

static void worker_run_files_apart_are_given(void **state)
{
	struct debug_asked asked = {.fd = ((struct setting *)*state)->bundle};
	struct setting *s = *state;
	int before = count_open_fds();

	for (s->job.request.options.gap = 1; s->job.request.options.gap <= 20;
	     s->job.request.options.gap += 19) {
		ask_debug(s, &asked, 2);
		assert_int_equal(run(s, FAKE_DEBUG), WORKER_FAILED);
		assert_int_equal(s->outcome.error, -ENOENT);
		assert_int_equal(s->outcome.exit_status, 0);
		assert_false(s->outcome.lied);
		assert_int_equal(asked.n, 3);
		assert_int_equal(asked.id_size, s->job.request.options.gap);
	}
	/* Without a function the request is answered, because the options say so. */
	s->job.request.options.gap = 20;
	s->job.debug = NULL;
	assert_int_equal(run(s, FAKE_DEBUG), WORKER_FAILED);
	assert_int_equal(s->outcome.error, -ENOENT);
	assert_false(s->outcome.lied);
	assert_int_equal(count_open_fds(), before);
}

static void worker_run_files_apart_that_none_offered_are_a_lie(void **state)
{
	struct debug_asked asked = {.fd = -1};
	struct setting *s = *state;

	ask_debug(s, &asked, 2);
	s->job.request.options.gap = 20;
	s->job.request.options.debug = 0;
	assert_int_equal(run(s, FAKE_DEBUG), WORKER_FAILED);
	assert_int_equal(s->outcome.error, -EBADMSG);
	assert_true(s->outcome.lied);
	assert_int_equal(asked.n, 0);
}

static void worker_run_files_apart_of_no_build_id_are_a_lie(void **state)
{
	static const enum fake_worker how[] = {FAKE_DEBUG_NO_ID, FAKE_DEBUG_LONG_ID};
	struct debug_asked asked = {.fd = -1};
	struct setting *s = *state;

	for (size_t i = 0; i < ARRAY_SIZE(how); i++) {
		ask_debug(s, &asked, 2);
		assert_int_equal(run(s, how[i]), WORKER_FAILED);
		assert_true(s->outcome.lied);
		assert_int_equal(asked.n, 0);
	}
}

/* A worker that asks more often than the limit is ended. */
static void worker_run_files_apart_without_end_are_a_lie(void **state)
{
	struct debug_asked asked = {.fd = ((struct setting *)*state)->bundle};
	struct setting *s = *state;
	int before = count_open_fds();

	s->job.request.options.gap = 20;
	ask_debug(s, &asked, WORKER_MAX_DEBUG - 1);
	assert_int_equal(run(s, FAKE_DEBUG), WORKER_FAILED);
	assert_int_equal(s->outcome.error, -ENOENT);
	assert_int_equal(asked.n, WORKER_MAX_DEBUG);
	ask_debug(s, &asked, UINT32_MAX);
	assert_int_equal(run(s, FAKE_DEBUG), WORKER_FAILED);
	assert_true(s->outcome.lied);
	assert_int_equal(asked.n, WORKER_MAX_DEBUG);
	ask_debug(s, &asked, 0);
	assert_int_equal(run(s, FAKE_DEBUG_DEAF), WORKER_FAILED);
	assert_true(s->outcome.lied);
	assert_int_equal(count_open_fds(), before);
}

static void worker_run_asking_without_listening_is_ended(void **state)
{
	struct setting *s = *state;

	assert_int_equal(run(s, FAKE_ASK_DEAF), WORKER_FAILED);
	assert_int_equal(s->outcome.error, -EBADMSG);
}

static void worker_run_talking_without_end_is_ended(void **state)
{
	struct setting *s = *state;

	assert_int_equal(run(s, FAKE_CHATTER), WORKER_FAILED);
	assert_int_equal(s->outcome.error, -EBADMSG);
	assert_true(s->outcome.lied);
	assert_in_range(s->heard.n, 100, 10000);
}

static void worker_run_what_the_dead_kept_is_heard(void **state)
{
	struct setting *s = *state;
	struct asked asked = {0};

	s->job.progress = NULL;
	s->job.keep = on_keep;
	s->job.userdata = &asked;
	assert_int_equal(run(s, FAKE_KEEP_AND_END), 0);
	assert_int_equal(asked.n_kept, 50);
	assert_int_equal(asked.kept, 50 + 1000 * 49 * 25);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(worker_run_proper_gives_its_result),
		CASE(worker_run_without_progress_or_timeout_works),
		CASE(worker_run_resets_signals_of_the_caller),
		CASE(worker_run_ends_are_told_apart),
		CASE(worker_run_second_result_is_refused),
		CASE(worker_run_of_another_program_fails),
		CASE(worker_run_without_a_program_says_so),
		CASE(worker_run_hanging_is_killed_at_the_timeout),
		CASE(worker_run_cancelled_is_killed),
		CASE(worker_run_bad_fd_is_an_error),
		CASE(worker_run_last_words_of_the_dead_are_heard),
		CASE(worker_run_hears_the_beginning_of_standard_error),
		CASE(worker_run_gives_no_environment),
		CASE(worker_run_leaks_no_fd),
		CASE(worker_run_images_are_given_and_what_is_kept_is_heard),
		CASE(worker_run_files_apart_are_given),
		CASE(worker_run_files_apart_that_none_offered_are_a_lie),
		CASE(worker_run_files_apart_of_no_build_id_are_a_lie),
		CASE(worker_run_files_apart_without_end_are_a_lie),
		CASE(worker_run_asking_without_listening_is_ended),
		CASE(worker_run_talking_without_end_is_ended),
		CASE(worker_run_what_the_dead_kept_is_heard),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
