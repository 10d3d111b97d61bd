/*
 * Whatever the decoder does, the job ends with the right message, and asks again for less where
 * that may help.
 */
#include "daemon/job/job_private.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "proto/memfd.h"
#include "tests/support/beside.h"
#include "tests/support/child.h"
#include "tests/unit/daemon/job/debug_directory.h"

#define IMAGE_BYTES 0x1000u

struct setting {
	char program[PATH_MAX];
	struct config config;
	struct job *job;
};

/* Two images: the first with bytes, the second missing. */
static void make_images(struct job *job)
{
	struct evidence *e = calloc(1, sizeof(*e));

	manifest_init(&e->manifest);
	e->images = calloc(2, sizeof(*e->images));
	for (int i = 0; i < 2; i++) {
		assert_non_null(manifest_add_image(&e->manifest));
		e->images[i].fd = -EBADF;
	}
	assert_int_equal(memfd_new("image", IMAGE_BYTES, &e->images[0].fd), 0);
	e->images[0].size = IMAGE_BYTES;
	job->evidence = e;
}

static int setup(void **state)
{
	struct setting *s = calloc(1, sizeof(*s));
	struct job_setup js = {.config = &s->config};

	if (!find_beside("fake_decoder", s->program))
		return -1;
	s->config.worker = s->program;
	s->config.decode_timeout_usec = 60000000;
	entry_init(&js.entry);
	assert_int_equal(job_new(&js, &s->job), 0);
	/* Nobody reads the messages of the job. */
	assert_int_equal(fcntl(s->job->news[1], F_SETFL, O_NONBLOCK), 0);
	s->job->deadline_ns = ENTRY_ABSENT;
	make_images(s->job);
	*state = s;
	return 0;
}

/* No decoder may be left as a child. */
static int teardown(void **state)
{
	struct setting *s = *state;
	bool reaped = waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD;

	job_free(s->job);
	free(s);
	return reaped ? 0 : -1;
}

/* BEHAVIOUR: with symbols, without, and with source lines (as with symbols). */
static int decode(struct setting *s, const char *behaviour)
{
	struct job *job = s->job;

	close_fd(job->bundle_fd);
	assert_int_equal(memfd_new("bundle", 0, &job->bundle_fd), 0);
	assert_int_equal(memfd_write_all(job->bundle_fd, behaviour, strlen(behaviour)), 0);
	assert_int_equal(memfd_seal(job->bundle_fd), 0);
	job->report_fd = close_fd(job->report_fd);
	free(job->needed ? job->needed[0].pieces : NULL);
	free(job->needed);
	job->needed = NULL;
	job->entry.state = ENTRY_DECODING;
	*job->entry.error = '\0';
	return job_decode(job);
}

static void assert_report(const struct setting *s, const char *text)
{
	char got[32] = "";
	struct stat st;

	assert_true(s->job->report_fd >= 0);
	assert_int_equal(fstat(s->job->report_fd, &st), 0);
	assert_int_equal(st.st_size, strlen(text));
	assert_int_equal(pread(s->job->report_fd, got, sizeof(got), 0), strlen(text));
	assert_string_equal(got, text);
	/* The report can be sealed. */
	assert_int_equal(memfd_seal(s->job->report_fd), 0);
}

static void job_decode_of_a_decoder_that_works_has_its_report(void **state)
{
	struct setting *s = *state;

	assert_int_equal(decode(s, "well crash"), 0);
	assert_report(s, "well");
	assert_string_equal(s->job->entry.error, "");
	assert_int_equal(s->job->entry.gaps, 7);
	assert_true(s->job->needed_known);
	assert_int_equal(s->job->needed[0].n, 1);
}

/* The bundle is kept, and which images it needs is unknown then. */
static void job_decode_that_fails_says_how_and_is_tried_without_symbols(void **state)
{
	static const struct {
		const char *how, *why;
	} cases[] = {
		{"crash", "the decoder was killed by signal 9 (Killed)"},
		{"exit", "the decoder ended with status 5 and no result"},
		{"lie", "the decoder sent an invalid message and was killed"},
		{"short", "the decoder sent an invalid message and was killed"},
		{"twice", "the decoder sent an invalid message and was killed"},
		{"chatter", "the decoder sent an invalid message and was killed"},
		{"deaf", "the decoder sent an invalid message and was killed"},
		/* No recorder looks for a file that a decoder names. */
		{"debug", "the decoder sent an invalid message and was killed"},
		{"memory", "the decoder failed: Cannot allocate memory"},
		{"seek", "the decoder gave no report: File too large"},
		{"flood", "the decoder gave no report: File too large"},
		{"nothing", "the decoder gave no report: No data available"},
	};
	struct setting *s = *state;
	char text[64], expected[256];

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		snprintf(text, sizeof(text), "%s well", cases[i].how);
		assert_int_equal(decode(s, text), 0);
		assert_report(s, "well");
		snprintf(expected, sizeof(expected), "decoded without names: with them %s",
			 cases[i].why);
		assert_string_equal(s->job->entry.error, expected);
		assert_int_equal(s->job->entry.gaps, 7);
		assert_false(s->job->needed_known);
		assert_int_equal(s->job->needed[0].n, 1);

		/* If both attempts fail, the first failure is the message. */
		snprintf(text, sizeof(text), "%s exit", cases[i].how);
		assert_true(decode(s, text) < 0);
		assert_int_equal(s->job->report_fd, -EBADF);
		assert_int_equal(s->job->entry.state, ENTRY_FAILED);
		assert_string_equal(s->job->entry.error, cases[i].why);
		assert_false(s->job->needed_known);
	}
}

static void job_decode_is_not_tried_again_where_that_is_no_help(void **state)
{
	struct setting *s = *state;

	assert_int_equal(decode(s, "unknown well"), -EIO);
	assert_string_equal(s->job->entry.error, "the decoder failed: Protocol not supported");
	s->config.worker = "/nonexistent/decoder";
	assert_int_equal(decode(s, "well well"), -ENOENT);
	assert_string_equal(s->job->entry.error,
			    "the decoder /nonexistent/decoder could not be started: No such file "
			    "or directory");
}

static void job_decode_that_takes_too_long_is_ended(void **state)
{
	struct setting *s = *state;

	s->config.decode_timeout_usec = 60000;
	assert_int_equal(decode(s, "hang hang"), -ETIMEDOUT);
	assert_string_equal(s->job->entry.error,
			    "the decoder was not done after 45 ms and was stopped");
}

/* There is time left for the newest part, without what it may have hung at. */
static void job_decode_that_hangs_is_tried_without_symbols_in_a_hurry(void **state)
{
	struct setting *s = *state;

	s->config.decode_timeout_usec = 2000000;
	assert_int_equal(decode(s, "hang hurry"), 0);
	assert_report(s, "hurry");
	assert_string_equal(s->job->entry.error,
			    "decoded without names, and only the newest part there was time for: "
			    "with them the decoder was not done after 1500 ms and was stopped");
	assert_false(s->job->needed_known);
}

/* A failure at source lines does not cost the names. */
static void job_decode_that_fails_at_lines_is_tried_with_names(void **state)
{
	struct setting *s = *state;

	s->config.source_lines = true;
	assert_int_equal(decode(s, "well crash crash"), 0);
	assert_string_equal(s->job->entry.error,
			    "decoded without source lines: with them the decoder was killed by "
			    "signal 9 (Killed)");
	assert_report(s, "well");
	assert_int_equal(decode(s, "crash well memory"), 0);
	assert_string_equal(s->job->entry.error,
			    "decoded without names: with them the decoder failed: Cannot allocate "
			    "memory");
}

static void job_decode_cancelled_is_not_tried_again(void **state)
{
	struct setting *s = *state;

	job_cancel(s->job);
	assert_int_equal(decode(s, "hang well"), -ECANCELED);
	assert_string_equal(s->job->entry.error, "the recorder was stopped while this was decoded");
	/* A second attempt does not wait, either. */
	assert_true(decode(s, "crash hang") < 0);
}

static void job_decode_asked_for_what_is_not_there_goes_on(void **state)
{
	struct setting *s = *state;

	assert_int_equal(decode(s, "ask exit"), 0);
	assert_report(s, "asked");
	assert_int_equal(decode(s, "keep exit"), 0);
	assert_report(s, "kept");
	assert_int_equal(s->job->needed_refused, 4);
	assert_int_equal(s->job->needed[0].n, 0);
}

/* An attempt without names has no source lines. */
static void job_decode_with_source_lines_asks_for_them(void **state)
{
	struct setting *s = *state;

	assert_int_equal(decode(s, "lines exit"), 0);
	assert_report(s, "none");
	s->config.source_lines = true;
	assert_int_equal(decode(s, "lines exit"), 0);
	assert_report(s, "lines");
	assert_int_equal(decode(s, "crash lines"), 0);
	assert_report(s, "none");
}

/* An attempt without names asks for none. */
static void job_decode_with_a_debug_directory_hands_over_its_files(void **state)
{
	struct setting *s = *state;
	char dir[64];

	make_debug_directory(dir);
	s->config.debug_directory = dir;
	assert_int_equal(decode(s, "named exit"), 0);
	assert_report(s, "named");
	assert_int_equal(decode(s, "crash named"), -EIO);
	remove_debug_directory(dir);
	s->config.debug_directory = "/nonexistent";
	assert_int_equal(decode(s, "named exit"), 0);
	assert_report(s, "none");
}

static void job_decode_where_nobody_listens_says_so(void **state)
{
	struct setting *s = *state;

	s->config.decoder_socket = "/nonexistent/decode";
	assert_int_equal(decode(s, "well exit"), 0);
	assert_report(s, "well");
	assert_string_equal(
		s->job->entry.error,
		"decoded by a program that the recorder started: /nonexistent/decode: No "
		"such file or directory");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
		CASE(job_decode_of_a_decoder_that_works_has_its_report),
		CASE(job_decode_that_fails_says_how_and_is_tried_without_symbols),
		CASE(job_decode_is_not_tried_again_where_that_is_no_help),
		CASE(job_decode_that_takes_too_long_is_ended),
		CASE(job_decode_that_hangs_is_tried_without_symbols_in_a_hurry),
		CASE(job_decode_that_fails_at_lines_is_tried_with_names),
		CASE(job_decode_cancelled_is_not_tried_again),
		CASE(job_decode_asked_for_what_is_not_there_goes_on),
		CASE(job_decode_with_source_lines_asks_for_them),
		CASE(job_decode_with_a_debug_directory_hands_over_its_files),
		CASE(job_decode_where_nobody_listens_says_so),
	};

	/* memory_copy() forks. */
	pthread_atfork(NULL, NULL, test_leave_cmocka);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
