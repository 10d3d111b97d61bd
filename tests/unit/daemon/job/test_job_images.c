/*
 * The decoder may ask for any image, and say any number.
 */
#include "daemon/job/job_private.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "proto/memfd.h"

#define SIZE 0x12345u

/* Three images: 0 and 2 with bytes, 1 missing. */
static int setup(void **state)
{
	struct job *job = calloc(1, sizeof(*job));

	job->evidence = calloc(1, sizeof(*job->evidence));
	manifest_init(&job->evidence->manifest);
	job->evidence->images = calloc(3, sizeof(*job->evidence->images));
	for (int i = 0; i < 3; i++) {
		assert_non_null(manifest_add_image(&job->evidence->manifest));
		job->evidence->images[i].fd = -EBADF;
	}
	for (int i = 0; i < 3; i += 2) {
		assert_int_equal(memfd_new("image", SIZE, &job->evidence->images[i].fd), 0);
		job->evidence->images[i].size = SIZE;
	}
	job->needed = calloc(4, sizeof(*job->needed));
	*state = job;
	return 0;
}

static int teardown(void **state)
{
	struct job *job = *state;

	for (int i = 0; i < 3; i++) {
		close_fd(job->evidence->images[i].fd);
		free(job->needed[i].pieces);
	}
	manifest_done(&job->evidence->manifest);
	free(job->evidence->images);
	free(job->evidence);
	free(job->needed);
	free(job);
	return 0;
}

static void job_on_image_gives_what_there_is(void **state)
{
	struct job *job = *state;
	uint64_t size = 0;
	int fd = -1;

	assert_int_equal(job_on_image(job, 2, &fd, &size), 0);
	assert_int_equal(fd, job->evidence->images[2].fd);
	assert_int_equal(size, SIZE);
	assert_int_equal(job_on_image(job, 1, &fd, &size), -ENOENT);
	assert_int_equal(job_on_image(job, 3, &fd, &size), -ENOENT);
	assert_int_equal(job_on_image(job, UINT32_MAX, &fd, &size), -ENOENT);
}

static void job_on_keep_refuses_what_no_image_has(void **state)
{
	static const struct {
		uint32_t image;
		uint64_t offset, size;
	} cases[] = {
		{0, SIZE, 1}, {0, UINT64_MAX, UINT64_MAX}, {0, 0, 0}, {1, 0, 1},
		{3, 0, 1},    {UINT32_MAX, 0, 1},
	};
	struct job *job = *state;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		job_on_keep(job, cases[i].image, cases[i].offset, cases[i].size);
		assert_int_equal(job->needed_refused, i + 1);
	}
	for (int i = 0; i < 3; i++)
		assert_int_equal(job->needed[i].n, 0);
}

static void job_on_keep_cuts_at_the_end(void **state)
{
	struct job *job = *state;

	job_on_keep(job, 0, 0x12000, UINT64_MAX);
	assert_int_equal(job->needed[0].n, 1);
	assert_int_equal(job->needed[0].pieces[0].size, 0x345);
	assert_int_equal(job->needed_refused, 0);
}

/* Millions of ranges that do not join are refused; ranges that join take little memory. */
static void job_on_keep_is_bounded(void **state)
{
	struct job *job = *state;

	job->evidence->images[0].size = (uint64_t)1 << 40;
	for (uint64_t i = 0; i < 1000000; i++)
		job_on_keep(job, 0, (i * 7919) % 1000003 * 2, 1);
	assert_true(job->needed[0].n <= MANIFEST_MAX_PIECES);
	assert_true(job->needed[0].capacity <= MANIFEST_MAX_PIECES);
	assert_true(job->needed_refused > 0);
	job->needed_refused = 0;
	for (uint64_t i = 0; i < 1000000; i++)
		job_on_keep(job, 2, i % SIZE, 1);
	assert_int_equal(job->needed_refused, 0);
	assert_int_equal(manifest_pieces_join(job->needed[2].pieces, job->needed[2].n), 1);
	assert_int_equal(job->needed[2].pieces[0].size, SIZE);
}

/* A decoder that names many images cannot take all our memory, either. */
static void job_on_keep_of_many_images_is_bounded(void **state)
{
	struct job *job = *state;

	job->evidence->images[0].size = job->evidence->images[2].size = (uint64_t)1 << 40;
	job->needed_capacity = JOB_MAX_NEEDED - 64;
	for (uint64_t i = 0; i < 1000; i++) {
		job_on_keep(job, 0, i * 2, 1);
		job_on_keep(job, 2, i * 2, 1);
	}
	assert_true(job->needed[0].n > 0 && job->needed[2].n > 0);
	assert_true(job->needed[0].capacity + job->needed[2].capacity <= 64);
	assert_int_equal(job->needed[0].n + job->needed[2].n + job->needed_refused, 2000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
		CASE(job_on_image_gives_what_there_is),
		CASE(job_on_keep_refuses_what_no_image_has),
		CASE(job_on_keep_cuts_at_the_end),
		CASE(job_on_keep_is_bounded),
		CASE(job_on_keep_of_many_images_is_bounded),
	};

	return cmocka_run_group_tests_name("daemon/job_images", tests, NULL, NULL);
}
