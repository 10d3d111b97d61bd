/*
 * A snapshot that is announced is on the disk, or is announced as kept in memory.
 */
#include "daemon/job/job_private.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

#include "daemon/store/store_file.h"
#include "tests/unit/daemon/scratch_dir.h"

#define ID "00000000003-abcd-1"

static char dir[SCRATCH_DIR_SIZE];

static int setup(void **state)
{
	struct job *job = calloc(1, sizeof(*job));

	scratch_dir_make(dir);
	job->setup.store_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	entry_init(&job->entry);
	strcpy(job->entry.id, ID);
	strcpy(job->entry.trigger, "control");
	job->entry.state = ENTRY_DONE;
	*state = job;
	return 0;
}

static int teardown(void **state)
{
	struct job *job = *state;

	close(job->setup.store_fd);
	free(job);
	scratch_dir_remove(dir);
	return 0;
}

static void job_store_entry_of_what_is_stored_has_no_remark(void **state)
{
	struct job *job = *state;
	struct entry e;

	job_store_entry(job);
	assert_string_equal(job->entry.error, "");
	assert_int_equal(store_scan_entry(job->setup.store_fd, ID, 0, &e), STORE_SCAN_ENDED);
	assert_int_equal(e.state, ENTRY_DONE);
}

/* From now on files have room for a few bytes, as on a disk that is full but for these. Returns the
 * limit before. */
static struct rlimit fill_disk(void)
{
	struct rlimit before, small;

	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	small = (struct rlimit){.rlim_cur = 16, .rlim_max = before.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	return before;
}

static void job_store_entry_that_the_disk_does_not_take_is_announced(void **state)
{
	struct rlimit before;
	struct job *job = *state;
	CLEANUP_CLOSE int report = -EBADF;
	struct entry e;

	report = memfd_create("report", MFD_CLOEXEC);
	assert_int_equal(write(report, "{}", 2), 2);
	before = fill_disk();
	job->entry.report_bytes = 2;
	assert_int_equal(store_file_put(job->setup.store_fd, ID, STORE_REPORT, report, 2), 0);
	job_store_entry(job);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	assert_int_equal(job->entry.state, ENTRY_DONE);
	assert_non_null(strstr(job->entry.error, "in memory only"));
	/* The next run finds the report, and says the same. */
	assert_int_equal(store_scan_entry(job->setup.store_fd, ID, 0, &e), STORE_SCAN_ENDED);
	assert_int_equal(e.state, ENTRY_DONE);
	assert_int_equal(e.report_bytes, 2);
}

/* Also where something else has been remarked before. */
static void job_store_bundle_that_the_disk_does_not_take_is_announced(void **state)
{
	const struct job *other = *state;
	const struct job_setup setup = {.store_fd = other->setup.store_fd, .entry = other->entry};
	static const char bundle[100], yes = 1;
	struct rlimit before;
	struct job *job;

	assert_int_equal(job_new(&setup, &job), 0);
	job->bundle_fd = memfd_create("bundle", MFD_CLOEXEC);
	assert_int_equal(write(job->bundle_fd, bundle, sizeof(bundle)), sizeof(bundle));
	job->entry.bundle_bytes = sizeof(bundle);
	job_remark(job, ENTRY_TAKEN_UP);
	assert_int_equal(write(job->answers[1], &yes, 1), 1);
	before = fill_disk();
	assert_int_equal(job_store_bundle(job), 0);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	assert_false(job->bundle_stored);
	assert_non_null(strstr(job->entry.error, "its bundle is kept in memory only"));
	job_free(job);
}

static void job_store_entry_adds_to_what_was_remarked(void **state)
{
	struct job *job = *state;

	job_remark(job, "decoded without names");
	close(job->setup.store_fd);
	job->setup.store_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	job_store_entry(job);
	assert_non_null(strstr(job->entry.error, "decoded without names"));
	assert_non_null(strstr(job->entry.error, "in memory only"));
	assert_non_null(strstr(job->entry.error, "may be gone after a crash"));
}

static void job_store_entry_is_announced_in_front_of_long_remarks(void **state)
{
	char text[ENTRY_ERROR_SIZE + 1];
	struct job *job = *state;

	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	job_remark(job, "%s", text);
	close(job->setup.store_fd);
	job->setup.store_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	job_store_entry(job);
	assert_non_null(strstr(job->entry.error, "in memory only"));
	assert_non_null(strstr(job->entry.error, "; xxx"));
	/* The reason of a failure stays in front. */
	job_fail(job, -EIO, "the decoder died");
	job_store_entry(job);
	assert_ptr_equal(strstr(job->entry.error, "the decoder died; "), job->entry.error);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
		CASE(job_store_entry_of_what_is_stored_has_no_remark),
		CASE(job_store_entry_that_the_disk_does_not_take_is_announced),
		CASE(job_store_bundle_that_the_disk_does_not_take_is_announced),
		CASE(job_store_entry_adds_to_what_was_remarked),
		CASE(job_store_entry_is_announced_in_front_of_long_remarks),
	};

	return cmocka_run_group_tests_name("daemon/job_entry", tests, NULL, NULL);
}
